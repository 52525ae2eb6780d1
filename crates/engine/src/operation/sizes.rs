//! How much room collections and indexes take.
//!
//! Documents are counted exactly with every write. The entries of an index are not: their size is estimated from the keys of
//! some documents of the collection's beginning and end, times the documents. For a small collection that is all of them. An
//! estimate's bytes per document are kept for a while, so that asking often costs nothing.

use crate::catalog::Collection;
use crate::context::Context;
use crate::database::{Engine, Inner, Totals};
use crate::error::Result;
use crate::index::ID_INDEX_NAME;
use crate::keyspace;
use crate::storage::{Direction, View};
use bson::{RawBsonRef, RawDocument};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// The documents looked at from each end of a collection.
const SAMPLE_DOCUMENTS: usize = 50;
/// How long an estimate is kept.
const ESTIMATE_LIFETIME: Duration = Duration::from_secs(60);
/// The most collections whose estimates are kept.
const MAX_ESTIMATES: usize = 10_000;
/// The room that everything takes at least, and by which it grows.
const PAGE_BYTES: u64 = 4096;
/// What the table store keeps beside each entry: lengths of key and value.
const ENTRY_OVERHEAD_BYTES: u64 = 8;

/// The room that a collection takes.
#[derive(Clone, Debug, Default)]
pub struct Sizes {
    /// Its documents with their keys.
    pub storage_bytes: u64,
    /// Its indexes by name, `_id`'s first.
    pub indexes: Vec<(String, u64)>,
}

impl Sizes {
    /// The room that all indexes take.
    pub fn index_bytes(&self) -> u64 {
        self.indexes.iter().map(|index| index.1).sum()
    }
}

/// Kept estimates.
#[derive(Default)]
pub(crate) struct Estimates {
    by_collection: Mutex<HashMap<u32, Estimate>>,
}

/// The bytes that one document has in each index, by the index's number; `_id`'s has the collection's.
struct Estimate {
    made: Instant,
    documents: i64,
    per_document: Vec<(u32, f64)>,
}

impl Engine {
    /// The room that a collection takes.
    ///
    /// # Errors
    /// A failing storage.
    pub fn sizes(&self, context: &Context, collection: &Collection) -> Result<Sizes> {
        let reading = self.inner.reading(context)?;
        self.inner.sizes(&*reading.view()?, collection)
    }
}

impl Inner {
    /// The room that a collection takes in a view.
    pub(crate) fn sizes(&self, view: &dyn View, collection: &Collection) -> Result<Sizes> {
        if collection.is_view() {
            return Ok(Sizes::default());
        }
        let totals = self.totals(view, collection.id)?;
        // A time series has a key for each bucket and loose measurement, and index entries for groups.
        let rows = if collection.settings.series.is_some() { totals.buckets } else { totals.count };
        let count = rows.max(0) as u64;
        let record_key = if collection.settings.clustered { 24 } else { 8 };
        let keys = count * (keyspace::RECORD_PREFIX_BYTES as u64 + record_key + ENTRY_OVERHEAD_BYTES);
        let storage_bytes = pages(totals.size_bytes.max(0) as u64 + keys);
        let per_document = self.estimates.of(view, collection, totals)?;
        let size = |id: u32| {
            let found = per_document.iter().find(|entry| entry.0 == id);
            pages(found.map_or(0.0, |entry| entry.1 * count as f64).round() as u64)
        };
        let mut indexes = Vec::new();
        if collection.implicit_indexes() > 0 {
            indexes.push((ID_INDEX_NAME.to_owned(), size(collection.id)));
        }
        indexes.extend(collection.indexes.iter().map(|index| (index.spec.name().to_owned(), size(index.id))));
        Ok(Sizes { storage_bytes, indexes })
    }
}

/// Bytes in whole pages, one at least.
fn pages(bytes: u64) -> u64 {
    bytes.div_ceil(PAGE_BYTES).max(1) * PAGE_BYTES
}

impl Estimates {
    fn of(&self, view: &dyn View, collection: &Collection, totals: Totals) -> Result<Vec<(u32, f64)>> {
        if let Some(estimate) = self.by_collection.lock().get(&collection.id)
            && estimate.fits(collection, totals)
        {
            return Ok(estimate.per_document.clone());
        }
        let per_document = estimate(view, collection)?;
        let mut kept = self.by_collection.lock();
        if kept.len() >= MAX_ESTIMATES {
            kept.clear();
        }
        let documents = totals.count;
        kept.insert(collection.id, Estimate { made: Instant::now(), documents, per_document: per_document.clone() });
        Ok(per_document)
    }
}

impl Estimate {
    /// Whether it still says something about a collection: it is young, has its indexes, and the collection is about as large.
    fn fits(&self, collection: &Collection, totals: Totals) -> bool {
        let known = |id: u32| self.per_document.iter().any(|entry| entry.0 == id);
        let (least, most) = (self.documents.min(totals.count), self.documents.max(totals.count));
        most > 2 * SAMPLE_DOCUMENTS as i64
            && least * 2 >= most
            && self.made.elapsed() < ESTIMATE_LIFETIME
            && collection.indexes.iter().all(|index| known(index.id))
    }
}

/// The bytes of one document's entries in each index, on the average of a sample.
fn estimate(view: &dyn View, collection: &Collection) -> Result<Vec<(u32, f64)>> {
    let documents = sample(view, collection)?;
    let share = 1.0 / documents.len().max(1) as f64;
    let prefix = keyspace::RECORD_PREFIX_BYTES as u64;
    let mut sums: Vec<(u32, u64)> = std::iter::once(collection.id)
        .chain(collection.indexes.iter().map(|index| index.id))
        .map(|id| (id, 0))
        .collect();
    for (record_key, document) in &documents {
        let Ok(document) = RawDocument::from_bytes(document) else { continue };
        let record_bytes = (record_key.len() - keyspace::RECORD_PREFIX_BYTES) as u64;
        let entry = |key: u64| prefix + key + record_bytes + ENTRY_OVERHEAD_BYTES;
        let mut encoded = Vec::with_capacity(24);
        let id = crate::document::get(document, "_id")?.unwrap_or(RawBsonRef::Null);
        crate::key::encode(id, collection.collator().map(|collator| &**collator), &mut encoded)?;
        sums[0].1 += entry(encoded.len() as u64);
        for (index, sum) in collection.indexes.iter().zip(&mut sums[1..]) {
            let Ok(keys) = index.spec.keys(document) else { continue };
            sum.1 += keys.entries.iter().map(|key| entry((key.key.len() + key.bits.len()) as u64)).sum::<u64>();
        }
    }
    Ok(sums.into_iter().map(|(id, sum)| (id, sum as f64 * share)).collect())
}

type Sampled = Vec<(bytes::Bytes, bytes::Bytes)>;

/// The first and the last documents of a collection; all of a small one.
fn sample(view: &dyn View, collection: &Collection) -> Result<Sampled> {
    let prefix = keyspace::prefix(keyspace::RECORDS, collection.id);
    let mut end = None;
    let (from, to) = keyspace::bounds(&prefix, &mut end);
    let mut documents: Sampled =
        view.range(from, to, Direction::Forward)?.take(SAMPLE_DOCUMENTS).collect::<Result<_>>()?;
    let Some(last) = documents.last().map(|entry| entry.0.clone()) else { return Ok(documents) };
    for entry in view.range(from, to, Direction::Backward)?.take(SAMPLE_DOCUMENTS) {
        let entry = entry?;
        if entry.0 <= last {
            break;
        }
        documents.push(entry);
    }
    Ok(documents)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::operation::Insert;
    use crate::{Namespace, Options};
    use bson::rawdoc;

    #[test]
    fn an_index_takes_about_what_its_entries_take() {
        let engine = Engine::in_memory(Options::system()).unwrap();
        let namespace = Namespace::new("shop", "items").unwrap();
        let context = Context::default();
        let specs = [
            rawdoc! { "key": { "code": 1 }, "name": "code_1" },
            rawdoc! { "key": { "rare": 1 }, "name": "rare_1", "sparse": true },
        ];
        engine.create_indexes(&context, &namespace, &specs).unwrap().wait().unwrap();
        let empty = engine.sizes(&context, engine.state().catalog.get(&namespace).unwrap()).unwrap();
        assert_eq!(empty.indexes.iter().map(|index| index.1).collect::<Vec<_>>(), [PAGE_BYTES; 3]);
        let document = |n: i32| rawdoc! { "_id": n, "code": format!("{n:0100}") };
        let documents = (0..5000).map(document).collect();
        let insert = Insert {
            namespace: namespace.clone(),
            documents,
            ordered: true,
            bypass_document_validation: false,
            statement_ids: Vec::new(),
        };
        engine.insert(&context, insert).unwrap().wait().unwrap();
        let state = engine.state();
        let collection = state.catalog.get(&namespace).unwrap();
        let sizes = engine.sizes(&context, collection).unwrap();
        let stored = |kind, id| {
            let prefix = keyspace::prefix(kind, id);
            let mut end = None;
            let (from, to) = keyspace::bounds(&prefix, &mut end);
            let entries = state.snapshot.range(from, to, Direction::Forward).unwrap();
            entries.map(|entry| entry.unwrap()).map(|(key, value)| (key.len() + value.len()) as u64).sum::<u64>()
        };
        let exact = [stored(keyspace::IDS, collection.id), stored(keyspace::INDEXES, collection.indexes[0].id)];
        for (told, exact) in sizes.indexes.iter().map(|index| index.1).zip(exact) {
            assert!(told >= exact && told < exact * 3 / 2, "{told} for {exact}");
        }
        assert_eq!(sizes.indexes[2].1, PAGE_BYTES);
        assert!(sizes.storage_bytes > stored(keyspace::RECORDS, collection.id));
    }
}
