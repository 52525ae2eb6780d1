//! How often plans have used each index since the start, for `$indexStats`.

use parking_lot::Mutex;
use std::collections::HashMap;

/// Uses by collection and index name.
#[derive(Debug)]
pub(crate) struct IndexUses {
    since_ms: i64,
    uses: Mutex<HashMap<u32, HashMap<String, i64>>>,
}

impl IndexUses {
    /// Counts from now on.
    pub(crate) fn since(clock_ms: i64) -> IndexUses {
        IndexUses { since_ms: clock_ms, uses: Mutex::default() }
    }

    /// When counting began, in milliseconds since 1970.
    pub(crate) fn since_ms(&self) -> i64 {
        self.since_ms
    }

    /// Counts a plan that uses these indexes.
    pub(crate) fn count(&self, collection: u32, indexes: &[String]) {
        if indexes.is_empty() {
            return;
        }
        let mut uses = self.uses.lock();
        let uses = uses.entry(collection).or_default();
        for index in indexes {
            match uses.get_mut(index) {
                Some(count) => *count += 1,
                None => {
                    uses.insert(index.clone(), 1);
                }
            }
        }
    }

    /// How often an index was used.
    pub(crate) fn of(&self, collection: u32, index: &str) -> i64 {
        self.uses.lock().get(&collection).and_then(|uses| uses.get(index)).copied().unwrap_or(0)
    }

    /// Forgets a collection that was dropped, or one of its indexes.
    pub(crate) fn forget(&self, collection: u32, index: Option<&str>) {
        let mut uses = self.uses.lock();
        match index {
            Some(index) => {
                uses.entry(collection).or_default().remove(index);
            }
            None => {
                uses.remove(&collection);
            }
        }
    }
}
