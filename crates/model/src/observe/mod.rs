//! What is found in a live database: collections, indexes and their use, samples of documents, and what the profiler noted.
//!
//! The work is bounded ([`Bounds`]): a sample of each collection, one pass over sizes that the server breaks off after a
//! while, and the newest entries of `system.profile`. Everything goes through the store, so it is the same embedded and on a
//! deployment; nothing is written. [`lint`](crate::lint) judges what is found here, [`infer`](crate::infer) writes a model
//! from it.

pub mod link;
pub mod names;
pub mod path;
pub mod profile;
pub mod sample;

use bson::{Bson, Document, doc};
use link::Link;
use profile::Shape;
use sample::Sample;
use std::time::Duration;
use store::{Aggregate, CollectionInfo, CollectionStats, Find, Store};

/// How much work may be done.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Documents read of each collection.
    pub documents: u32,
    /// The most time the server may take for one question.
    pub time: Duration,
    /// Entries of `system.profile` read of each database.
    pub profile_entries: i64,
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds { documents: 2_000, time: Duration::from_secs(20), profile_entries: 20_000 }
    }
}

/// What was found.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    /// The databases, by name; MongoDB's own are left out.
    pub databases: Vec<Database>,
    /// When it was looked at, in milliseconds since 1970.
    pub now_ms: i64,
}

/// A database.
#[derive(Clone, Debug, Default)]
pub struct Database {
    /// Its name.
    pub name: String,
    /// Its collections, by name; views are left out.
    pub collections: Vec<Collection>,
    /// Fields that hold ids of other collections' documents.
    pub links: Vec<Link>,
    /// What the profiler noted, by shape.
    pub profile: Vec<Shape>,
    /// The seconds that the profile spans.
    pub profile_seconds: f64,
}

/// A collection.
#[derive(Clone, Debug)]
pub struct Collection {
    /// Name, kind and options.
    pub info: CollectionInfo,
    /// Documents and bytes.
    pub stats: CollectionStats,
    /// Its indexes, `_id`'s first.
    pub indexes: Vec<Index>,
    /// What its documents look like.
    pub sample: Sample,
    /// The largest document that was seen.
    pub largest: Option<Largest>,
}

/// An index and its use.
#[derive(Clone, Debug)]
pub struct Index {
    /// Its name.
    pub name: String,
    /// Its key pattern.
    pub keys: Document,
    /// All of it, as `listIndexes` shows it.
    pub specification: Document,
    /// How often it was used, and since when in milliseconds since 1970.
    pub uses: Option<(u64, i64)>,
}

/// The largest document that was seen.
#[derive(Clone, Debug)]
pub struct Largest {
    /// Its `_id`.
    pub id: Bson,
    /// Its bytes.
    pub bytes: u64,
    /// Whether all documents were looked at, not the sample only.
    pub of_all: bool,
}

impl Database {
    /// A collection by its name.
    pub fn collection(&self, name: &str) -> Option<&Collection> {
        self.collections.iter().find(|collection| collection.info.name == name)
    }
}

/// Looks at a store: at the named databases, or at all.
///
/// # Errors
/// A failing storage or connection, missing rights.
pub async fn observe(store: &Store, databases: &[String], bounds: Bounds, now_ms: i64) -> store::Result<Observed> {
    let mut names = databases.to_vec();
    if names.is_empty() {
        names = store.list_databases().await?.into_iter().map(|known| known.name).collect();
        names.retain(|name| !matches!(name.as_str(), "admin" | "config" | "local" | "sheaf"));
    }
    let mut observed = Observed { databases: Vec::new(), now_ms };
    for name in names {
        observed.databases.push(database(store, &name, bounds).await?);
    }
    Ok(observed)
}

async fn database(store: &Store, name: &str, bounds: Bounds) -> store::Result<Database> {
    let mut found = Database { name: name.to_owned(), ..Database::default() };
    let listed = store.list_collections(name).await?;
    let has_profile = listed.iter().any(|info| info.name == "system.profile");
    for info in listed {
        if info.kind == "view" || info.name.starts_with("system.") || info.name.starts_with("sheaf.") {
            continue;
        }
        found.collections.push(collection(store, name, info, bounds).await?);
    }
    found.links = link::links(store, name, &found.collections).await?;
    if has_profile {
        let sort = Some(doc! { "$natural": -1 });
        let newest = Find { sort, limit: bounds.profile_entries, ..Find::default() };
        let mut cursor = store.collection(name, "system.profile").stream(Document::new(), newest, None).await?;
        let mut profile = profile::Profile::new(name);
        while let Some(entry) = cursor.next_raw(None).await? {
            profile.add(&entry);
        }
        (found.profile, found.profile_seconds) = profile.finish();
    }
    Ok(found)
}

async fn collection(store: &Store, database: &str, info: CollectionInfo, bounds: Bounds) -> store::Result<Collection> {
    let handle = store.collection(database, &info.name);
    let is_series = info.kind == "timeseries";
    let stats = if is_series { CollectionStats::default() } else { handle.stats().await? };
    let listed = handle.list_indexes().await.unwrap_or_default();
    let uses = uses(&handle).await;
    let indexes = listed
        .into_iter()
        .map(|specification| {
            let name = specification.get_str("name").unwrap_or_default().to_owned();
            let keys = specification.get_document("key").cloned().unwrap_or_default();
            let uses = uses.iter().find(|used| used.0 == name).map(|used| (used.1, used.2));
            Index { name, keys, specification, uses }
        })
        .collect();
    let sample = Sample::take(&handle, stats.count, bounds).await?;
    let largest = largest(&handle, &sample, bounds).await;
    Ok(Collection { info, stats, indexes, sample, largest })
}

/// `$indexStats`: name, uses and since when; uses are summed over the members that answer.
async fn uses(handle: &store::Collection) -> Vec<(String, u64, i64)> {
    let pipeline = vec![doc! { "$indexStats": {} }];
    let Ok(cursor) = handle.aggregate(pipeline, Aggregate::default(), None).await else { return Vec::new() };
    let mut uses: Vec<(String, u64, i64)> = Vec::new();
    for row in cursor.collect(None).await.unwrap_or_default() {
        let (Ok(name), Ok(accesses)) = (row.get_str("name"), row.get_document("accesses")) else { continue };
        let ops = match accesses.get("ops") {
            Some(Bson::Int64(ops)) => (*ops).max(0) as u64,
            Some(Bson::Int32(ops)) => (*ops).max(0) as u64,
            _ => 0,
        };
        let since = accesses.get_datetime("since").map_or(i64::MAX, |since| since.timestamp_millis());
        match uses.iter_mut().find(|known| known.0 == name) {
            Some(known) => {
                known.1 += ops;
                known.2 = known.2.max(since);
            }
            None => uses.push((name.to_owned(), ops, since)),
        }
    }
    uses
}

/// The largest document of all, or of the sample where looking at all takes too long.
async fn largest(handle: &store::Collection, sample: &Sample, bounds: Bounds) -> Option<Largest> {
    let of_sample = sample.largest.clone().map(|(id, bytes)| Largest { id, bytes, of_all: sample.complete });
    if sample.complete {
        return of_sample;
    }
    let pipeline = vec![
        doc! { "$project": { "bytes": { "$bsonSize": "$$ROOT" } } },
        doc! { "$sort": { "bytes": -1 } },
        doc! { "$limit": 1 },
    ];
    let options = Aggregate { max_time: Some(bounds.time), ..Aggregate::default() };
    let Ok(cursor) = handle.aggregate(pipeline, options, None).await else { return of_sample };
    let row = cursor.collect(None).await.ok()?.into_iter().next()?;
    let bytes = match row.get("bytes") {
        Some(Bson::Int32(bytes)) => (*bytes).max(0) as u64,
        Some(Bson::Int64(bytes)) => (*bytes).max(0) as u64,
        _ => return of_sample,
    };
    Some(Largest { id: row.get("_id").cloned().unwrap_or(Bson::Null), bytes, of_all: true })
}
