//! The overlay: what is logged but not folded into the tables yet, in memory, by key and position.
//!
//! It consists of generations. The writer fills the active one; when that is large enough it is frozen, a new one
//! becomes active, and the folder writes the frozen one into the tables and drops it. Nothing is ever removed from a
//! generation, so readers need no lock on the map; each key has its versions behind a lock of its own, held for a
//! few instructions.

use super::Position;
use super::view::Direction;
use bytes::Bytes;
use crossbeam_skiplist::SkipMap;
use parking_lot::RwLock;
use std::ops::Bound;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What a version costs beyond its key's and value's bytes, roughly.
const VERSION_OVERHEAD_BYTES: usize = 160;

/// The commits between two positions.
#[derive(Default)]
pub(super) struct Generation {
    entries: SkipMap<Bytes, RwLock<Versions>>,
    size_bytes: AtomicUsize,
}

struct Versions {
    newest: Version,
    /// Oldest first.
    older: Vec<Version>,
}

struct Version {
    position: Position,
    value: Option<Bytes>,
}

impl Versions {
    fn at(&self, position: Position) -> Option<Option<Bytes>> {
        if self.newest.position <= position {
            return Some(self.newest.value.clone());
        }
        let count = self.older.partition_point(|version| version.position <= position);
        count.checked_sub(1).map(|last| self.older[last].value.clone())
    }
}

impl Generation {
    /// Adds a version. Only the holder of the writer lock may call this, with positions that never decrease.
    pub(super) fn put(&self, key: Bytes, value: Option<Bytes>, position: Position) {
        let size = key.len() + value.as_ref().map_or(0, Bytes::len) + VERSION_OVERHEAD_BYTES;
        self.size_bytes.fetch_add(size, Ordering::Relaxed);
        let version = Version { position, value };
        match self.entries.get::<[u8]>(&key) {
            None => {
                self.entries.insert(key, RwLock::new(Versions { newest: version, older: Vec::new() }));
            }
            Some(entry) => {
                let mut versions = entry.value().write();
                assert!(versions.newest.position <= position, "positions never decrease");
                let replaced = std::mem::replace(&mut versions.newest, version);
                if replaced.position < position {
                    versions.older.push(replaced);
                }
            }
        }
    }

    /// The version of a key at a position: `None` if this generation doesn't say, `Some(None)` if deleted.
    pub(super) fn get(&self, key: &[u8], position: Position) -> Option<Option<Bytes>> {
        self.entries.get(key).and_then(|entry| entry.value().read().at(position))
    }

    pub(super) fn range(
        &self,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
        direction: Direction,
        position: Position,
    ) -> impl Iterator<Item = (Bytes, Option<Bytes>)> + Send + '_ {
        let bounds = (from.map(Bytes::copy_from_slice), to.map(Bytes::copy_from_slice));
        let mut entries = self.entries.range::<Bytes, _>(bounds);
        std::iter::from_fn(move || {
            loop {
                let entry = match direction {
                    Direction::Forward => entries.next(),
                    Direction::Backward => entries.next_back(),
                }?;
                let version = entry.value().read().at(position);
                if let Some(value) = version {
                    return Some((entry.key().clone(), value));
                }
            }
        })
    }

    /// The newest version of each key, in key order: what the folder writes into the tables.
    pub(super) fn newest(&self) -> impl Iterator<Item = (Bytes, Option<Bytes>)> + '_ {
        self.entries.iter().map(|entry| (entry.key().clone(), entry.value().read().newest.value.clone()))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.size_bytes() == 0
    }

    pub(super) fn size_bytes(&self) -> usize {
        self.size_bytes.load(Ordering::Relaxed)
    }
}
