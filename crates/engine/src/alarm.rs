//! Documents on their way to the limit of 16 MiB: a log line when one passes a threshold, and a list of them to ask for.
//!
//! The largest document ever written is kept with each collection's totals, in the same commit. It does not shrink with its
//! document: [`Engine::measure_documents`] looks at all of them again, and `validate` does so when it has found nothing wrong.

use crate::database::{Engine, Inner, totals_key};
use crate::error::Result;
use crate::keyspace;
use crate::namespace::Namespace;
use crate::storage::{Direction, View};
use bytes::Bytes;
use std::ops::Bound;
use std::sync::atomic::Ordering;

/// The threshold unless another is set: three quarters of the limit.
pub(crate) const DEFAULT_BYTES: u64 = 12 << 20;
/// The entries that are looked at in one snapshot.
const STEP_ENTRIES: usize = 10_000;

/// A collection that had a document beyond the threshold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LargeDocument {
    /// Where.
    pub namespace: Namespace,
    /// The size of the largest.
    pub bytes: u64,
}

impl Engine {
    /// Sets the size from which on a document is too near to the limit of 16 MiB.
    pub fn set_document_alarm(&self, bytes: u64) {
        self.inner.document_alarm_bytes.store(bytes, Ordering::Relaxed);
    }

    /// The collections with a document beyond the threshold.
    ///
    /// # Errors
    /// A failing storage.
    pub fn large_documents(&self) -> Result<Vec<LargeDocument>> {
        let threshold = self.inner.document_alarm_bytes.load(Ordering::Relaxed);
        let state = self.state();
        let mut found = Vec::new();
        for collection in state.catalog.all().filter(|collection| !collection.is_view()) {
            let bytes = self.inner.totals(&state.snapshot, collection.id)?.largest_bytes.max(0) as u64;
            if bytes >= threshold {
                found.push(LargeDocument { namespace: collection.namespace.clone(), bytes });
            }
        }
        Ok(found)
    }

    /// Looks for the largest document of a collection again, after large ones were made smaller. Gives its size.
    ///
    /// # Errors
    /// `NamespaceNotFound` (26), a failing storage.
    pub fn measure_documents(&self, namespace: &Namespace) -> Result<u64> {
        let id = self.state().catalog.require(namespace)?.id;
        let prefix = keyspace::prefix(keyspace::RECORDS, id);
        let end = keyspace::after_prefix(&prefix).expect("records are not the last kind of keys");
        let known = self.inner.with_writer(|writer, _| self.inner.totals(writer, id))?.largest_bytes;
        let (mut largest, mut after) = (0, None::<Bytes>);
        loop {
            let snapshot = self.storage().snapshot();
            let from = after.as_ref().map_or(Bound::Included(&prefix[..]), |key| Bound::Excluded(&key[..]));
            let mut seen = 0;
            for entry in snapshot.range(from, Bound::Excluded(&end), Direction::Forward)?.take(STEP_ENTRIES) {
                let (key, value) = entry?;
                largest = largest.max(value.len() as i64);
                after = Some(key);
                seen += 1;
            }
            if seen < STEP_ENTRIES {
                break;
            }
        }
        let set = self.inner.write(&crate::Context::default(), |statement| {
            let mut value = Vec::with_capacity(32);
            let totals = self.inner.totals(statement.view(), id)?;
            if totals.largest_bytes != known || largest == known {
                return Ok(()); // a larger one was written meanwhile, or nothing has changed
            }
            for number in [totals.count, totals.size_bytes, totals.buckets, largest] {
                value.extend_from_slice(&number.to_le_bytes());
            }
            statement.put(totals_key(id), value.into());
            Ok(())
        })?;
        set.wait()?;
        Ok(largest as u64)
    }
}

impl Inner {
    /// Says so when a collection's largest document passes the threshold.
    pub(crate) fn watch_size(&self, collection: u32, before: i64, written: i64) {
        let threshold = self.document_alarm_bytes.load(Ordering::Relaxed);
        if (written.max(0) as u64) < threshold || before.max(0) as u64 >= threshold {
            return;
        }
        let catalog = self.state().catalog;
        let name = catalog.by_id(collection).map(|found| found.namespace.to_string()).unwrap_or_default();
        tracing::warn!(
            namespace = %name,
            bytes = written,
            "a document has passed {threshold} bytes on its way to the limit of 16 MiB: bound its arrays or split it"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::Context;
    use crate::database::Options;
    use crate::operation::{Delete, DeleteStatement, Insert, Query};
    use bson::rawdoc;

    #[test]
    fn a_collection_is_listed_once_a_document_passes_the_threshold_until_it_is_measured_again() {
        let engine = Engine::in_memory(Options::system()).unwrap();
        let namespace = Namespace::new("shop", "carts").unwrap();
        engine.set_document_alarm(10_000);
        let insert = |id: i32, size: usize| {
            let insert = Insert {
                namespace: namespace.clone(),
                documents: vec![rawdoc! { "_id": id, "text": "x".repeat(size) }],
                ordered: true,
                bypass_document_validation: false,
                statement_ids: Vec::new(),
            };
            drop(engine.insert(&Context::default(), insert).unwrap().wait().unwrap());
        };
        insert(1, 5_000);
        assert_eq!(engine.large_documents().unwrap(), []);
        insert(2, 20_000);
        let large = engine.large_documents().unwrap();
        assert_eq!((large.len(), &large[0].namespace), (1, &namespace));
        assert!(large[0].bytes > 20_000);
        let query = Query { filter: rawdoc! { "_id": 2 }, ..Query::default() };
        let delete = Delete {
            namespace: namespace.clone(),
            statements: vec![DeleteStatement { query, multi: false }],
            ordered: true,
            statement_ids: Vec::new(),
        };
        drop(engine.delete(&Context::default(), &delete).unwrap().wait().unwrap());
        assert_eq!(engine.large_documents().unwrap().len(), 1);
        assert!(engine.validate(&Context::default(), &namespace).unwrap().is_valid());
        assert_eq!(engine.large_documents().unwrap(), []);
    }
}
