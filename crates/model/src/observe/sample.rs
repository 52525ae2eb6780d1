//! A sample of a collection's documents, folded into what stands at each path.

use super::Bounds;
use super::path::{MAX_KEYS, PathStats};
use bson::raw::RawBsonRef;
use bson::{Bson, Document, RawDocument, doc};
use std::collections::BTreeMap;
use store::{Aggregate, Collection, Cursor, Find};

/// The most paths of a collection; what has more has data in its names.
const MAX_PATHS: usize = 2_000;
/// The deepest nesting that is looked at.
const MAX_DEPTH: usize = 12;
/// Elements of one array that are looked at.
const MAX_ELEMENTS: usize = 200;

/// What a sample of documents looks like.
#[derive(Clone, Debug, Default)]
pub struct Sample {
    /// How many documents.
    pub documents: u64,
    /// Whether that is all of them.
    pub complete: bool,
    /// Their bytes.
    pub bytes: u64,
    /// The largest of them: its `_id` and bytes.
    pub largest: Option<(Bson, u64)>,
    /// What stands at each path; `[]` leads into an array's elements: `items[].price`.
    pub paths: BTreeMap<String, PathStats>,
    /// The first and the last creation time by ObjectId `_id`, in milliseconds since 1970.
    pub created: Option<(i64, i64)>,
    /// A key that stands twice in one document, and in how many documents one does.
    pub duplicate_keys: Option<(String, u64)>,
}

impl Sample {
    /// Takes a sample: all documents of a small collection, some of a large one.
    pub(super) async fn take(collection: &Collection, count: u64, bounds: Bounds) -> store::Result<Sample> {
        let mut sample = Sample { complete: count <= u64::from(bounds.documents), ..Sample::default() };
        if !sample.complete {
            let pipeline = vec![doc! { "$sample": { "size": bounds.documents } }];
            let options = Aggregate { max_time: Some(bounds.time), ..Aggregate::default() };
            let drawn = match collection.aggregate(pipeline, options, None).await {
                Ok(cursor) => sample.read(cursor).await,
                Err(error) => Err(error),
            };
            match drawn {
                Ok(()) => return Ok(sample),
                // Drawing took too long: the oldest and the newest are a sample too.
                Err(error) if error.code == Some(50) => sample = Sample::default(),
                Err(error) => return Err(error),
            }
        }
        let ends = if sample.complete { &[1][..] } else { &[1, -1][..] };
        for direction in ends {
            let limit = i64::from(bounds.documents) / ends.len() as i64;
            let sort = Some(doc! { "_id": direction });
            let options = Find { sort, limit, ..Find::default() };
            sample.read(collection.stream(Document::new(), options, None).await?).await?;
        }
        Ok(sample)
    }

    async fn read(&mut self, mut cursor: Cursor) -> store::Result<()> {
        while let Some(document) = cursor.next_raw(None).await? {
            self.add(&document);
        }
        Ok(())
    }

    /// Adds a document.
    pub fn add(&mut self, document: &RawDocument) {
        self.documents += 1;
        let bytes = document.as_bytes().len() as u64;
        self.bytes += bytes;
        let id = document.get("_id").ok().flatten();
        if self.largest.as_ref().is_none_or(|largest| largest.1 < bytes) {
            let id = id.and_then(|id| Bson::try_from(id).ok()).unwrap_or(Bson::Null);
            self.largest = Some((id, bytes));
        }
        if let Some(RawBsonRef::ObjectId(id)) = id {
            let time = id.timestamp().timestamp_millis();
            self.created = Some(self.created.map_or((time, time), |(from, to)| (from.min(time), to.max(time))));
        }
        if let Some(key) = super::path::duplicate_keys(document) {
            let (_, count) = self.duplicate_keys.get_or_insert((key, 0));
            *count += 1;
        }
        let mut seen = Vec::new();
        self.walk("", document, 0, &mut seen);
        seen.sort_unstable();
        seen.dedup();
        for path in seen {
            if let Some(stats) = self.paths.get_mut(&path) {
                stats.documents += 1;
            }
        }
    }

    fn walk(&mut self, prefix: &str, document: &RawDocument, depth: usize, seen: &mut Vec<String>) {
        let is_full = prefix.is_empty() || self.paths.get(prefix).is_none_or(|stats| stats.keys.len() < MAX_KEYS);
        for (key, value) in document.iter().flatten() {
            let path = if prefix.is_empty() { key.as_str().to_owned() } else { format!("{prefix}.{}", key.as_str()) };
            if !self.paths.contains_key(&path) && (!is_full || self.paths.len() >= MAX_PATHS) {
                continue;
            }
            self.value(path, value, depth, seen);
        }
    }

    fn value(&mut self, path: String, value: RawBsonRef<'_>, depth: usize, seen: &mut Vec<String>) {
        let stats = self.paths.entry(path.clone()).or_insert_with(PathStats::unseen);
        stats.add(value);
        if depth < MAX_DEPTH {
            match value {
                RawBsonRef::Document(inner) => self.walk(&path, inner, depth + 1, seen),
                RawBsonRef::Array(array) => {
                    stats.add_array(array);
                    let elements = format!("{path}[]");
                    for element in array.into_iter().flatten().take(MAX_ELEMENTS) {
                        self.value(elements.clone(), element, depth + 1, seen);
                    }
                }
                _ => {}
            }
        }
        seen.push(path);
    }

    /// What stands at a path as queries write it, without `[]`.
    pub fn at(&self, dotted: &str) -> Option<&PathStats> {
        self.path_of(dotted).and_then(|path| self.paths.get(path))
    }

    /// The path with `[]` for a path as queries write it; for an array of values, that of its elements.
    pub fn path_of(&self, dotted: &str) -> Option<&str> {
        let mut found: Vec<&String> = self.paths.keys().filter(|path| plain(path) == dotted).collect();
        found.sort_by_key(|path| std::cmp::Reverse(path.len()));
        found.first().map(|path| path.as_str())
    }

    /// Whether a path leads through or to a place whose keys are data.
    pub fn is_below_dynamic(&self, path: &str) -> bool {
        path.char_indices()
            .filter(|(_, c)| *c == '.')
            .any(|(at, _)| self.paths.get(&path[..at]).is_some_and(PathStats::is_dynamic))
    }

    /// The usual bytes of a document.
    pub fn usual_bytes(&self) -> u64 {
        self.bytes.checked_div(self.documents).unwrap_or(0)
    }
}

/// A path as queries write it.
pub fn plain(path: &str) -> String {
    path.replace("[]", "")
}

/// The last name of a path.
pub fn last_name(path: &str) -> &str {
    let path = path.trim_end_matches("[]");
    path.rsplit('.').next().unwrap_or(path)
}
