//! Sessions and the transactions in them.

use crate::cluster::ClusterSession;
use crate::embedded::EmbeddedSession;
use crate::error::Result;
use std::time::Instant;

/// A session, for transactions and causal reads.
pub struct Session {
    pub(crate) kind: SessionKind,
}

pub(crate) enum SessionKind {
    Embedded(EmbeddedSession),
    Cluster(Box<ClusterSession>),
}

impl Session {
    pub(crate) async fn start_transaction(&mut self) -> Result<()> {
        match &mut self.kind {
            SessionKind::Embedded(session) => {
                session.start_transaction();
                Ok(())
            }
            SessionKind::Cluster(session) => session.start_transaction().await,
        }
    }

    pub(crate) async fn commit(&mut self, until: Instant) -> Result<()> {
        match &mut self.kind {
            SessionKind::Embedded(session) => session.commit().await,
            SessionKind::Cluster(session) => session.commit(until).await,
        }
    }

    pub(crate) async fn abort(&mut self) -> Result<()> {
        match &mut self.kind {
            SessionKind::Embedded(session) => session.abort(),
            SessionKind::Cluster(session) => session.abort().await,
        }
    }
}
