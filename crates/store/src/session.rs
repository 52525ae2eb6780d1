//! Sessions and the transactions in them.

use crate::cluster::ClusterSession;
use crate::embedded::EmbeddedSession;
use crate::error::Result;
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
        match &mut self.kind {
            SessionKind::Embedded(session) => {
                session.start_transaction();
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
