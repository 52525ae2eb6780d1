//! Sessions of the engine in this process.

use super::{Embedded, plain};
use crate::error::Result;
use crate::session::{Session, SessionKind};
use engine::storage::Ticket;
use engine::{Context, Engine, SessionContext};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

pub(crate) struct EmbeddedSession {
    engine: Engine,
    id: [u8; 16],
    number: i64,
    open: bool,
    ahead: bool,
    begun: Arc<AtomicBool>,
}

/// The session as the engine has it.
pub(crate) fn as_embedded(session: Option<&mut Session>) -> Option<&mut EmbeddedSession> {
    match session {
        Some(Session { kind: SessionKind::Embedded(session) }) => Some(session),
        _ => None,
    }
}

impl Drop for EmbeddedSession {
    fn drop(&mut self) {
        self.engine.end_sessions(&[self.id]);
    }
}

impl EmbeddedSession {
    /// Begins a transaction; `ahead` reads what is executed, flushed or not.
    pub(crate) fn start_transaction(&mut self, ahead: bool) {
        self.number += 1;
        self.open = true;
        self.ahead = ahead;
        self.begun = Arc::default();
    }

    pub(crate) async fn commit(&mut self) -> Result<()> {
        if let Some(ticket) = self.execute()? {
            ticket.await?;
        }
        Ok(())
    }

    /// Commits without waiting for the flush; nothing when nothing was done.
    pub(crate) fn execute(&mut self) -> Result<Option<Ticket>> {
        let context = self.context();
        self.open = false;
        if !self.begun.load(Ordering::Relaxed) {
            return Ok(None);
        }
        Ok(Some(self.engine.commit_transaction(&context)?.ticket))
    }

    pub(crate) fn abort(&mut self) -> Result<()> {
        let context = self.context();
        self.open = false;
        if self.begun.load(Ordering::Relaxed) {
            self.engine.abort_transaction(&context)?;
        }
        Ok(())
    }

    pub(super) fn context(&self) -> Context {
        let mut context = plain();
        if self.open {
            context.session = Some(SessionContext {
                id: self.id,
                user: [0; 32],
                txn_number: Some(self.number),
                in_transaction: true,
                start_transaction: true,
                ahead: self.ahead,
                begun: self.begun.clone(),
            });
        }
        context
    }
}

impl Embedded {
    pub(crate) fn start_session(&self) -> Session {
        let id = bson::Uuid::new().bytes();
        let (engine, begun) = (self.engine.clone(), Arc::default());
        let session = EmbeddedSession { engine, id, number: 0, open: false, ahead: false, begun };
        Session { kind: SessionKind::Embedded(session) }
    }
}
