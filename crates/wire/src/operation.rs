//! Running operations, so that `currentOp` can show and `killOp` can stop them.

use crate::command::Command;
use bytes::Bytes;
use engine::{Code, Monitor};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A command that is being run.
#[derive(Debug)]
pub(crate) struct Operation {
    /// Its number.
    pub(crate) id: i32,
    /// The command's name.
    pub(crate) command: &'static str,
    /// The command itself, shared with its frame.
    pub(crate) body: Bytes,
    /// When it started.
    pub(crate) started: Instant,
    /// When it must be over (`maxTimeMS`).
    pub(crate) deadline: Option<Instant>,
    /// Shows what it has looked at, and stops it.
    pub(crate) monitor: Arc<Monitor>,
    /// Whether it is of no use once its client has gone.
    pub(crate) ends_with_client: bool,
    /// How long it waited for something to come, in microseconds: no work of its own.
    pub(crate) awaited_us: AtomicU64,
}

impl Operation {
    /// An operation that starts now.
    pub(crate) fn start(id: i32, command: &'static Command, body: Bytes, max_time_ms: Option<u64>) -> Operation {
        let started = Instant::now();
        let deadline = max_time_ms.filter(|ms| *ms > 0).and_then(|ms| started.checked_add(Duration::from_millis(ms)));
        Operation {
            id,
            command: command.name,
            body,
            started,
            deadline,
            monitor: Arc::default(),
            ends_with_client: !command.writes || matches!(command.name, "aggregate" | "createIndexes"),
            awaited_us: AtomicU64::new(0),
        }
    }

    /// How long it has worked: what it waited for others is left out.
    pub(crate) fn worked(&self) -> Duration {
        let awaited = Duration::from_micros(self.awaited_us.load(Ordering::Relaxed));
        self.started.elapsed().saturating_sub(awaited)
    }

    /// Notes that it waited for something to come.
    pub(crate) fn note_await(&self, since: Instant) {
        self.awaited_us.fetch_add(since.elapsed().as_micros() as u64, Ordering::Relaxed);
    }

    /// Asks it to stop.
    pub(crate) fn interrupt(&self, code: Code) {
        self.monitor.raise(code);
    }

    /// Whether it was asked to stop.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.monitor.raised().is_some()
    }
}
