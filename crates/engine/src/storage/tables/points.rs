//! The points cache: values of the table file by key, so that a read of a hot key walks no tree.
//!
//! A walk costs some microseconds, most of them for finding pages; a value found here costs one lock of a shard and one copy.
//! The cache is bounded in bytes and gives up what was not asked for since the hand came by last (the clock's rule).
//!
//! # Why a view never gets another view's value
//!
//! Views are numbered: each fold begins by taking the next number, and the view that it leads to has that number. A cached
//! value says the number of the view it was read from, `since`. What must hold:
//!
//! > While a view numbered `n` is in use, a cached value with `since <= n` is what that view has under the key,
//! > and a value with `since > n` is not looked at.
//!
//! A fold (there is one at a time) does three things in this order: it takes the number `n` ([`Points::begin`]), it takes each
//! key that it writes out of the cache ([`Points::forget`]), and only when all is committed the view `n` is made. A value
//! read from a view `m` is put in under its shard's lock, and only if `m` is still the last number taken. So for a key that
//! fold `n` writes, a value with `since < n` was either put in before the fold locked the shard, and is then taken out; or it comes
//! after, sees the number `n` and is turned away. When view `n` appears, nothing older is left under the keys by which it
//! differs from the views before; by induction this holds for all views, and a value that lies there through several folds was
//! written by none of them. A fold that fails has taken values out for nothing, and numbers that no view has keep values
//! from being put in until the next view; neither shows anybody anything wrong.
//!
//! Nothing of this outlives the process, and what lies above the tables (the overlay, a transaction's own writes) is looked at
//! before them: a power cut, an unflushed commit and a transaction find here what they would find in the file.

use bytes::Bytes;
use hashbrown::{DefaultHashBuilder, HashTable};
use parking_lot::Mutex;
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU64, Ordering};

/// Independent parts, so that readers rarely wait for each other.
const SHARDS: usize = 64;
/// Values beyond this size are not kept: walking to them is the least of what they cost.
pub(super) const MAX_VALUE_BYTES: usize = 4096;
/// What an entry takes beside its bytes, roughly.
const ENTRY_OVERHEAD_BYTES: usize = 64;

/// The number of a view.
pub(super) type ViewNumber = u64;

/// See the module.
#[derive(Debug)]
pub(super) struct Points {
    shards: Box<[Mutex<Shard>]>,
    hasher: DefaultHashBuilder,
    /// The last number taken.
    latest: AtomicU64,
    /// The bound on each shard.
    shard_bytes: usize,
}

#[derive(Debug, Default)]
struct Shard {
    /// Places in `entries`, by the keys' hashes.
    places: HashTable<u32>,
    entries: Vec<Entry>,
    /// Places in `entries` that are empty.
    free: Vec<u32>,
    /// Where the clock's hand is.
    hand: usize,
    size_bytes: usize,
}

/// A key with its value; no bytes at all where the place is empty (an empty key with an empty value is simply never given up).
#[derive(Debug)]
struct Entry {
    hash: u64,
    since: ViewNumber,
    /// Whether it was asked for since the hand came by.
    wanted: bool,
    key_length: u32,
    /// The key, then the value.
    bytes: Box<[u8]>,
}

impl Entry {
    fn key(&self) -> &[u8] {
        &self.bytes[..self.key_length as usize]
    }

    fn value(&self) -> &[u8] {
        &self.bytes[self.key_length as usize..]
    }

    fn size_bytes(&self) -> usize {
        self.bytes.len() + ENTRY_OVERHEAD_BYTES
    }
}

impl Points {
    /// A cache of at most about that many bytes.
    pub(super) fn new(size_bytes: usize) -> Points {
        Points {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            hasher: DefaultHashBuilder::default(),
            latest: AtomicU64::new(0),
            shard_bytes: size_bytes / SHARDS,
        }
    }

    /// A fold begins: takes the number of the view that it leads to.
    pub(super) fn begin(&self) {
        self.latest.fetch_add(1, Ordering::AcqRel);
    }

    /// The number of the view that is made now, between two folds.
    pub(super) fn number(&self) -> ViewNumber {
        self.latest.load(Ordering::Acquire)
    }

    /// The fold that has begun writes a key.
    pub(super) fn forget(&self, key: &[u8]) {
        let hash = self.hasher.hash_one(key);
        self.shard(hash).lock().remove(hash, key);
    }

    /// The value of a key in a view, if it is known.
    pub(super) fn get(&self, key: &[u8], view: ViewNumber) -> Option<Bytes> {
        let hash = self.hasher.hash_one(key);
        let mut shard = self.shard(hash).lock();
        let place = shard.find(hash, key)?;
        let entry = &mut shard.entries[place as usize];
        if entry.since > view {
            return None;
        }
        entry.wanted = true;
        Some(Bytes::copy_from_slice(entry.value()))
    }

    /// Keeps what a view has under a key, unless a fold has begun since that view was made.
    pub(super) fn put(&self, key: &[u8], value: &[u8], view: ViewNumber) {
        let size_bytes = key.len() + value.len() + ENTRY_OVERHEAD_BYTES;
        if value.len() > MAX_VALUE_BYTES || size_bytes > self.shard_bytes {
            return;
        }
        let hash = self.hasher.hash_one(key);
        let mut bytes = Vec::with_capacity(key.len() + value.len());
        bytes.extend_from_slice(key);
        bytes.extend_from_slice(value);
        let key_length = key.len() as u32;
        let entry = Entry { hash, since: view, wanted: false, key_length, bytes: bytes.into_boxed_slice() };
        let mut shard = self.shard(hash).lock();
        if self.latest.load(Ordering::Acquire) != view {
            return;
        }
        shard.remove(hash, key);
        shard.insert(entry);
        while shard.size_bytes > self.shard_bytes {
            shard.give_up_one();
        }
    }

    fn shard(&self, hash: u64) -> &Mutex<Shard> {
        // The table in the shard uses the other end of the hash.
        &self.shards[(hash >> 32) as usize % SHARDS]
    }

    #[cfg(test)]
    pub(super) fn size_bytes(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().size_bytes).sum()
    }
}

impl Shard {
    fn find(&self, hash: u64, key: &[u8]) -> Option<u32> {
        let is_it = |place: &u32| {
            let entry = &self.entries[*place as usize];
            entry.hash == hash && entry.key() == key
        };
        self.places.find(hash, is_it).copied()
    }

    fn insert(&mut self, entry: Entry) {
        self.size_bytes += entry.size_bytes();
        let hash = entry.hash;
        let place = match self.free.pop() {
            Some(place) => {
                self.entries[place as usize] = entry;
                place
            }
            None => {
                self.entries.push(entry);
                (self.entries.len() - 1) as u32
            }
        };
        let entries = &self.entries;
        self.places.insert_unique(hash, place, |place| entries[*place as usize].hash);
    }

    fn remove(&mut self, hash: u64, key: &[u8]) {
        if let Some(place) = self.find(hash, key) {
            self.clear(place);
        }
    }

    /// Empties a place.
    fn clear(&mut self, place: u32) {
        let entry = &mut self.entries[place as usize];
        self.size_bytes -= entry.size_bytes();
        entry.bytes = Box::default();
        entry.key_length = 0;
        if let Ok(found) = self.places.find_entry(entry.hash, |other| *other == place) {
            found.remove();
        }
        self.free.push(place);
    }

    /// Moves the hand on to an entry that nobody asked for since it came by last, and gives that up.
    fn give_up_one(&mut self) {
        loop {
            self.hand = (self.hand + 1) % self.entries.len();
            let entry = &mut self.entries[self.hand];
            if !std::mem::take(&mut entry.wanted) && !entry.bytes.is_empty() {
                return self.clear(self.hand as u32);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn got(points: &Points, key: &[u8], view: ViewNumber) -> Option<Vec<u8>> {
        points.get(key, view).map(|value| value.to_vec())
    }

    #[test]
    fn a_fold_takes_out_what_it_writes_and_leaves_the_rest_for_old_and_new_views() {
        let points = Points::new(1 << 20);
        points.put(b"a", b"1", 0);
        points.put(b"b", b"1", 0);
        points.begin();
        points.forget(b"a");
        let view = points.number();
        assert_eq!(got(&points, b"a", view), None);
        assert_eq!(got(&points, b"a", 0), None);
        assert_eq!(got(&points, b"b", view), Some(b"1".to_vec()));
        assert_eq!(got(&points, b"b", 0), Some(b"1".to_vec()));
        points.put(b"a", b"2", view);
        assert_eq!(got(&points, b"a", view), Some(b"2".to_vec()));
        assert_eq!(got(&points, b"a", 0), None, "the older view has another value");
    }

    #[test]
    fn a_reader_that_is_late_puts_nothing_in() {
        let points = Points::new(1 << 20);
        points.begin();
        points.forget(b"a");
        points.put(b"a", b"old", 0);
        assert_eq!(got(&points, b"a", points.number()), None);
    }

    #[test]
    fn the_bound_holds_and_what_is_asked_for_stays() {
        let points = Points::new(64 * SHARDS * 1024);
        let hot = |number: u32| number.to_be_bytes();
        for number in 0..20_000_u32 {
            points.put(&number.to_be_bytes(), &[7; 500], 0);
            points.get(&hot(3), 0);
            assert!(number % 1000 > 0 || points.size_bytes() <= 64 * SHARDS * 1024);
        }
        assert!(points.get(&hot(3), 0).is_some());
        let kept = (0..20_000_u32).filter(|number| points.get(&number.to_be_bytes(), 0).is_some()).count();
        assert!((4_000..9_000).contains(&kept), "{kept}");
        points.put(b"large", &[1; MAX_VALUE_BYTES + 1], 0);
        assert_eq!(points.get(b"large", 0), None);
    }
}
