//! A record of the log: its bytes, and how they are checked.
//!
//! ```text
//!  0  magic        u32   "SFR1"
//!  4  crc32c       u32   of all that follows, up to the padding
//!  8  stored_bytes u32   the payload as it lies here
//! 12  full_bytes   u32   the payload unpacked; equal to stored_bytes if it isn't compressed
//! 16  position     u64
//! 24  flushed      u64   the last position known to be flushed when this record was written
//! 32  time         u64
//! 40  payload            lz4 block if full_bytes > stored_bytes, then zeros up to a multiple of 8 bytes
//! ```
//! Numbers are little-endian. The payload: note (length, bytes), count of writes, then for each write the key (length,
//! bytes) and the value (0 for a delete, else length + 1, bytes). Lengths and counts are LEB128.

use crate::error::{Error, Result};
use crate::storage::{Changes, MAX_COMMIT_BYTES, Position};
use bytes::{Buf, Bytes};
use lz4_flex::block::{CompressTable, compress_into_with_table, get_maximum_output_size};

/// Bytes before the payload.
pub(super) const HEADER_BYTES: usize = 40;
/// Records begin at multiples of this.
pub(super) const ALIGNMENT: usize = 8;
/// A payload smaller than this is never compressed: that of a small commit costs a fifth of its processor time, and saves a third
/// of a few hundred bytes.
const COMPRESS_FROM_BYTES: usize = 4096;
/// What is kept from one record to the next takes no more than this.
const MAX_KEPT_BYTES: usize = 1 << 20;
/// The bound on a record: a commit's bytes, and at most as many for the lengths of its keys and values.
pub(super) const MAX_RECORD_BYTES: u64 = 2 * MAX_COMMIT_BYTES as u64;

const MAGIC: [u8; 4] = *b"SFR1";
/// The longest LEB128 of a 64-bit number.
const MAX_NUMBER_BYTES: usize = 10;

/// A flushed commit, as the log holds it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Record {
    /// The commit's position.
    pub position: Position,
    /// The commit's time.
    pub time: u64,
    /// The commit's note.
    pub note: Bytes,
    /// The commit's writes.
    pub writes: Vec<(Bytes, Option<Bytes>)>,
}

/// The checked header of a record.
#[derive(Clone, Copy, Debug)]
pub(super) struct Header {
    pub(super) position: Position,
    pub(super) flushed: Position,
    pub(super) time: u64,
    stored_bytes: usize,
    full_bytes: usize,
}

/// The most bytes that a commit's record can take.
pub(super) fn bound(changes: &Changes) -> u64 {
    let numbers = 2 + 2 * changes.writes.len();
    (HEADER_BYTES + changes.size_bytes() + numbers * MAX_NUMBER_BYTES + ALIGNMENT) as u64
}

/// What is used for one record after the other.
#[derive(Default)]
pub(crate) struct Encoder {
    table: CompressTable,
    packed: Vec<u8>,
}

impl Encoder {
    /// Replaces what begins at a place by its compressed form, if that is clearly smaller.
    fn pack(&mut self, out: &mut Vec<u8>, start: usize) {
        let full = &out[start..];
        let room = get_maximum_output_size(full.len());
        if self.packed.len() < room {
            self.packed.resize(room, 0);
        }
        let most = full.len() - full.len() / 8;
        match compress_into_with_table(full, &mut self.packed, &mut self.table) {
            Ok(bytes) if bytes < most => {
                out.truncate(start);
                out.extend_from_slice(&self.packed[..bytes]);
            }
            // It stays as it is.
            Ok(_) | Err(_) => {}
        }
        if self.packed.len() > MAX_KEPT_BYTES {
            self.packed = Vec::new();
        }
    }
}

/// Appends a commit's record.
pub(super) fn encode(
    position: Position,
    flushed: Position,
    changes: &Changes,
    encoder: &mut Encoder,
    out: &mut Vec<u8>,
) {
    let start = out.len();
    assert!(start.is_multiple_of(ALIGNMENT) && flushed < position, "records are aligned and precede their flush");
    out.resize(start + HEADER_BYTES, 0);
    encode_payload(changes, out);
    let payload_start = start + HEADER_BYTES;
    let full_bytes = out.len() - payload_start;
    if full_bytes >= COMPRESS_FROM_BYTES {
        encoder.pack(out, payload_start);
    }
    let stored_bytes = out.len() - payload_start;
    let header = &mut out[start..payload_start];
    header[0..4].copy_from_slice(&MAGIC);
    header[8..12].copy_from_slice(&length32(stored_bytes));
    header[12..16].copy_from_slice(&length32(full_bytes));
    header[16..24].copy_from_slice(&position.to_le_bytes());
    header[24..32].copy_from_slice(&flushed.to_le_bytes());
    header[32..40].copy_from_slice(&changes.time.to_le_bytes());
    let checksum = crc32c::crc32c(&out[start + 8..]);
    out[start + 4..start + 8].copy_from_slice(&checksum.to_le_bytes());
    out.resize(out.len().next_multiple_of(ALIGNMENT), 0);
}

fn length32(length: usize) -> [u8; 4] {
    u32::try_from(length).expect("a commit is bounded").to_le_bytes()
}

fn encode_payload(changes: &Changes, out: &mut Vec<u8>) {
    put_number(changes.note.len() as u64, out);
    out.extend_from_slice(&changes.note);
    put_number(changes.writes.len() as u64, out);
    for (key, value) in &changes.writes {
        put_number(key.len() as u64, out);
        out.extend_from_slice(key);
        match value {
            None => put_number(0, out),
            Some(value) => {
                put_number(value.len() as u64 + 1, out);
                out.extend_from_slice(value);
            }
        }
    }
}

/// Reads a header's fields without checking more than that they are possible.
pub(super) fn parse_header(bytes: &[u8]) -> Option<Header> {
    if bytes.len() < HEADER_BYTES || bytes[0..4] != MAGIC {
        return None;
    }
    let number32 = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes")) as usize;
    let number64 = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
    let header = Header {
        stored_bytes: number32(8),
        full_bytes: number32(12),
        position: number64(16),
        flushed: number64(24),
        time: number64(32),
    };
    let possible = header.stored_bytes <= header.full_bytes
        && header.full_bytes as u64 <= MAX_RECORD_BYTES
        && header.flushed < header.position;
    possible.then_some(header)
}

impl Header {
    /// The record's bytes without padding.
    pub(super) fn checked_bytes(&self) -> usize {
        HEADER_BYTES + self.stored_bytes
    }

    /// The record's bytes with padding.
    pub(super) fn total_bytes(&self) -> usize {
        self.checked_bytes().next_multiple_of(ALIGNMENT)
    }

    /// Whether a record's bytes are what was written. `bytes` holds at least `checked_bytes`.
    pub(super) fn matches(&self, bytes: &[u8]) -> bool {
        bytes[4..8] == crc32c::crc32c(&bytes[8..self.checked_bytes()]).to_le_bytes()
    }

    /// Unpacks a record whose checksum matched.
    pub(super) fn decode(&self, record: &[u8]) -> Result<Record> {
        let stored = &record[HEADER_BYTES..self.checked_bytes()];
        let payload = if self.stored_bytes == self.full_bytes {
            Bytes::copy_from_slice(stored)
        } else {
            let unpacked = lz4_flex::block::decompress(stored, self.full_bytes);
            Bytes::from(unpacked.map_err(|error| self.broken(&error.to_string()))?)
        };
        decode_payload(payload, self).ok_or_else(|| self.broken("a length exceeds the payload"))
    }

    fn broken(&self, why: &str) -> Error {
        Error::internal(format!("record {} of the log has the right checksum but can't be read: {why}", self.position))
    }
}

fn decode_payload(mut payload: Bytes, header: &Header) -> Option<Record> {
    let note = take_bytes(&mut payload)?;
    let count = usize::try_from(take_number(&mut payload)?).ok()?;
    let mut writes = Vec::with_capacity(count.min(payload.len()));
    for _ in 0..count {
        let key = take_bytes(&mut payload)?;
        let value = match take_number(&mut payload)? {
            0 => None,
            length => Some(take(&mut payload, length - 1)?),
        };
        writes.push((key, value));
    }
    payload.is_empty().then_some(Record { position: header.position, time: header.time, note, writes })
}

fn put_number(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn take_number(payload: &mut Bytes) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let byte = payload.try_get_u8().ok()?;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

fn take_bytes(payload: &mut Bytes) -> Option<Bytes> {
    let length = take_number(payload)?;
    take(payload, length)
}

fn take(payload: &mut Bytes, length: u64) -> Option<Bytes> {
    let length = usize::try_from(length).ok()?;
    (length <= payload.len()).then(|| payload.split_to(length))
}
