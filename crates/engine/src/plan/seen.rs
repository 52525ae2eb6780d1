//! The records that a plan has given already, where it may come upon one twice.
//!
//! Most record keys are numbers of eight bytes in the order of insertion: those lie in blocks of 65,536 numbers, as a
//! sorted list while there are few of a block and as a bitmap once there are many, so that a whole collection takes an
//! eighth of a byte a document. Other keys, of clustered collections, are held as they are. What it may take is bounded.

use crate::error::{Code, Error, Result};
use bytes::Bytes;
use std::collections::{BTreeMap, HashSet};

/// The most bytes that the records seen may take.
pub(crate) const MAX_SEEN_BYTES: usize = 100 * 1024 * 1024;

/// The numbers of a block that are listed; more become a bitmap, which takes as much as 4,096 of them.
const MAX_LISTED: usize = 1024;

/// The words of a block's bitmap.
const WORDS: usize = 1024;

/// What a block or a key takes beside its content, roughly.
const OVERHEAD_BYTES: usize = 64;

/// A set of record keys.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    blocks: BTreeMap<u64, Block>,
    keys: HashSet<Bytes>,
    bytes: usize,
}

/// The numbers of a block, by their last sixteen bits.
#[derive(Debug)]
enum Block {
    Listed(Vec<u16>),
    Marked(Box<[u64; WORDS]>),
}

impl Seen {
    /// Adds a record; false if it was there.
    ///
    /// # Errors
    /// `QueryExceededMemoryLimitNoDiskUseAllowed` (292) beyond [`MAX_SEEN_BYTES`].
    pub(crate) fn insert(&mut self, record: &Bytes) -> Result<bool> {
        let is_new = match <[u8; 8]>::try_from(&record[..]) {
            Ok(number) => self.insert_number(u64::from_be_bytes(number)),
            Err(_) => {
                let is_new = !self.keys.contains(record);
                if is_new {
                    // A copy, so that the page or chunk that the key came with is not kept.
                    self.keys.insert(Bytes::copy_from_slice(record));
                    self.bytes += record.len() + OVERHEAD_BYTES;
                }
                is_new
            }
        };
        if self.bytes > MAX_SEEN_BYTES {
            return Err(Error::new(
                Code::QUERY_EXCEEDED_MEMORY_LIMIT_NO_DISK_USE_ALLOWED,
                format!(
                    "the query came upon so many documents that remembering which would take more than {MAX_SEEN_BYTES} bytes; \
                     narrow the filter, or hint {{$natural: 1}} to read the collection once"
                ),
            ));
        }
        Ok(is_new)
    }

    fn insert_number(&mut self, number: u64) -> bool {
        let low = number as u16;
        let bytes = &mut self.bytes;
        let block = self.blocks.entry(number >> 16).or_insert_with(|| {
            *bytes += OVERHEAD_BYTES;
            Block::Listed(Vec::new())
        });
        match block {
            Block::Marked(words) => mark(words, low),
            Block::Listed(list) => {
                let Err(place) = list.binary_search(&low) else { return false };
                if list.len() < MAX_LISTED {
                    list.insert(place, low);
                    *bytes += size_of::<u16>();
                } else {
                    let mut words = Box::new([0; WORDS]);
                    for known in list.iter() {
                        mark(&mut words, *known);
                    }
                    mark(&mut words, low);
                    *bytes += size_of_val(&*words) - MAX_LISTED * size_of::<u16>();
                    *block = Block::Marked(words);
                }
                true
            }
        }
    }
}

/// Sets a bit; false if it was set.
fn mark(words: &mut [u64; WORDS], low: u16) -> bool {
    let word = &mut words[usize::from(low >> 6)];
    let bit = 1 << (low & 63);
    let is_new = *word & bit == 0;
    *word |= bit;
    is_new
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_a_set_of_numbers_and_of_other_keys() {
        let mut seen = Seen::default();
        let mut plain = HashSet::new();
        let mut number = 1_u64;
        for step in 0..200_000_u64 {
            number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(step);
            let record = Bytes::copy_from_slice(&(number >> 46).to_be_bytes());
            assert_eq!(seen.insert(&record).unwrap(), plain.insert(record));
        }
        for key in [&b"a"[..], b"b", b"a longer key than eight bytes", b""] {
            assert!(seen.insert(&Bytes::copy_from_slice(key)).unwrap());
            assert!(!seen.insert(&Bytes::copy_from_slice(key)).unwrap());
        }
    }

    #[test]
    fn a_whole_collection_takes_little_and_too_many_scattered_keys_are_refused() {
        let mut seen = Seen::default();
        for number in 0..2_000_000_u64 {
            assert!(seen.insert(&Bytes::copy_from_slice(&number.to_be_bytes())).unwrap());
        }
        assert!(seen.bytes < 300_000, "{}", seen.bytes);
        let failed = (0..2_000_000_u64).find_map(|number| seen.insert(&Bytes::from(format!("key {number:020}"))).err());
        assert_eq!(failed.unwrap().code.0, 292);
    }
}
