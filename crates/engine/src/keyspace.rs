//! Where everything lies in the storage's one ordered key space.
//!
//! | key | value |
//! |---|---|
//! | `01` collection id | a collection's entry in the catalogue (BSON) |
//! | `02` name | a setting of the whole database (BSON) |
//! | `10` collection id, record key | a document |
//! | `11` collection id, group, number | a packed bucket of a time series (see [`crate::series`]) |
//! | `18` collection id, encoded `_id` | the record key: the `_id` index |
//! | `20` index id, encoded key fields, record key | what the key alone can't tell (see [`crate::key`]) |
//! | `30` session id, statement number | a retryable write's recorded result |
//!
//! Ids are four bytes, big-endian, never used twice. A record key is a record number of eight bytes, big-endian, in the order of
//! insertion; in a clustered collection it is the encoded `_id`, in a time series the group and a number.

use bytes::Bytes;
use std::ops::Bound;

/// The catalogue.
pub const CATALOG: u8 = 0x01;
/// Settings of the whole database.
pub const SETTINGS: u8 = 0x02;
/// Documents by record key.
pub const RECORDS: u8 = 0x10;
/// Packed buckets of time series.
pub const BUCKETS: u8 = 0x11;
/// The `_id` indexes.
pub const IDS: u8 = 0x18;
/// All other indexes.
pub const INDEXES: u8 = 0x20;
/// Recorded results of retryable writes.
pub const SESSIONS: u8 = 0x30;

/// What begins a layer's setting.
const LAYER: &[u8] = b"layer.";

/// How long the part before the record key of a document's key is.
pub const RECORD_PREFIX_BYTES: usize = 5;

/// The prefix of a kind's entries for one collection or index.
pub fn prefix(kind: u8, id: u32) -> [u8; 5] {
    let mut prefix = [kind; 5];
    prefix[1..].copy_from_slice(&id.to_be_bytes());
    prefix
}

/// A prefix with a rest after it.
pub fn key(kind: u8, id: u32, rest: &[u8]) -> Bytes {
    let mut key = Vec::with_capacity(5 + rest.len());
    key.extend_from_slice(&prefix(kind, id));
    key.extend_from_slice(rest);
    Bytes::from(key)
}

/// A document's key.
pub fn record(collection: u32, record_key: &[u8]) -> Bytes {
    key(RECORDS, collection, record_key)
}

/// The key of an `_id` index entry.
pub fn id(collection: u32, encoded_id: &[u8]) -> Bytes {
    key(IDS, collection, encoded_id)
}

/// The key of an entry of any other index.
pub fn index(index: u32, encoded_key: &[u8], record_key: &[u8]) -> Bytes {
    let mut key = Vec::with_capacity(5 + encoded_key.len() + record_key.len());
    key.extend_from_slice(&prefix(INDEXES, index));
    key.extend_from_slice(encoded_key);
    key.extend_from_slice(record_key);
    Bytes::from(key)
}

/// The setting that says that the engine opens only together with a hook of that layer.
pub fn layer(name: &str) -> Bytes {
    key(SETTINGS, 0, &[LAYER, name.as_bytes()].concat())
}

/// The name of a layer from the rest of its setting's key.
pub fn layer_name(rest: &[u8]) -> Option<&str> {
    std::str::from_utf8(rest.strip_prefix(LAYER)?).ok()
}

/// The least key above all that begin with `prefix`; `None` when there is none.
pub fn after_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|byte| *byte != 0xff)?;
    let mut end = prefix[..=last].to_vec();
    end[last] += 1;
    Some(end)
}

/// The bounds of all keys that begin with `prefix`; the upper one is made in `end`.
pub fn bounds<'k>(prefix: &'k [u8], end: &'k mut Option<Vec<u8>>) -> (Bound<&'k [u8]>, Bound<&'k [u8]>) {
    *end = after_prefix(prefix);
    (Bound::Included(prefix), end.as_deref().map_or(Bound::Unbounded, Bound::Excluded))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_prefix_is_above_every_key_in_it() {
        assert_eq!(after_prefix(&[1, 2]), Some(vec![1, 3]));
        assert_eq!(after_prefix(&[1, 0xff]), Some(vec![2]));
        assert_eq!(after_prefix(&[0xff, 0xff]), None);
    }
}
