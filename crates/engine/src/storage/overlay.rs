//! The overlay: what is logged but not folded into the tables yet, in memory, by key and position.
//!
//! It consists of generations. The writer fills the active one; when that is large enough it is frozen, a new one
//! becomes active, and the folder writes the frozen one into the tables and drops it. Nothing is ever removed from a
//! generation, so readers need no lock on the map; each key has its versions behind a lock of its own, held for a
//! few instructions. Most keys that are asked for aren't in a generation: a filter says so for the price of one cache
//! line, where the map would cost some twenty.

use super::Position;
use super::view::Direction;
use bytes::Bytes;
use crossbeam_skiplist::SkipMap;
use parking_lot::RwLock;
use std::borrow::Borrow;
use std::cmp;
use std::ops::Bound;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// What a version costs beyond its key's and value's bytes, roughly.
const VERSION_OVERHEAD_BYTES: usize = 160;

/// Bytes of an overlay for each bit of its filter: about ten bits for a small entry.
const FILTER_RATIO: usize = 20;

/// The commits between two positions.
pub(super) struct Generation {
    entries: SkipMap<Key, RwLock<Versions>>,
    filter: Filter,
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
    /// An empty generation, fit for about that many bytes.
    pub(super) fn new(expected_bytes: usize) -> Generation {
        Generation {
            entries: SkipMap::new(),
            filter: Filter::new(expected_bytes / FILTER_RATIO),
            size_bytes: AtomicUsize::new(0),
        }
    }

    /// Adds a version. Only the holder of the writer lock may call this, with positions that never decrease.
    pub(super) fn put(&self, key: Bytes, value: Option<Bytes>, position: Position) {
        let size = key.len() + value.as_ref().map_or(0, Bytes::len) + VERSION_OVERHEAD_BYTES;
        self.size_bytes.fetch_add(size, Ordering::Relaxed);
        let version = Version { position, value };
        // Most keys are new, which the filter knows without a way through the map.
        let known = if self.filter.may_have(&key) { self.entries.get::<[u8]>(&key) } else { None };
        match known {
            None => {
                self.filter.add(&key);
                self.entries.insert(Key::new(key), RwLock::new(Versions { newest: version, older: Vec::new() }));
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
        if !self.filter.may_have(key) {
            return None;
        }
        self.entries.get(key).and_then(|entry| entry.value().read().at(position))
    }

    pub(super) fn range(
        &self,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
        direction: Direction,
        position: Position,
    ) -> impl Iterator<Item = (Bytes, Option<Bytes>)> + Send + '_ {
        let bounds = (from.map(Key::copy), to.map(Key::copy));
        let mut entries = self.entries.range::<Key, _>(bounds);
        std::iter::from_fn(move || {
            loop {
                let entry = match direction {
                    Direction::Forward => entries.next(),
                    Direction::Backward => entries.next_back(),
                }?;
                let version = entry.value().read().at(position);
                if let Some(value) = version {
                    return Some((entry.key().to_bytes(), value));
                }
            }
        })
    }

    /// The newest version of each key, in key order: what the folder writes into the tables.
    pub(super) fn newest(&self) -> impl Iterator<Item = (Bytes, Option<Bytes>)> + '_ {
        self.entries.iter().map(|entry| (entry.key().to_bytes(), entry.value().read().newest.value.clone()))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.size_bytes() == 0
    }

    pub(super) fn size_bytes(&self) -> usize {
        self.size_bytes.load(Ordering::Relaxed)
    }
}

/// Keys up to this length lie in the map's nodes, where comparing them costs no further cache line.
const INLINE_BYTES: usize = 46;

/// A key in the map.
enum Key {
    Inline { length: u8, bytes: [u8; INLINE_BYTES] },
    Shared(Bytes),
}

impl Key {
    fn new(key: Bytes) -> Key {
        Key::inline(&key).unwrap_or(Key::Shared(key))
    }

    fn copy(key: &[u8]) -> Key {
        Key::inline(key).unwrap_or_else(|| Key::Shared(Bytes::copy_from_slice(key)))
    }

    fn inline(key: &[u8]) -> Option<Key> {
        let mut bytes = [0; INLINE_BYTES];
        bytes.get_mut(..key.len())?.copy_from_slice(key);
        Some(Key::Inline { length: key.len() as u8, bytes })
    }

    fn to_bytes(&self) -> Bytes {
        match self {
            Key::Inline { .. } => Bytes::copy_from_slice(self.borrow()),
            Key::Shared(key) => key.clone(),
        }
    }
}

impl Borrow<[u8]> for Key {
    fn borrow(&self) -> &[u8] {
        match self {
            Key::Inline { length, bytes } => &bytes[..usize::from(*length)],
            Key::Shared(key) => key,
        }
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Key) -> cmp::Ordering {
        Borrow::<[u8]>::borrow(self).cmp(other.borrow())
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Key) -> Option<cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Key) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Key {}

/// A Bloom filter whose bits for a key lie in one cache line. Readers see the bits of what is published to them,
/// because publishing orders memory.
struct Filter {
    blocks: Box<[Block]>,
}

/// A cache line of bits.
#[derive(Default)]
#[repr(align(64))]
struct Block([AtomicU64; 8]);

/// Bits set for each key.
const PROBES: u32 = 5;

impl Filter {
    fn new(bits: usize) -> Filter {
        let blocks = (0..=bits / 512).map(|_| Block::default()).collect();
        Filter { blocks }
    }

    fn add(&self, key: &[u8]) {
        let (block, mut probes) = self.place(key);
        for _ in 0..PROBES {
            block.0[(probes >> 6) as usize & 7].fetch_or(1 << (probes & 63), Ordering::Relaxed);
            probes >>= 9;
        }
    }

    fn may_have(&self, key: &[u8]) -> bool {
        let (block, mut probes) = self.place(key);
        (0..PROBES).all(|_| {
            let bit = block.0[(probes >> 6) as usize & 7].load(Ordering::Relaxed) >> (probes & 63) & 1;
            probes >>= 9;
            bit == 1
        })
    }

    /// A key's block, and the bits within it, nine of the result for each.
    fn place(&self, key: &[u8]) -> (&Block, u64) {
        let mut mixed = u64::from(crc32c::crc32c(key)) ^ (key.len() as u64) << 32;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        let block = ((mixed >> 48) * self.blocks.len() as u64) >> 16;
        (&self.blocks[block as usize], mixed & ((1 << 48) - 1))
    }
}
