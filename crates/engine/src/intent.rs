//! Intents: the keys that open transactions have written, so that the first updater wins.

use crate::error::{Error, Result};
use crate::statement::{BLOCKED, write_conflict};
use bytes::Bytes;
use parking_lot::{Condvar, Mutex};
use std::collections::HashMap;
use std::time::Duration;

/// Which transaction has written which key.
#[derive(Debug, Default)]
pub(crate) struct Intents {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    owners: HashMap<Bytes, u64>,
    /// Counts the releases.
    releases: u64,
}

impl Intents {
    /// Takes an intent for a transaction, or makes sure that there is none.
    ///
    /// # Errors
    /// `WriteConflict` for a transaction, [`BLOCKED`] for a single statement, when another transaction has it.
    pub(crate) fn claim(&self, key: &Bytes, owner: Option<u64>) -> Result<()> {
        let mut state = self.state.lock();
        match (state.owners.get(key), owner) {
            (None, None) => Ok(()),
            (None, Some(owner)) => {
                state.owners.insert(key.clone(), owner);
                Ok(())
            }
            (Some(other), Some(owner)) if *other == owner => Ok(()),
            (Some(_), Some(_)) => Err(write_conflict()),
            (Some(_), None) => Err(Error::new(BLOCKED, "an open transaction has an intent on what is to be written")),
        }
    }

    /// Gives back all intents of a transaction.
    pub(crate) fn release(&self, owner: u64) {
        let mut state = self.state.lock();
        state.owners.retain(|_, other| *other != owner);
        state.releases += 1;
        self.changed.notify_all();
    }

    /// How many releases there have been: to be asked before an attempt.
    pub(crate) fn releases(&self) -> u64 {
        self.state.lock().releases
    }

    /// Waits until there has been a release since `seen`, at most for a while.
    pub(crate) fn wait(&self, seen: u64, at_most: Duration) {
        let mut state = self.state.lock();
        if state.releases == seen {
            self.changed.wait_for(&mut state, at_most);
        }
    }
}
