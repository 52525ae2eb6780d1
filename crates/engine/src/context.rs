//! What one operation brings along besides its arguments: session, deadline, interruption.

use crate::error::{Code, Error, Result};
use crate::monitor::Monitor;
use crate::namespace::Namespace;
use crate::snapshots::SnapshotRead;
use crate::stage::Report;
use bson::{RawBson, RawDocument, RawDocumentBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

/// A logical session's id.
pub type SessionId = [u8; 16];

/// The session part of an operation.
#[derive(Clone, Debug)]
pub struct SessionContext {
    /// The session's id: `lsid.id`, made different for each user.
    pub id: SessionId,
    /// What sessions of different users are told apart by; zeros where there are no users.
    pub user: [u8; 32],
    /// `txnNumber`.
    pub txn_number: Option<i64>,
    /// `autocommit: false`: the operation belongs to a multi-document transaction.
    pub in_transaction: bool,
    /// `startTransaction: true`.
    pub start_transaction: bool,
    /// Whether the transaction reads what is executed, flushed or not, so that it needs not wait for the flush of the one
    /// before it. Whoever asks for that must tell nobody what it saw before its own commit is durable.
    pub ahead: bool,
    /// Set once this very operation has begun the transaction.
    pub begun: Arc<AtomicBool>,
}

impl SessionContext {
    /// `lsid.id`, as the client knows it: the engine's id without the user.
    pub fn client_id(&self) -> [u8; 16] {
        let mut id = self.id;
        id.iter_mut().zip(self.user).for_each(|(byte, user)| *byte ^= user);
        id
    }
}

/// What the server around the engine reports on: running operations and sessions, for `$currentOp` and `$listSessions`.
pub type Reporter = Arc<dyn Fn(Report, &RawDocument) -> Result<Vec<RawDocumentBuf>> + Send + Sync>;

/// The indexes, by names or key patterns, that queries on some collections may use, whatever they hint at.
pub type IndexHints = Vec<(Namespace, Vec<RawBson>)>;

/// The context of one operation.
#[derive(Clone)]
pub struct Context {
    /// The session, if the operation names one.
    pub session: Option<SessionContext>,
    /// When `maxTimeMS` is over.
    pub deadline: Option<Instant>,
    /// What may be seen of it from outside, and by which it is stopped.
    pub monitor: Arc<Monitor>,
    /// What the operation reads, where it is a snapshot that later operations come back to.
    pub snapshot: Option<Arc<SnapshotRead>>,
    /// Who knows of running operations and sessions.
    pub reporter: Option<Reporter>,
    /// Which indexes its plans may read, as an administrator said; where none of them is there, all.
    pub index_hints: Option<Arc<IndexHints>>,
    /// Whether what it writes may wait half a millisecond for somebody else's flush: work in the background, beside which others
    /// shall not wait for two flushes.
    pub is_patient: bool,
    /// Runs a part that may block or take long; a server on an async runtime gives the rest of its work to another
    /// thread meanwhile. The default runs it in place.
    pub blocking: fn(&mut dyn FnMut()),
}

impl Default for Context {
    fn default() -> Context {
        Context {
            session: None,
            deadline: None,
            monitor: Arc::default(),
            snapshot: None,
            reporter: None,
            index_hints: None,
            is_patient: false,
            blocking: |part| part(),
        }
    }
}

impl Context {
    /// Fails when the operation was stopped or its time is over.
    ///
    /// # Errors
    /// `Interrupted` (11601) or the code it was stopped with, `MaxTimeMSExpired` (50).
    pub fn check(&self) -> Result<()> {
        if let Some(code) = self.monitor.raised() {
            return Err(Error::new(code, "operation was interrupted"));
        }
        if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return Err(Error::new(Code::MAX_TIME_MS_EXPIRED, "operation exceeded time limit"));
        }
        Ok(())
    }

    /// Runs a part that may block or take long.
    pub fn block<T>(&self, part: impl FnOnce() -> T) -> T {
        let mut part = Some(part);
        let mut result = None;
        (self.blocking)(&mut || {
            if let Some(part) = part.take() {
                result = Some(part());
            }
        });
        result.expect("a blocking part is run exactly once")
    }

    /// The transaction that the operation belongs to.
    pub fn transaction(&self) -> Option<&SessionContext> {
        self.session.as_ref().filter(|session| session.in_transaction)
    }

    /// The session of a retryable write: it has a number and is no transaction.
    pub fn retryable(&self) -> Option<(&SessionContext, i64)> {
        let session = self.session.as_ref().filter(|session| !session.in_transaction)?;
        Some((session, session.txn_number?))
    }
}
