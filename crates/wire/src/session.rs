//! Logical sessions: who they belong to and when they were last used.
//!
//! A session exists from its first use until half an hour after its last one. Its cursors and transactions live in the engine
//! under the same id; here is only what `refreshSessions`, `endSessions` and the idle timeout need.

use engine::{Code, Error, Result};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// How long a session outlives its last use (`logicalSessionTimeoutMinutes`).
pub(crate) const SESSION_TIMEOUT_MINUTES: u64 = 30;
/// The most sessions at once.
const MAX_SESSIONS: usize = 1_000_000;
/// Independent parts of the registry, so that connections don't wait for each other.
const SHARDS: usize = 16;

/// A session's id: the client's UUID, and the user it belongs to (all zero without authentication).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct SessionId {
    pub(crate) id: [u8; 16],
    pub(crate) user: [u8; 32],
}

impl SessionId {
    /// The id that the engine knows it by: sessions of different users differ, whatever ids their clients chose.
    pub(crate) fn in_engine(&self) -> engine::SessionId {
        let mut id = self.id;
        id.iter_mut().zip(self.user).for_each(|(byte, user)| *byte ^= user);
        id
    }
}

/// All sessions.
#[derive(Default)]
pub(crate) struct Sessions {
    shards: [Mutex<HashMap<SessionId, Instant>>; SHARDS],
}

impl Sessions {
    fn shard(&self, id: &SessionId) -> &Mutex<HashMap<SessionId, Instant>> {
        &self.shards[id.id[0] as usize % SHARDS]
    }

    /// Notes the use of a session, which starts with it.
    pub(crate) fn touch(&self, id: SessionId) -> Result<()> {
        let mut shard = self.shard(&id).lock();
        let now = Instant::now();
        if let Some(used) = shard.get_mut(&id) {
            *used = now;
            return Ok(());
        }
        if shard.len() >= MAX_SESSIONS / SHARDS {
            shard.retain(|_, used| !is_over(*used, now));
            if shard.len() >= MAX_SESSIONS / SHARDS {
                let message = "cannot add session into the cache: too many sessions; end those no longer needed";
                return Err(Error::new(Code(261), message));
            }
        }
        shard.insert(id, now);
        Ok(())
    }

    /// Ends a session; whether it was there.
    pub(crate) fn end(&self, id: &SessionId) -> bool {
        self.shard(id).lock().remove(id).is_some()
    }

    /// Takes out the sessions whose time is over.
    pub(crate) fn expire(&self) -> Vec<SessionId> {
        let now = Instant::now();
        let mut expired = Vec::new();
        for shard in &self.shards {
            shard.lock().retain(|id, used| {
                let over = is_over(*used, now);
                if over {
                    expired.push(*id);
                }
                !over
            });
        }
        expired
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().len()).sum()
    }

    /// All of them, with the time since their last use.
    pub(crate) fn all(&self) -> Vec<(SessionId, Duration)> {
        let list = |shard: &Mutex<HashMap<SessionId, Instant>>| -> Vec<_> {
            shard.lock().iter().map(|(id, used)| (*id, used.elapsed())).collect()
        };
        self.shards.iter().flat_map(list).collect()
    }
}

fn is_over(used: Instant, now: Instant) -> bool {
    now.duration_since(used) > Duration::from_secs(SESSION_TIMEOUT_MINUTES * 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_lives_from_its_first_use_to_its_end() {
        let sessions = Sessions::default();
        let id = SessionId { id: [7; 16], user: [0; 32] };
        sessions.touch(id).expect("room");
        sessions.touch(id).expect("room");
        assert_eq!(sessions.count(), 1);
        assert!(sessions.expire().is_empty());
        assert!(sessions.end(&id));
        assert!(!sessions.end(&id));
    }
}
