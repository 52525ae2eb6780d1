//! The folder: it writes frozen generations into the tables. Each fold is a checkpoint.

use super::Position;
use super::core::Core;
use super::overlay::Generation;
use super::statistics::{Counters, nanos};
use super::tables::Reached;
use super::view::State;
use crate::error::{Error, Result};
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// How long the folder waits before it tries a failed fold again.
const RETRY_DELAY: Duration = Duration::from_secs(1);
/// How often the folder looks whether the readers of a folded generation are gone.
const BURIAL_DELAY: Duration = Duration::from_millis(100);

/// After so many entries the folder lets others run: where cores are few it would keep one for milliseconds, which is what a
/// small write then waits for.
const ENTRIES_A_TURN: usize = 64;

/// What the folder is asked for and how far it is.
pub(super) struct Fold {
    state: Mutex<FoldState>,
    changed: Condvar,
}

#[derive(Default)]
struct FoldState {
    /// How far the frozen generation reaches, if there is one.
    frozen: Option<Reached>,
    folded: Position,
    failed: Option<Error>,
    stopping: bool,
    /// When the last fold was done.
    last: Option<Instant>,
}

impl Fold {
    pub(super) fn new(folded: Position) -> Fold {
        Fold { state: Mutex::new(FoldState { folded, ..FoldState::default() }), changed: Condvar::new() }
    }

    /// A generation that reaches to a position has been frozen.
    pub(super) fn begin(&self, reached: Reached) {
        let mut state = self.state.lock();
        assert!(state.frozen.is_none(), "one generation is frozen at a time");
        state.frozen = Some(reached);
        self.changed.notify_all();
    }

    /// Whether nothing is frozen.
    pub(super) fn is_idle(&self) -> bool {
        self.state.lock().frozen.is_none()
    }

    /// How far the tables reach.
    pub(super) fn folded(&self) -> Position {
        self.state.lock().folded
    }

    /// When the last fold was done; none since opening.
    pub(super) fn last(&self) -> Option<Instant> {
        self.state.lock().last
    }

    /// The reason why the last fold failed, if it did.
    pub(super) fn check(&self) -> Result<()> {
        self.state.lock().failed.clone().map_or(Ok(()), Err)
    }

    pub(super) fn stop(&self) {
        self.state.lock().stopping = true;
        self.changed.notify_all();
    }

    /// Waits for a frozen generation; `None` once the storage stops. Meanwhile it buries folded ones.
    fn next(&self, folded: &mut Folded) -> Option<Reached> {
        let mut state = self.state.lock();
        loop {
            if state.stopping {
                return None;
            }
            if let Some(reached) = state.frozen {
                return Some(reached);
            }
            if folded.0.is_empty() {
                self.changed.wait(&mut state);
            } else {
                self.changed.wait_for(&mut state, BURIAL_DELAY);
                MutexGuard::unlocked(&mut state, || folded.bury());
            }
        }
    }

    fn succeeded(&self, reached: Reached) {
        let mut state = self.state.lock();
        state.frozen = None;
        state.failed = None;
        state.folded = reached.position;
        state.last = Some(Instant::now());
    }

    fn failed(&self, error: Error) {
        let mut state = self.state.lock();
        state.failed = Some(error);
    }

    fn pause(&self) {
        let mut state = self.state.lock();
        if !state.stopping {
            self.changed.wait_for(&mut state, RETRY_DELAY);
        }
    }
}

/// Folded generations that snapshots may still read. Dropping one frees hundreds of thousands of entries, which
/// should happen here and not in the last reader.
#[derive(Default)]
struct Folded(Vec<Arc<Generation>>);

impl Folded {
    fn bury(&mut self) {
        self.0.retain(|generation| Arc::strong_count(generation) > 1);
    }
}

impl Core {
    /// The folder thread.
    pub(super) fn fold_generations(&self) {
        let mut folded = Folded::default();
        while let Some(reached) = self.fold.next(&mut folded) {
            // Only what is flushed may be folded; if it never will be, there is nothing left to do.
            if self.ticket(reached.position).wait().is_err() {
                return;
            }
            let started = Instant::now();
            let outcome = self.fold_frozen(reached, &mut folded);
            let time = nanos(started.elapsed());
            Counters::add(&self.counters.fold_nanos, time);
            self.counters.fold_longest_nanos.fetch_max(time, Ordering::Relaxed);
            let failed = outcome.is_err();
            match outcome {
                Ok(()) => {
                    Counters::add(&self.counters.folds, 1);
                    self.fold.succeeded(reached);
                }
                Err(error) => {
                    Counters::add(&self.counters.folds_failed, 1);
                    self.fold.failed(self.renew_tables().err().unwrap_or(error));
                }
            }
            // The lock makes sure that a writer about to wait is waiting by now.
            drop(self.writing.lock());
            self.room.notify_all();
            if failed {
                self.fold.pause();
            } else {
                self.log.prune(reached, &self.options);
            }
        }
    }

    /// After a failed fold: prepares the next attempt.
    fn renew_tables(&self) -> Result<()> {
        if let Some(tables) = self.tables.renew()? {
            self.reshape(|state| State { position: state.position, tables, generations: state.generations.clone() });
        }
        Ok(())
    }

    fn fold_frozen(&self, reached: Reached, folded: &mut Folded) -> Result<()> {
        let frozen = self.published.load().generations.last().expect("a generation is frozen").clone();
        let mut written = 0_usize;
        let mut entries = frozen.newest().inspect(|_| {
            written += 1;
            if written.is_multiple_of(ENTRIES_A_TURN) {
                std::thread::yield_now();
            }
        });
        self.tables.commit(&mut entries, reached)?;
        drop(entries);
        let tables = self.tables.view()?;
        self.reshape(|state| {
            let mut generations = state.generations.clone();
            generations.pop();
            State { position: state.position, tables, generations }
        });
        folded.0.push(frozen);
        Ok(())
    }
}
