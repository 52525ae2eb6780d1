//! A segment of the log: a preallocated file that records are appended to.
//!
//! ```text
//!  0  magic     8 bytes  "SHEAFLOG"
//!  8  version   u32
//! 12  crc32c    u32      of bytes 16 to 64
//! 16  number    u64      segments are numbered without gaps
//! 24  zeros
//! 64  records, then zeros to the end
//! ```

use super::record::{self, Header};
use crate::error::{Code, Error, Result};
use crate::storage::medium::{Medium, MediumFile};
use crate::storage::{Flush, Position};
use parking_lot::Mutex;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Where the first record begins.
pub(super) const HEADER_BYTES: u64 = 64;
/// The version of the segment's and the records' format.
const VERSION: u32 = 1;
const MAGIC: [u8; 8] = *b"SHEAFLOG";
/// The beginning of a segment's file name; its number follows.
const NAME_PREFIX: &str = "log.";
/// Zeros are written in pieces of this size.
const ZEROS_BYTES: u64 = 1 << 20;
/// The distance of the marks at which a reader can enter a segment.
const MARK_DISTANCE_BYTES: u64 = 256 << 10;

#[derive(Debug)]
pub(super) struct Segment {
    pub(super) number: u64,
    pub(super) capacity: u64,
    file: Arc<dyn MediumFile>,
    /// The end of what is written and claimed.
    claimed: AtomicU64,
    /// The end of the flushed records.
    written: AtomicU64,
    marks: Mutex<Marks>,
    /// Whether the segment after this one has been asked for.
    pub(super) successor_wanted: AtomicBool,
}

#[derive(Default, Debug)]
struct Marks {
    first: Option<Mark>,
    /// Some of those between, in order.
    entrances: Vec<Mark>,
}

/// A record's place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    pub(super) position: Position,
    pub(super) time: u64,
    pub(super) offset: u64,
}

/// A segment's file name.
pub(super) fn name(number: u64) -> String {
    format!("{NAME_PREFIX}{number:010}")
}

/// The number in a segment's file name; `None` for other files.
pub(super) fn number(name: &str) -> Option<u64> {
    name.strip_prefix(NAME_PREFIX)?.parse().ok()
}

impl Segment {
    fn new(number: u64, file: Arc<dyn MediumFile>, capacity: u64) -> Segment {
        Segment {
            number,
            capacity,
            file,
            claimed: AtomicU64::new(HEADER_BYTES),
            written: AtomicU64::new(HEADER_BYTES),
            marks: Mutex::default(),
            successor_wanted: AtomicBool::new(false),
        }
    }

    /// Creates an empty segment of a size, durably, so that later writes into it need no more room.
    pub(super) fn create(medium: &dyn Medium, number: u64, capacity: u64, flush: Flush) -> Result<Segment> {
        let created = Segment::try_create(medium, number, capacity, flush);
        created.map_err(|error| {
            // What there is of it would only take room; opening would remove it as well.
            medium.remove(&name(number)).ok();
            Error::from(error).context("the log can't grow; make room on its disk: nothing was written")
        })
    }

    fn try_create(medium: &dyn Medium, number: u64, capacity: u64, flush: Flush) -> io::Result<Segment> {
        let file = medium.open(&name(number))?;
        file.resize(0)?;
        if flush == Flush::Durable {
            write_zeros(&*file, 0, capacity)?;
        } else {
            file.resize(capacity)?;
        }
        file.write(0, &encode_header(number))?;
        if flush == Flush::Durable {
            file.sync()?;
            medium.sync()?;
        }
        Ok(Segment::new(number, file, capacity))
    }

    /// Opens an existing file; the flag says whether its header is complete.
    ///
    /// Errors: `UnsupportedFormat` for another version.
    pub(super) fn open(medium: &dyn Medium, number: u64) -> Result<(Segment, bool)> {
        let file = medium.open(&name(number))?;
        let capacity = file.size()?;
        let mut header = [0; HEADER_BYTES as usize];
        if capacity >= HEADER_BYTES {
            file.read(0, &mut header)?;
        }
        let begun = check_header(&header, number)?;
        Ok((Segment::new(number, file, capacity), begun))
    }

    /// Claims room for a record; whether there was enough. Only the holder of the writer lock calls it.
    pub(super) fn claim(&self, bytes: u64) -> bool {
        let fits = self.claimed.load(Ordering::Relaxed) + bytes <= self.capacity;
        if fits {
            self.claimed.fetch_add(bytes, Ordering::Relaxed);
        }
        fits
    }

    /// Gives back what a record didn't need of its claim.
    pub(super) fn unclaim(&self, bytes: u64) {
        self.claimed.fetch_sub(bytes, Ordering::Relaxed);
    }

    pub(super) fn is_half_full(&self) -> bool {
        self.claimed.load(Ordering::Relaxed) > self.capacity / 2
    }

    /// The end of the flushed records.
    pub(super) fn written(&self) -> u64 {
        self.written.load(Ordering::Acquire)
    }

    /// Records up to an offset are flushed.
    pub(super) fn set_written(&self, end: u64) {
        assert!(end <= self.capacity, "records stay within what was claimed");
        self.written.store(end, Ordering::Release);
    }

    /// After recovery: nothing is claimed beyond what is written.
    pub(super) fn settle(&self, end: u64) {
        self.set_written(end);
        self.claimed.store(end, Ordering::Relaxed);
    }

    pub(super) fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.write(offset, bytes)
    }

    pub(super) fn sync(&self) -> io::Result<()> {
        self.file.sync()
    }

    /// Overwrites everything from an offset on with zeros.
    pub(super) fn erase(&self, from: u64) -> io::Result<()> {
        write_zeros(&*self.file, from, self.capacity)
    }

    /// Remembers where a record lies.
    pub(super) fn mark(&self, mark: Mark) {
        let mut marks = self.marks.lock();
        marks.first.get_or_insert(mark);
        let entered = marks.entrances.last().map_or(HEADER_BYTES, |entrance| entrance.offset);
        if mark.offset >= entered + MARK_DISTANCE_BYTES {
            marks.entrances.push(mark);
        }
    }

    pub(super) fn first(&self) -> Option<Mark> {
        self.marks.lock().first
    }

    /// The last of the marks of which `before` holds, which it does for a prefix: the offset from which to read on, and
    /// its position. Without one it is the first record.
    pub(super) fn entrance(&self, before: impl Fn(&Mark) -> bool) -> (u64, Option<Position>) {
        let marks = self.marks.lock();
        let count = marks.entrances.partition_point(before);
        let mark = count.checked_sub(1).map(|last| marks.entrances[last]).or(marks.first);
        (mark.map_or(HEADER_BYTES, |mark| mark.offset), mark.map(|mark| mark.position))
    }
}

fn write_zeros(file: &dyn MediumFile, from: u64, to: u64) -> io::Result<()> {
    let zeros = vec![0; ZEROS_BYTES.min(to - from) as usize];
    let mut offset = from;
    while offset < to {
        let length = (to - offset).min(ZEROS_BYTES);
        file.write(offset, &zeros[..length as usize])?;
        offset += length;
    }
    Ok(())
}

fn encode_header(number: u64) -> [u8; HEADER_BYTES as usize] {
    let mut header = [0; HEADER_BYTES as usize];
    header[0..8].copy_from_slice(&MAGIC);
    header[8..12].copy_from_slice(&VERSION.to_le_bytes());
    header[16..24].copy_from_slice(&number.to_le_bytes());
    let checksum = crc32c::crc32c(&header[16..]);
    header[12..16].copy_from_slice(&checksum.to_le_bytes());
    header
}

/// Whether a header is complete; it isn't if a crash interrupted the segment's creation.
fn check_header(header: &[u8; HEADER_BYTES as usize], number: u64) -> Result<bool> {
    if header[0..8] != MAGIC {
        return Ok(false);
    }
    let version = u32::from_le_bytes(header[8..12].try_into().expect("four bytes"));
    let intact = header[12..16] == crc32c::crc32c(&header[16..]).to_le_bytes();
    if intact && version != VERSION {
        return Err(Error::new(
            Code::UNSUPPORTED_FORMAT,
            format!(
                "{} has format {version}, this release reads format {VERSION}: use the release that wrote it",
                name(number)
            ),
        ));
    }
    Ok(intact && header[16..24] == number.to_le_bytes())
}

/// Reads a segment's records one after the other.
#[derive(Debug)]
pub(super) struct Scanner {
    pub(super) segment: Arc<Segment>,
    pub(super) offset: u64,
    window: Vec<u8>,
    window_start: u64,
}

/// How much is read at a time.
const WINDOW_BYTES: usize = 128 << 10;

impl Scanner {
    pub(super) fn new(segment: Arc<Segment>, offset: u64) -> Scanner {
        Scanner { segment, offset, window: Vec::new(), window_start: 0 }
    }

    /// The whole record at the offset, if there is a valid one that ends before `limit`.
    pub(super) fn peek(&mut self, limit: u64) -> io::Result<Option<(Header, &[u8])>> {
        let limit = limit.min(self.segment.capacity);
        if self.offset + record::HEADER_BYTES as u64 > limit {
            return Ok(None);
        }
        let Some(header) = record::parse_header(self.load(record::HEADER_BYTES, limit)?) else {
            return Ok(None);
        };
        if self.offset + header.total_bytes() as u64 > limit {
            return Ok(None);
        }
        let bytes = self.load(header.checked_bytes(), limit)?;
        Ok(header.matches(bytes).then_some((header, bytes)))
    }

    /// Steps over a record.
    pub(super) fn skip(&mut self, header: &Header) {
        self.offset += header.total_bytes() as u64;
    }

    /// The bytes at the offset, at least `length`, which lie before `limit`.
    fn load(&mut self, length: usize, limit: u64) -> io::Result<&[u8]> {
        let loaded = self.window_start..self.window_start + self.window.len() as u64;
        if !(loaded.contains(&self.offset) && self.offset + length as u64 <= loaded.end) {
            let available = usize::try_from(limit - self.offset).unwrap_or(usize::MAX);
            self.window.resize(length.max(WINDOW_BYTES).min(available), 0);
            self.window_start = self.offset;
            let read = self.segment.file.read(self.offset, &mut self.window);
            if let Err(error) = read {
                self.window.clear();
                return Err(error);
            }
        }
        let start = (self.offset - self.window_start) as usize;
        Ok(&self.window[start..])
    }

    /// Looks through everything from the offset on, record or not.
    pub(super) fn survey(&mut self) -> io::Result<Survey> {
        let mut survey = Survey { dirty: false, records: 0, flushed: 0 };
        self.offset = self.offset.next_multiple_of(record::ALIGNMENT as u64);
        while self.offset < self.segment.capacity {
            let limit = self.segment.capacity;
            let rest = self.load(1, limit)?;
            let used = rest.iter().position(|byte| *byte != 0);
            match used {
                None => self.offset += rest.len() as u64,
                Some(used) => {
                    survey.dirty = true;
                    self.offset += (used - used % record::ALIGNMENT) as u64;
                    let found = self.peek(limit)?.map(|(header, _)| header);
                    if let Some(header) = found {
                        survey.records += 1;
                        survey.flushed = survey.flushed.max(header.flushed);
                    }
                    self.offset += record::ALIGNMENT as u64;
                }
            }
        }
        Ok(survey)
    }
}

/// What lies beyond the end of the log.
#[derive(Debug)]
pub(super) struct Survey {
    /// Whether there is anything but zeros.
    pub(super) dirty: bool,
    /// How many valid records there are.
    pub(super) records: u64,
    /// The greatest position that one of them says had been flushed.
    pub(super) flushed: Position,
}
