//! Ordered bytes that survive crashes: the log, the overlay and the tables that are the log's fold.
//!
//! ```text
//!   Writer ──commit──> queue ──flusher──> log (segments)          one flush for all that queued meanwhile
//!     │                                    │ flushed: publish, complete tickets
//!     └──put──> overlay: active │ frozen   │
//!                                  │       │
//!                                  └─folder┴──> tables            sorted batch + position reached, one durable commit
//!
//!   Snapshot = (position, active, frozen, tables as of the last fold)
//! ```
//!
//! - [`Storage::writer`] takes the one writer lock. The writer sees all that was executed, flushed or not, and
//!   [commits](Writer::commit) sets of writes; each gets the next [`Position`] and a [`Ticket`].
//! - The flusher thread writes what has queued up to the log, flushes once, runs the publish hooks, publishes the
//!   position and completes the tickets. Meanwhile the next commits are executed. A lone writer never waits for others.
//! - [`Storage::snapshot`] shows what is published, and only that.
//! - The folder thread writes the overlay's frozen generation into the tables, in one commit that also says how far it
//!   reached. That is the checkpoint; the log before it is kept for [`Storage::read_log`] as the options say.
//!
//! This module knows keys and values only as bytes. FORMAT.md says what lies on disk and why a crash loses nothing.

mod core;
mod folder;
mod layer;
mod log;
mod medium;
mod options;
mod overlay;
mod statistics;
mod tables;
#[cfg(test)]
mod tests;
mod ticket;
mod turns;
mod view;
mod writer;

pub use self::core::Storage;
pub use layer::{Layer, Overlaid, Writes};
pub use log::{LogReader, Record};
pub use medium::{Folder, Medium, MediumFile, Memory};
pub use options::{Flush, Options};
pub use statistics::Statistics;
pub use ticket::Ticket;
pub use view::{Direction, Range, See, Snapshot, View};
pub use writer::{Changes, Writer};

/// A place in the log: commits are numbered from 1 without gaps; 0 is before the first.
pub type Position = u64;

/// The bound on one commit: its keys, values and note together.
pub const MAX_COMMIT_BYTES: usize = 256 << 20;
