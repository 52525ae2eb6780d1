//! Running operations, so that `currentOp` can show and `killOp` can stop them.

use bytes::Bytes;
use engine::{Code, Error, Result};
use std::sync::atomic::{AtomicI32, Ordering};
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
    /// 0, or the code of the error it must stop with.
    interrupt: AtomicI32,
}

impl Operation {
    /// An operation that starts now.
    pub(crate) fn start(id: i32, command: &'static str, body: Bytes, max_time_ms: Option<u64>) -> Operation {
        let started = Instant::now();
        let deadline = max_time_ms.filter(|ms| *ms > 0).and_then(|ms| started.checked_add(Duration::from_millis(ms)));
        Operation { id, command, body, started, deadline, interrupt: AtomicI32::new(0) }
    }

    /// Asks it to stop.
    pub(crate) fn interrupt(&self, code: Code) {
        self.interrupt.store(code.0, Ordering::Relaxed);
    }

    /// Whether it was asked to stop.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.interrupt.load(Ordering::Relaxed) != 0
    }

    /// Fails if it was asked to stop or its time is over.
    pub(crate) fn check(&self) -> Result<()> {
        match self.interrupt.load(Ordering::Relaxed) {
            0 => {}
            code if code == Code::INTERRUPTED_AT_SHUTDOWN.0 => {
                return Err(Error::new(Code(code), "interrupted at shutdown"));
            }
            code => return Err(Error::new(Code(code), "operation was interrupted")),
        }
        match self.deadline {
            Some(deadline) if Instant::now() >= deadline => {
                Err(Error::new(Code::MAX_TIME_MS_EXPIRED, "operation exceeded time limit"))
            }
            _ => Ok(()),
        }
    }
}
