//! Running operations, so that `currentOp` can show and `killOp` can stop them.

use bytes::Bytes;
use engine::{Code, Interrupt};
use std::sync::Arc;
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
    /// Stops it.
    pub(crate) interrupt: Arc<Interrupt>,
}

impl Operation {
    /// An operation that starts now.
    pub(crate) fn start(id: i32, command: &'static str, body: Bytes, max_time_ms: Option<u64>) -> Operation {
        let started = Instant::now();
        let deadline = max_time_ms.filter(|ms| *ms > 0).and_then(|ms| started.checked_add(Duration::from_millis(ms)));
        Operation { id, command, body, started, deadline, interrupt: Arc::default() }
    }

    /// Asks it to stop.
    pub(crate) fn interrupt(&self, code: Code) {
        self.interrupt.raise(code);
    }

    /// Whether it was asked to stop.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.interrupt.raised().is_some()
    }
}
