//! The log: every commit in order, flushed before anyone sees it.
//!
//! Room is claimed before a commit is executed, in a segment that was filled with zeros and flushed beforehand. So a
//! full disk refuses a commit before anything depends on it, and a flush writes into blocks that exist.

mod reader;
mod record;
mod recovery;
mod segment;

pub use reader::LogReader;
pub(crate) use record::Encoder;
pub use record::Record;

use super::core::Pending;
use super::medium::Medium;
use super::statistics::Statistics;
use super::tables::Reached;
use super::writer::Changes;
use super::{Flush, MAX_COMMIT_BYTES, Options, Position};
use crate::error::{Code, Error, Result};
use parking_lot::{Condvar, Mutex, RwLock};
use segment::{Mark, Segment};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Segments grow from this size to the size asked for, so that a small storage stays small.
const FIRST_SEGMENT_BYTES: u64 = 1 << 20;
/// Records are gathered to writes of about this size.
const WRITE_BYTES: usize = 4 << 20;

/// Room in the log, claimed for a commit before it is executed.
pub(super) struct Place {
    segment: Arc<Segment>,
    claimed_bytes: u64,
}

pub(super) struct Log {
    medium: Arc<dyn Medium>,
    segment_bytes: u64,
    flush: Flush,
    /// Oldest first, numbered without gaps. Never empty; commits are placed in the last one.
    segments: RwLock<VecDeque<Arc<Segment>>>,
    spare: Mutex<Spare>,
    spare_changed: Condvar,
    written_bytes: AtomicU64,
}

/// The segment after the last one, prepared ahead of its use.
enum Spare {
    Absent,
    Wanted { number: u64, capacity: u64 },
    Preparing,
    Ready(Segment),
    Stopped,
}

/// The size of a segment by its number.
fn planned_bytes(number: u64, segment_bytes: u64) -> u64 {
    let doublings = u32::try_from(number - 1).unwrap_or(u32::MAX).min(30);
    (FIRST_SEGMENT_BYTES << doublings).min(segment_bytes)
}

impl Log {
    /// Opens the log on a medium, hands each record beyond `reached` to `apply`, and says where it ends.
    pub(super) fn open(
        medium: Arc<dyn Medium>,
        options: &Options,
        reached: Reached,
        apply: &mut dyn FnMut(Record) -> Result<()>,
    ) -> Result<(Log, Reached)> {
        let recovered = recovery::recover(&*medium, options, reached, apply)?;
        let log = Log {
            medium,
            segment_bytes: options.segment_bytes,
            flush: options.flush,
            segments: RwLock::new(recovered.segments),
            spare: Mutex::new(Spare::Absent),
            spare_changed: Condvar::new(),
            written_bytes: AtomicU64::new(0),
        };
        Ok((log, recovered.end))
    }

    /// Whether a medium holds any of a log.
    pub(super) fn exists(medium: &dyn Medium) -> Result<bool> {
        Ok(medium.names()?.iter().any(|name| segment::number(name).is_some()))
    }

    /// Claims room for a commit. The caller holds the writer lock.
    ///
    /// Errors: `TransactionTooLarge`; `OutOfDiskSpace` and others if the log can't grow.
    pub(super) fn claim(&self, changes: &Changes) -> Result<Place> {
        let size = changes.size_bytes();
        let claimed_bytes = record::bound(changes);
        if size > MAX_COMMIT_BYTES || claimed_bytes > record::MAX_RECORD_BYTES {
            return Err(Error::new(
                Code::TRANSACTION_TOO_LARGE,
                format!(
                    "a commit of {size} bytes exceeds the bound of {MAX_COMMIT_BYTES} bytes; split it into smaller ones"
                ),
            ));
        }
        let mut segment = self.last();
        if !segment.claim(claimed_bytes) {
            segment = Arc::new(self.next_segment(segment.number + 1, claimed_bytes)?);
            assert!(segment.claim(claimed_bytes), "a new segment has room");
            self.segments.write().push_back(segment.clone());
        }
        if segment.is_half_full() && !segment.successor_wanted.swap(true, Ordering::Relaxed) {
            self.want_spare(segment.number + 1);
        }
        Ok(Place { segment, claimed_bytes })
    }

    fn last(&self) -> Arc<Segment> {
        self.segments.read().back().expect("there is always a segment").clone()
    }

    fn want_spare(&self, number: u64) {
        let mut spare = self.spare.lock();
        if matches!(*spare, Spare::Absent) {
            *spare = Spare::Wanted { number, capacity: planned_bytes(number, self.segment_bytes) };
            self.spare_changed.notify_all();
        }
    }

    /// The spare if it will do, else a segment made on the spot.
    fn next_segment(&self, number: u64, record_bytes: u64) -> Result<Segment> {
        let mut spare = self.spare.lock();
        while matches!(*spare, Spare::Preparing) {
            self.spare_changed.wait(&mut spare);
        }
        let taken = match *spare {
            Spare::Stopped => Spare::Stopped,
            _ => std::mem::replace(&mut *spare, Spare::Absent),
        };
        let needed = segment::HEADER_BYTES + record_bytes;
        match taken {
            Spare::Ready(segment) if segment.capacity >= needed => Ok(segment),
            // One that is too small is overwritten.
            _ => {
                let capacity = planned_bytes(number, self.segment_bytes).max(needed);
                Segment::create(&*self.medium, number, capacity, self.flush)
            }
        }
    }

    /// The preparer thread: it makes the spare when one is wanted.
    pub(super) fn prepare_spares(&self) {
        let mut spare = self.spare.lock();
        loop {
            match *spare {
                Spare::Stopped => return,
                Spare::Wanted { number, capacity } => {
                    *spare = Spare::Preparing;
                    drop(spare);
                    let created = Segment::create(&*self.medium, number, capacity, self.flush);
                    spare = self.spare.lock();
                    if matches!(*spare, Spare::Preparing) {
                        // If it failed, the commit that needs it tries again and reports why.
                        *spare = created.map_or(Spare::Absent, Spare::Ready);
                    }
                    self.spare_changed.notify_all();
                }
                _ => self.spare_changed.wait(&mut spare),
            }
        }
    }

    /// Ends the preparer thread.
    pub(super) fn stop(&self) {
        *self.spare.lock() = Spare::Stopped;
        self.spare_changed.notify_all();
    }

    /// Writes a batch and flushes it. Only the flusher calls it, with an encoder of its own.
    pub(super) fn append(&self, batch: Vec<Pending>, flushed: Position, encoder: &mut Encoder) -> Result<()> {
        let mut ends: Vec<(Arc<Segment>, u64)> = Vec::new();
        let mut buffer = Vec::new();
        for Pending { position, changes, place: Place { segment, claimed_bytes } } in batch {
            if ends.last().is_none_or(|(last, _)| last.number != segment.number) {
                write_out(&mut buffer, &mut ends)?;
                let start = segment.written();
                ends.push((segment.clone(), start));
            }
            let end = ends.last().expect("pushed above").1;
            let offset = end + buffer.len() as u64;
            record::encode(position, flushed, &changes, encoder, &mut buffer);
            let record_bytes = end + buffer.len() as u64 - offset;
            segment.unclaim(claimed_bytes.checked_sub(record_bytes).expect("a claim is an upper bound"));
            segment.mark(Mark { position, time: changes.time, offset });
            if buffer.len() >= WRITE_BYTES {
                write_out(&mut buffer, &mut ends)?;
            }
        }
        write_out(&mut buffer, &mut ends)?;
        for (segment, end) in ends {
            if self.flush == Flush::Durable {
                segment.sync()?;
            }
            self.written_bytes.fetch_add(end - segment.written(), Ordering::Relaxed);
            segment.set_written(end);
        }
        Ok(())
    }

    /// The oldest position in the log; `None` if it holds no record.
    pub(super) fn oldest(&self) -> Option<Position> {
        self.segments.read().iter().find_map(|segment| segment.first()).map(|first| first.position)
    }

    /// The segment in which a position lies or will lie; `None` if it is older than the log.
    fn segment_of(&self, position: Position) -> Option<Arc<Segment>> {
        let holds = |segment: &&Arc<Segment>| segment.first().is_some_and(|first| first.position <= position);
        self.segments.read().iter().rev().find(holds).cloned()
    }

    /// The last position before which every commit is earlier than `time`.
    pub(super) fn before_time(&self, time: u64) -> Option<Position> {
        let segments = self.segments.read();
        let earlier = |segment: &&Arc<Segment>| segment.first().is_some_and(|first| first.time < time);
        let segment = segments.iter().rev().find(earlier)?;
        segment.entrance(|mark| mark.time < time).1
    }

    /// Removes the oldest segments that neither the checkpoint nor the options ask to keep.
    pub(super) fn prune(&self, folded: Reached, options: &Options) {
        let mut total: u64 = self.segments.read().iter().map(|segment| segment.capacity).sum();
        loop {
            let oldest = {
                let mut segments = self.segments.write();
                let [oldest, second, ..] = segments.make_contiguous() else { return };
                // Until the next one has a record, the last record of this one may be the log's last.
                let Some(next) = second.first() else { return };
                let too_large = total > options.retain_bytes;
                let too_old = next.time.saturating_add(options.retain_age) < folded.time;
                if next.position - 1 > folded.position || !(too_large || too_old) {
                    return;
                }
                total -= oldest.capacity;
                segments.pop_front().expect("there are two")
            };
            if self.medium.remove(&segment::name(oldest.number)).is_err() {
                // It is out of the list, and opening will try again.
                return;
            }
        }
    }

    /// The log's part of the statistics.
    pub(super) fn statistics(&self) -> Statistics {
        let segments = self.segments.read();
        Statistics {
            log_written_bytes: self.written_bytes.load(Ordering::Relaxed),
            log_bytes: segments.iter().map(|segment| segment.capacity).sum(),
            log_segments: segments.len() as u64,
            ..Statistics::default()
        }
    }
}

/// Writes the gathered records at the end of the last segment.
fn write_out(buffer: &mut Vec<u8>, ends: &mut [(Arc<Segment>, u64)]) -> Result<()> {
    if let Some((segment, end)) = ends.last_mut() {
        segment.write(*end, buffer)?;
        *end += buffer.len() as u64;
        buffer.clear();
    }
    Ok(())
}
