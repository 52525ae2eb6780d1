//! Snapshots that reads come back to: `readConcern: {level: "snapshot"}` outside of transactions.
//!
//! The first read of a moment keeps the state as of it for a minute, under its cluster time, and tells the client that time;
//! later reads ask for it by `atClusterTime`. A moment that nobody kept can only be read while it is the newest.

use crate::context::Context;
use crate::database::{Inner, State, timestamp};
use crate::error::{Code, Error, Result};
use bson::Timestamp;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// How long a snapshot is kept.
const LIFETIME: Duration = Duration::from_secs(60);

/// The most snapshots that are kept at once; the oldest gives way.
const MAX_KEPT: usize = 128;

/// A read of a moment: the one asked for, or the newest.
#[derive(Debug, Default)]
pub struct SnapshotRead {
    asked: Option<u64>,
    at: OnceLock<u64>,
}

impl SnapshotRead {
    /// A read at a cluster time, or at the newest when there is none.
    pub fn new(at: Option<Timestamp>) -> SnapshotRead {
        let asked = at.map(|time| u64::from(time.time) << 32 | u64::from(time.increment));
        SnapshotRead { asked, at: OnceLock::new() }
    }

    /// The cluster time that was read at, once it is known.
    pub fn at(&self) -> Option<Timestamp> {
        self.at.get().map(|time| timestamp(*time))
    }
}

/// The kept snapshots, by cluster time.
#[derive(Default)]
pub(crate) struct Snapshots {
    kept: Mutex<BTreeMap<u64, Kept>>,
}

#[derive(Clone)]
struct Kept {
    state: State,
    until: Instant,
}

impl Snapshots {
    fn get(&self, time: u64) -> Option<Kept> {
        self.kept.lock().get(&time).filter(|kept| Instant::now() < kept.until).cloned()
    }

    fn keep(&self, time: u64, state: State) -> Kept {
        let kept = Kept { state, until: Instant::now() + LIFETIME };
        let mut all = self.kept.lock();
        if all.len() >= MAX_KEPT {
            all.pop_first();
        }
        all.insert(time, kept.clone());
        kept
    }

    /// Gives up those whose time is over.
    pub(crate) fn expire(&self) {
        let now = Instant::now();
        self.kept.lock().retain(|_, kept| now < kept.until);
    }
}

impl Inner {
    /// The state that a read comes back to, and when it must be given up.
    ///
    /// # Errors
    /// `SnapshotTooOld` (239), `InvalidOptions` (72) for a time that is yet to come.
    pub(crate) fn kept_snapshot(&self, context: &Context, read: &SnapshotRead) -> Result<(State, Instant)> {
        let asked = read.at.get().copied().or(read.asked);
        if let Some((time, kept)) = asked.and_then(|time| Some((time, self.snapshots.get(time)?))) {
            read.at.get_or_init(|| time);
            return Ok((kept.state, kept.until));
        }
        let (state, time, ticket) = self.with_writer(|writer, working| {
            let state = State { snapshot: writer.executed(), catalog: working.catalog.clone() };
            Ok((state, writer.time(), self.storage.ticket(writer.position())))
        })?;
        if asked.is_some_and(|asked| asked > time) {
            let message = "readConcern atClusterTime value must not be greater than the current clusterTime";
            return Err(Error::new(Code::INVALID_OPTIONS, message));
        }
        if asked.is_some_and(|asked| asked < time) {
            return Err(too_old());
        }
        context.block(|| ticket.wait())?;
        let kept = self.snapshots.keep(time, state);
        read.at.get_or_init(|| time);
        Ok((kept.state, kept.until))
    }
}

/// What a read gets whose snapshot is gone.
pub(crate) fn too_old() -> Error {
    Error::new(
        Code::SNAPSHOT_TOO_OLD,
        format!(
            "Read timestamp is older than the oldest available timestamp: a snapshot is kept for {} seconds; begin a new one",
            LIFETIME.as_secs()
        ),
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::operation::{Find, Insert};
    use crate::{Engine, Namespace, Options};
    use bson::rawdoc;
    use std::sync::Arc;

    fn insert(engine: &Engine, id: i32) {
        let namespace = Namespace::new("shop", "items").unwrap();
        let documents = vec![rawdoc! { "_id": id }];
        let insert = Insert {
            namespace,
            documents,
            ordered: true,
            bypass_document_validation: false,
            statement_ids: Vec::new(),
        };
        engine.insert(&Context::default(), insert).unwrap().wait().unwrap();
    }

    fn read(engine: &Engine, at: Option<Timestamp>) -> Result<(usize, Timestamp)> {
        let snapshot = Arc::new(SnapshotRead::new(at));
        let context = Context { snapshot: Some(snapshot.clone()), ..Context::default() };
        let batch = engine.find(&context, &Find::new(Namespace::new("shop", "items").unwrap()))?;
        Ok((batch.documents.len(), snapshot.at().unwrap()))
    }

    #[test]
    fn a_moment_stays_as_it_was_for_those_who_come_back() {
        let engine = Engine::in_memory(Options::system()).unwrap();
        insert(&engine, 1);
        let (count, first) = read(&engine, None).unwrap();
        assert_eq!(count, 1);
        insert(&engine, 2);
        assert_eq!(read(&engine, Some(first)).unwrap(), (1, first));
        let (count, second) = read(&engine, None).unwrap();
        assert_eq!(count, 2);
        assert!(second > first);
        assert_eq!(read(&engine, Some(engine.cluster_time())).unwrap().0, 2);
    }

    #[test]
    fn a_moment_that_nobody_kept_or_that_is_to_come_is_refused() {
        let engine = Engine::in_memory(Options::system()).unwrap();
        insert(&engine, 1);
        let unread = engine.cluster_time();
        insert(&engine, 2);
        assert_eq!(read(&engine, Some(unread)).unwrap_err().code, Code::SNAPSHOT_TOO_OLD);
        let later = Timestamp { time: unread.time + 1000, increment: 1 };
        assert_eq!(read(&engine, Some(later)).unwrap_err().code, Code::INVALID_OPTIONS);
    }
}
