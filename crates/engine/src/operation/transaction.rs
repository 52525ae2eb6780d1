//! `commitTransaction`, `abortTransaction` and ending sessions.

use crate::context::{Context, SessionContext, SessionId};
use crate::database::{Engine, Written};
use crate::error::{Code, Error, Result};
use crate::session::OpenTransaction;

impl Engine {
    /// Commits the operation's transaction; asked again, gives the same answer.
    ///
    /// # Errors
    /// `NoSuchTransaction` (251), `WriteConflict` (112), what hooks refuse; the transaction is then aborted.
    pub fn commit_transaction(&self, context: &Context) -> Result<Written<()>> {
        self.inner.commit_transaction(session(context)?)
    }

    /// Drops the operation's transaction.
    ///
    /// # Errors
    /// `NoSuchTransaction` (251).
    pub fn abort_transaction(&self, context: &Context) -> Result<()> {
        self.inner.abort_transaction(session(context)?)
    }

    /// Forgets sessions: their transactions are aborted, their cursors closed.
    pub fn end_sessions(&self, ids: &[SessionId]) {
        self.inner.end_sessions(ids);
        self.inner.cursors.close_where(|cursor| cursor.session.is_some_and(|session| ids.contains(&session)));
    }

    /// The open transactions; those that are at work right now are left out.
    pub fn open_transactions(&self) -> Vec<OpenTransaction> {
        self.inner.sessions.open_transactions()
    }
}

fn session(context: &Context) -> Result<&SessionContext> {
    context.transaction().ok_or_else(|| {
        Error::new(
            Code::INVALID_OPTIONS,
            "the command must belong to a transaction: lsid, txnNumber and autocommit: false",
        )
    })
}
