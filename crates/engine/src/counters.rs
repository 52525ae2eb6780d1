//! Numbers that are never used twice: of collections and indexes, and of a collection's records.

use crate::error::{Error, Result};
use crate::keyspace;
use crate::storage::{Direction, View};
use bson::RawDocument;
use parking_lot::Mutex;
use std::collections::HashMap;

/// The next numbers, read from the storage the first time they are asked for.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    next: Mutex<Next>,
}

#[derive(Debug, Default)]
struct Next {
    id: Option<u32>,
    records: HashMap<u32, u64>,
}

impl Counters {
    /// The next number for a collection or an index; whoever takes it stores the one after it as the setting `ids`.
    pub(crate) fn next_id(&self, view: &dyn View) -> u32 {
        let mut next = self.next.lock();
        let id = next.id.unwrap_or_else(|| {
            let stored = view.get(&keyspace::key(keyspace::SETTINGS, 0, b"ids")).ok().flatten();
            let stored = stored.as_deref().and_then(|bytes| RawDocument::from_bytes(bytes).ok()?.get_i64("next").ok());
            stored.and_then(|id| u32::try_from(id).ok()).unwrap_or(1)
        });
        next.id = Some(id + 1);
        id
    }

    /// The next record number of a collection; `view` shows everything executed so far.
    pub(crate) fn next_record(&self, collection: u32, view: &dyn View) -> Result<u64> {
        let mut next = self.next.lock();
        let number = match next.records.get(&collection) {
            Some(number) => *number,
            None => last_record(collection, view)? + 1,
        };
        next.records.insert(collection, number + 1);
        Ok(number)
    }

    /// Forgets a collection that was dropped.
    pub(crate) fn forget(&self, collection: u32) {
        self.next.lock().records.remove(&collection);
    }
}

fn last_record(collection: u32, view: &dyn View) -> Result<u64> {
    let prefix = keyspace::prefix(keyspace::RECORDS, collection);
    let mut end = None;
    let (from, to) = keyspace::bounds(&prefix, &mut end);
    let Some(last) = view.range(from, to, Direction::Backward)?.next() else { return Ok(0) };
    let key = last?.0;
    let number = key[keyspace::RECORD_PREFIX_BYTES..].try_into();
    Ok(u64::from_be_bytes(number.map_err(|_| Error::internal("a record key is not eight bytes long"))?))
}
