//! Sessions of a deployment.

use super::Cluster;
use crate::error::Result;
use crate::session::{Session, SessionKind};
use mongodb::ClientSession;
use mongodb::options::{ReadConcern, WriteConcern};
use std::time::Instant;

pub(crate) struct ClusterSession {
    pub(crate) session: ClientSession,
}

/// The session as the driver has it.
pub(crate) fn as_cluster(session: Option<&mut Session>) -> Option<&mut ClusterSession> {
    match session {
        Some(Session { kind: SessionKind::Cluster(session) }) => Some(session),
        _ => None,
    }
}

impl ClusterSession {
    pub(crate) async fn start_transaction(&mut self) -> Result<()> {
        self.session
            .start_transaction()
            .read_concern(ReadConcern::snapshot())
            .write_concern(WriteConcern::majority())
            .await?;
        Ok(())
    }

    pub(crate) async fn commit(&mut self, until: Instant) -> Result<()> {
        loop {
            match self.session.commit_transaction().await {
                Ok(()) => return Ok(()),
                Err(error) if error.contains_label("UnknownTransactionCommitResult") && Instant::now() < until => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    pub(crate) async fn abort(&mut self) -> Result<()> {
        Ok(self.session.abort_transaction().await?)
    }
}

impl Cluster {
    pub(crate) async fn start_session(&self) -> Result<Session> {
        let session = ClusterSession { session: self.client.start_session().await? };
        Ok(Session { kind: SessionKind::Cluster(Box::new(session)) })
    }
}
