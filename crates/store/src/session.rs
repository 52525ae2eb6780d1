//! Sessions and the transactions in them.

use crate::cluster::ClusterSession;
use crate::embedded::EmbeddedSession;
use crate::error::Result;
use engine::storage::Ticket;
use std::time::{Duration, Instant};

/// How long a commit whose outcome is unknown is tried again.
const COMMIT_RETRY: Duration = Duration::from_secs(30);

/// A session, for transactions and causal reads.
pub struct Session {
    pub(crate) kind: SessionKind,
}

pub(crate) enum SessionKind {
    Embedded(EmbeddedSession),
    Cluster(Box<ClusterSession>),
}

impl Session {
    /// Begins a transaction: reads see one snapshot, writes become visible at its commit.
    ///
    /// # Errors
    /// A transaction that is already open on a deployment.
    pub async fn start_transaction(&mut self) -> Result<()> {
        self.begin(false).await
    }

    pub(crate) async fn begin(&mut self, ahead: bool) -> Result<()> {
        match &mut self.kind {
            SessionKind::Embedded(session) => {
                session.start_transaction(ahead);
                Ok(())
            }
            SessionKind::Cluster(session) => session.start_transaction().await,
        }
    }

    /// Commits the transaction.
    ///
    /// # Errors
    /// A lost conflict (label `TransientTransactionError`), an unknown outcome (`UnknownTransactionCommitResult`).
    pub async fn commit_transaction(&mut self) -> Result<()> {
        self.commit(Instant::now() + COMMIT_RETRY).await
    }

    pub(crate) async fn commit(&mut self, until: Instant) -> Result<()> {
        match &mut self.kind {
            SessionKind::Embedded(session) => session.commit().await,
            SessionKind::Cluster(session) => session.commit(until).await,
        }
    }

    /// Commits; on an embedded store without waiting for the flush, which the ticket tells of.
    pub(crate) async fn execute(&mut self, until: Instant) -> Result<Option<Ticket>> {
        match &mut self.kind {
            SessionKind::Embedded(session) => session.execute(),
            SessionKind::Cluster(session) => session.commit(until).await.map(|()| None),
        }
    }

    /// Drops the transaction and its writes.
    ///
    /// # Errors
    /// A broken connection; the transaction is over either way.
    pub async fn abort_transaction(&mut self) -> Result<()> {
        match &mut self.kind {
            SessionKind::Embedded(session) => session.abort(),
            SessionKind::Cluster(session) => session.abort().await,
        }
    }
}
