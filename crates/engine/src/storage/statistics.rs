//! What a storage tells about itself.

use super::Position;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Counters since opening, and sizes now.
#[derive(Clone, Debug, Default)]
pub struct Statistics {
    /// The last executed commit.
    pub executed: Position,
    /// The last flushed and published commit.
    pub flushed: Position,
    /// The last commit folded into the tables.
    pub folded: Position,
    /// The oldest commit the log still holds.
    pub oldest: Position,
    /// Commits flushed since opening.
    pub commits: u64,
    /// Flushes of the log since opening; `commits / flushes` is the mean size of a group.
    pub flushes: u64,
    /// The time spent in writing and flushing the log.
    pub flush_time: Duration,
    /// Bytes of records written to the log since opening.
    pub log_written_bytes: u64,
    /// The log's size on the medium.
    pub log_bytes: u64,
    /// Segments of the log on the medium.
    pub log_segments: u64,
    /// The overlay's size.
    pub overlay_bytes: u64,
    /// Folds since opening.
    pub folds: u64,
    /// The time spent in folding.
    pub fold_time: Duration,
    /// The longest fold.
    pub fold_longest: Duration,
    /// Folds that failed and will be tried again.
    pub folds_failed: u64,
    /// How often a writer found the overlay full and waited for the folder.
    pub writer_waits: u64,
    /// The size of the tables.
    pub table_bytes: u64,
}

/// The counters behind [`Statistics`].
#[derive(Default)]
pub(super) struct Counters {
    pub(super) commits: AtomicU64,
    pub(super) flushes: AtomicU64,
    pub(super) flush_nanos: AtomicU64,
    pub(super) folds: AtomicU64,
    pub(super) fold_nanos: AtomicU64,
    pub(super) fold_longest_nanos: AtomicU64,
    pub(super) folds_failed: AtomicU64,
    pub(super) writer_waits: AtomicU64,
}

impl Counters {
    pub(super) fn add(counter: &AtomicU64, amount: u64) {
        counter.fetch_add(amount, Ordering::Relaxed);
    }

    pub(super) fn time(counter: &AtomicU64) -> Duration {
        Duration::from_nanos(counter.load(Ordering::Relaxed))
    }

    pub(super) fn count(counter: &AtomicU64) -> u64 {
        counter.load(Ordering::Relaxed)
    }
}

/// A duration as a counter's amount.
pub(super) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
