//! Change streams of the engine in this process.

use super::read::stages;
use super::{Embedded, document, plain};
use crate::error::Result;
use crate::options::{Start, Watch};
use crate::stream::{ChangeStream, StreamKind};
use bson::{Document, doc};
use bytes::Bytes;
use engine::{Batch, Engine, Namespace};
use std::time::{Duration, Instant};

/// An open change stream of the engine. Dropping it closes it.
pub(crate) struct EmbeddedStream {
    engine: Engine,
    namespace: Namespace,
    cursor: i64,
    events: std::vec::IntoIter<Bytes>,
    /// The token behind the whole batch.
    batch_token: Option<Document>,
    /// The token of the last event given.
    token: Option<Document>,
    max_await: Duration,
    batch_size: Option<usize>,
}

impl EmbeddedStream {
    fn take(&mut self, batch: Batch) -> Result<()> {
        self.cursor = batch.cursor;
        self.events = batch.documents.into_iter();
        self.batch_token = batch.resume_token.map(|token| Document::try_from(&*token)).transpose()?;
        if self.events.len() == 0 && self.batch_token.is_some() {
            self.token.clone_from(&self.batch_token);
        }
        Ok(())
    }

    pub(crate) async fn next_if_any(&mut self) -> Result<Option<Document>> {
        let until = Instant::now() + self.max_await;
        loop {
            if let Some(bytes) = self.events.next() {
                let event = document(&bytes)?;
                self.token = match &self.batch_token {
                    Some(token) if self.events.len() == 0 => Some(token.clone()),
                    _ => event.get_document("_id").ok().cloned(),
                };
                return Ok(Some(event));
            }
            if self.cursor == 0 {
                return Ok(None);
            }
            let (batch, ticket) = self.engine.try_get_more(&plain(), self.cursor, &self.namespace, self.batch_size)?;
            let is_empty = batch.documents.is_empty();
            self.take(batch)?;
            let left = until.saturating_duration_since(Instant::now());
            match ticket.filter(|_| is_empty && !left.is_zero()) {
                Some(ticket) => {
                    if let Ok(done) = tokio::time::timeout(left, ticket).await {
                        done?;
                    }
                }
                None if is_empty => return Ok(None),
                None => {}
            }
        }
    }

    pub(crate) fn resume_token(&self) -> Option<Document> {
        self.token.clone()
    }

    pub(crate) fn is_alive(&self) -> bool {
        self.cursor != 0 || self.events.len() > 0
    }
}

impl Drop for EmbeddedStream {
    fn drop(&mut self) {
        if self.cursor != 0 {
            self.engine.kill_cursor(self.cursor);
        }
    }
}

impl Embedded {
    pub(crate) fn watch(&self, database: &str, name: &str, options: Watch) -> Result<ChangeStream> {
        let mut stage = Document::new();
        if options.update_lookup {
            stage.insert("fullDocument", "updateLookup");
        }
        if options.before_change {
            stage.insert("fullDocumentBeforeChange", "whenAvailable");
        }
        if options.show_expanded_events {
            stage.insert("showExpandedEvents", true);
        }
        let mut token = None;
        match options.start {
            Start::Now => {}
            Start::ResumeAfter(from) => {
                stage.insert("resumeAfter", from.clone());
                token = Some(from);
            }
            Start::StartAfter(from) => {
                stage.insert("startAfter", from.clone());
                token = Some(from);
            }
            Start::AtTime(time) => {
                stage.insert("startAtOperationTime", time);
            }
        }
        let namespace = match (database, name) {
            ("", _) => {
                stage.insert("allChangesForCluster", true);
                Namespace { database: "admin".to_owned(), collection: String::new() }
            }
            (database, "") => Namespace { database: database.to_owned(), collection: String::new() },
            _ => Namespace::new(database, name)?,
        };
        let mut pipeline = vec![doc! { "$changeStream": stage }];
        pipeline.extend(options.pipeline);
        let mut aggregate = engine::operation::Aggregate::new(namespace, stages(&pipeline)?);
        let batch_size = options.batch_size.map(|size| size as usize);
        aggregate.batch_size = batch_size;
        let batch = self.engine.aggregate(&plain(), &aggregate)?;
        let mut stream = EmbeddedStream {
            engine: self.engine.clone(),
            namespace: batch.namespace.clone(),
            cursor: 0,
            events: Vec::new().into_iter(),
            batch_token: None,
            token,
            max_await: options.max_await,
            batch_size,
        };
        stream.take(batch)?;
        Ok(ChangeStream::new(StreamKind::Embedded(Box::new(stream))))
    }
}
