//! The log: every commit in order, flushed before anyone sees it.

use super::core::{Core, Pending};
use super::statistics::Statistics;
use super::writer::Changes;
use super::{Options, Position};
use crate::error::{Code, Error, Result};
use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;

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

/// Room in the log, claimed for a commit before it is executed.
pub(super) struct Place;

pub(super) struct Log {
    records: Mutex<VecDeque<Record>>,
}

impl Log {
    pub(super) fn in_memory() -> Log {
        Log { records: Mutex::new(VecDeque::new()) }
    }

    pub(super) fn claim(&self, _changes: &Changes) -> Result<Place> {
        Ok(Place)
    }

    pub(super) fn append(&self, batch: Vec<Pending>, _flushed: Position) -> Result<()> {
        let mut records = self.records.lock();
        for Pending { position, changes: Changes { time, note, writes }, place: Place } in batch {
            records.push_back(Record { position, time, note, writes });
        }
        Ok(())
    }

    pub(super) fn oldest(&self) -> Option<Position> {
        self.records.lock().front().map(|record| record.position)
    }

    pub(super) fn prune(&self, _folded: Position, _options: &Options) {}

    pub(super) fn statistics(&self) -> Statistics {
        Statistics::default()
    }

    fn record(&self, position: Position) -> Option<Record> {
        let records = self.records.lock();
        let first = records.front()?.position;
        records.get(usize::try_from(position.checked_sub(first)?).ok()?).cloned()
    }
}

/// The flushed commits after a position, in order. `None` means that it has caught up; it can be asked again later.
pub struct LogReader {
    core: Arc<Core>,
    next: Position,
}

impl LogReader {
    pub(super) fn new(core: Arc<Core>, after: Position) -> Result<LogReader> {
        let next = after.saturating_add(1);
        let oldest = core.log.oldest().unwrap_or(core.progress.flushed() + 1);
        if next < oldest {
            return Err(lost(next, oldest));
        }
        Ok(LogReader { core, next })
    }
}

fn lost(wanted: Position, oldest: Position) -> Error {
    Error::new(
        Code::CHANGE_STREAM_HISTORY_LOST,
        format!(
            "the log begins at position {oldest} and no longer holds position {wanted}; start anew from the present \
             state, and let the log keep more (its size and age are options)"
        ),
    )
}

impl Iterator for LogReader {
    type Item = Result<Record>;

    fn next(&mut self) -> Option<Result<Record>> {
        if self.next > self.core.progress.flushed() {
            return None;
        }
        let record = self.core.log.record(self.next);
        self.next += 1;
        record.map(Ok)
    }
}
