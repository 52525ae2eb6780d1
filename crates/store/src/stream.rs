//! Change streams.

use crate::embedded::EmbeddedStream;
use crate::error::{Error, Result};
use bson::Document;

/// What changes, event by event, from a place that can be resumed.
pub struct ChangeStream {
    kind: StreamKind,
    /// Whether an `invalidate` event was given: nothing comes after it.
    ended: bool,
}

pub(crate) enum StreamKind {
    Embedded(Box<EmbeddedStream>),
    Cluster(Box<mongodb::change_stream::ChangeStream<Document>>),
}

impl ChangeStream {
    pub(crate) fn new(kind: StreamKind) -> ChangeStream {
        ChangeStream { kind, ended: false }
    }

    /// The next event, if one comes within [`Watch::max_await`](crate::Watch::max_await).
    ///
    /// # Errors
    /// 286 (`ChangeStreamHistoryLost`) when the place is no longer kept, a failing storage or connection.
    pub async fn next_if_any(&mut self) -> Result<Option<Document>> {
        if self.ended {
            return Ok(None);
        }
        let event = match &mut self.kind {
            StreamKind::Embedded(stream) => stream.next_if_any().await?,
            StreamKind::Cluster(stream) => stream.next_if_any().await?,
        };
        let kind = event.as_ref().and_then(|event| event.get_str("operationType").ok());
        self.ended = kind == Some("invalidate");
        Ok(event)
    }

    /// The next event; waits for it.
    ///
    /// # Errors
    /// As [`ChangeStream::next_if_any`], and 2 when the stream has ended.
    pub async fn next(&mut self) -> Result<Document> {
        loop {
            if let Some(event) = self.next_if_any().await? {
                return Ok(event);
            }
            if !self.is_alive() {
                return Err(Error::new(2, "the change stream has ended: its collection was dropped or renamed"));
            }
        }
    }

    /// The token to resume after what was given so far.
    pub fn resume_token(&self) -> Option<Document> {
        match &self.kind {
            StreamKind::Embedded(stream) => stream.resume_token(),
            StreamKind::Cluster(stream) => {
                stream.resume_token().and_then(|token| bson::serialize_to_document(&token).ok())
            }
        }
    }

    /// Whether more may come.
    pub fn is_alive(&self) -> bool {
        !self.ended
            && match &self.kind {
                StreamKind::Embedded(stream) => stream.is_alive(),
                StreamKind::Cluster(stream) => stream.is_alive(),
            }
    }
}
