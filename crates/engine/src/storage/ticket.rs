//! Waiting for a position to be flushed, by blocking or as a future, without any runtime.

use super::Position;
use crate::error::{Error, Result};
use parking_lot::{Condvar, Mutex};
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// How far the log is flushed, and who waits for more.
#[derive(Default)]
pub(super) struct Progress {
    flushed: AtomicU64,
    has_ended: AtomicBool,
    waiting: Mutex<Waiting>,
    moved: Condvar,
}

#[derive(Default)]
struct Waiting {
    /// By position, then by ticket, so that a flush wakes a prefix and a dropped ticket leaves nothing behind.
    wakers: BTreeMap<(Position, u64), Waker>,
    next_ticket: u64,
    /// Why nothing will be flushed any more.
    ended: Option<Error>,
}

impl Progress {
    pub(super) fn new(flushed: Position) -> Progress {
        Progress { flushed: AtomicU64::new(flushed), ..Progress::default() }
    }

    pub(super) fn flushed(&self) -> Position {
        self.flushed.load(Ordering::Acquire)
    }

    /// Everything up to a position is flushed and published: its tickets complete.
    pub(super) fn advance(&self, position: Position) {
        let ready = {
            let mut waiting = self.waiting.lock();
            assert!(position >= self.flushed(), "the flushed position never decreases");
            self.flushed.store(position, Ordering::Release);
            let later = waiting.wakers.split_off(&(position + 1, 0));
            std::mem::replace(&mut waiting.wakers, later)
        };
        self.moved.notify_all();
        ready.into_values().for_each(Waker::wake);
    }

    /// Nothing will be flushed any more: tickets beyond the flushed position fail. The first reason stays.
    pub(super) fn end(&self, reason: Error) {
        let all = {
            let mut waiting = self.waiting.lock();
            waiting.ended.get_or_insert(reason);
            self.has_ended.store(true, Ordering::Release);
            std::mem::take(&mut waiting.wakers)
        };
        self.moved.notify_all();
        all.into_values().for_each(Waker::wake);
    }

    /// The reason why nothing can be written any more, if so.
    pub(super) fn check(&self) -> Result<()> {
        if !self.has_ended.load(Ordering::Acquire) {
            return Ok(());
        }
        self.waiting.lock().ended.clone().map_or(Ok(()), Err)
    }
}

/// A claim on a position: it completes once the position is flushed and visible to new snapshots, or fails if it
/// can't be any more.
///
/// It can be waited for by a thread ([`wait`](Ticket::wait)) or awaited as a future on any runtime.
pub struct Ticket {
    progress: Arc<Progress>,
    position: Position,
    /// The number under which a waker is registered.
    registered: Option<u64>,
}

impl Ticket {
    pub(super) fn new(progress: Arc<Progress>, position: Position) -> Ticket {
        Ticket { progress, position, registered: None }
    }

    /// The position waited for.
    pub fn position(&self) -> Position {
        self.position
    }

    /// A ticket of the same storage for another position, also a future one. It keeps no storage open.
    pub fn at(&self, position: Position) -> Ticket {
        Ticket::new(self.progress.clone(), position)
    }

    /// Keeps the later one of several tickets of the same storage, with which all of them are done: a statement that wrote nothing
    /// may have an early one.
    pub fn keep_in(self, latest: &mut Option<Ticket>) {
        if latest.as_ref().is_none_or(|known| known.position < self.position) {
            *latest = Some(self);
        }
    }

    /// Whether the position is flushed.
    pub fn is_flushed(&self) -> bool {
        self.progress.flushed() >= self.position
    }

    /// Blocks until the position is flushed.
    pub fn wait(self) -> Result<Position> {
        let mut waiting = self.progress.waiting.lock();
        loop {
            if let Some(outcome) = self.outcome(&waiting) {
                return outcome;
            }
            self.progress.moved.wait(&mut waiting);
        }
    }

    /// Blocks until the position is flushed, at most for a while; `None` if it isn't by then.
    pub fn wait_for(&self, timeout: Duration) -> Option<Result<Position>> {
        let deadline = std::time::Instant::now() + timeout;
        let mut waiting = self.progress.waiting.lock();
        loop {
            if let Some(outcome) = self.outcome(&waiting) {
                return Some(outcome);
            }
            if self.progress.moved.wait_until(&mut waiting, deadline).timed_out() {
                return self.outcome(&waiting);
            }
        }
    }

    fn outcome(&self, waiting: &Waiting) -> Option<Result<Position>> {
        if self.is_flushed() {
            return Some(Ok(self.position));
        }
        waiting.ended.clone().map(Err)
    }
}

impl Future for Ticket {
    type Output = Result<Position>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<Position>> {
        let ticket = &mut *self;
        let mut waiting = ticket.progress.waiting.lock();
        if let Some(outcome) = ticket.outcome(&waiting) {
            return Poll::Ready(outcome);
        }
        let number = *ticket.registered.get_or_insert_with(|| {
            waiting.next_ticket += 1;
            waiting.next_ticket
        });
        waiting.wakers.insert((ticket.position, number), context.waker().clone());
        Poll::Pending
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if let Some(number) = self.registered {
            self.progress.waiting.lock().wakers.remove(&(self.position, number));
        }
    }
}
