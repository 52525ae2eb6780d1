//! The one writer: it executes commits under the writer lock, ahead of their flush.

use super::Position;
use super::core::{Core, Pending, Writing};
use super::ticket::Ticket;
use super::turns::Turn;
use super::view::{Direction, Range, Snapshot, State, View};
use crate::error::Result;
use bytes::Bytes;
use parking_lot::MutexGuard;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// One commit: applied as a whole or not at all.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    /// The commit's time, in a unit of the caller's; it should never decrease.
    pub time: u64,
    /// Bytes kept with the record in the log, and nowhere else.
    pub note: Bytes,
    /// Keys and their new values; `None` deletes. If a key occurs twice, the last one counts.
    pub writes: Vec<(Bytes, Option<Bytes>)>,
}

impl Changes {
    /// The bytes of the keys, values and note.
    pub fn size_bytes(&self) -> usize {
        let writes = self.writes.iter().map(|(key, value)| key.len() + value.as_ref().map_or(0, Bytes::len));
        self.note.len() + writes.sum::<usize>()
    }
}

/// The holder of the writer lock. As a [`View`] it shows everything executed so far, flushed or not.
pub struct Writer<'s> {
    pub(super) core: &'s Core,
    pub(super) writing: MutexGuard<'s, Writing>,
    /// Ends after `writing` is unlocked.
    pub(super) turn: Turn<'s>,
    pub(super) state: Arc<State>,
    /// Whether what is committed may wait a moment for somebody else's flush.
    pub(crate) is_patient: bool,
}

impl Writer<'_> {
    /// Executes a commit: it is visible to this and later writers at once, and to snapshots once it is flushed.
    ///
    /// Errors: `TransactionTooLarge` beyond [`MAX_COMMIT_BYTES`](super::MAX_COMMIT_BYTES); `OutOfDiskSpace` if the log can't grow; the reason
    /// of a failed flush. After an error nothing of the commit is applied.
    pub fn commit(&mut self, changes: Changes) -> Result<Ticket> {
        self.core.progress.check()?;
        let place = self.core.log.claim(&changes)?;
        let position = self.writing.position + 1;
        let active = &self.state.generations[0];
        for (key, value) in &changes.writes {
            active.put(key.clone(), value.clone(), position);
        }
        self.writing.position = position;
        self.writing.time = changes.time;
        self.core.executed.store(position, Ordering::Relaxed);
        self.core.queue.push(Pending { position, changes, place }, self.is_patient);
        if self.core.freeze_if_due(&mut self.writing) {
            self.state = self.core.published.load_full();
        }
        Ok(self.core.ticket(position))
    }

    /// Everything executed so far as a snapshot: it may show what a crash would still lose, so nothing may be acknowledged
    /// from it before the [position](Writer::position) is flushed.
    pub fn executed(&self) -> Snapshot {
        Snapshot(Arc::new(State {
            position: self.writing.position,
            tables: self.state.tables.clone(),
            generations: self.state.generations.clone(),
        }))
    }

    /// Gives the lock to the one who has waited longest for it, if anybody does: for holders that come back at once.
    pub fn hand_over(self) {
        drop(self.writing);
        self.turn.pass_on();
    }

    /// The position of the last executed commit.
    pub fn position(&self) -> Position {
        self.writing.position
    }

    /// The time of the last executed commit.
    pub fn time(&self) -> u64 {
        self.writing.time
    }
}

impl View for Writer<'_> {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>> {
        self.state.get_at(key, Position::MAX)
    }

    fn range(&self, from: Bound<&[u8]>, to: Bound<&[u8]>, direction: Direction) -> Result<Range<'_>> {
        self.state.range_at(from, to, direction, Position::MAX)
    }
}
