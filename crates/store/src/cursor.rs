//! Results that come in batches.

use crate::cluster::as_cluster;
use crate::embedded::EmbeddedCursor;
use crate::error::{Error, Result};
use crate::session::Session;
use bson::{Document, RawDocument, RawDocumentBuf};

/// The results of a find, an aggregation or a listing, fetched batch by batch. Dropping it closes it.
pub struct Cursor {
    pub(crate) kind: CursorKind,
}

pub(crate) enum CursorKind {
    Embedded(EmbeddedCursor),
    Cluster(mongodb::Cursor<Document>),
    ClusterSession(mongodb::SessionCursor<Document>),
}

impl Cursor {
    /// The next document; `session` is the one that the cursor was opened in.
    ///
    /// # Errors
    /// A lost cursor, a failing storage or connection.
    pub async fn next(&mut self, session: Option<&mut Session>) -> Result<Option<Document>> {
        if let CursorKind::Embedded(cursor) = &mut self.kind {
            // The bytes are the engine's: what is read from them need not be copied first.
            let bytes = cursor.next_bytes()?;
            return Ok(bytes.map(|bytes| Document::try_from(RawDocument::from_bytes(&bytes)?)).transpose()?);
        }
        match self.next_raw(session).await? {
            Some(raw) => Ok(Some(Document::try_from(&*raw)?)),
            None => Ok(None),
        }
    }

    /// The next document's bytes; `session` is the one that the cursor was opened in.
    ///
    /// # Errors
    /// A lost cursor, a failing storage or connection.
    pub async fn next_raw(&mut self, session: Option<&mut Session>) -> Result<Option<RawDocumentBuf>> {
        match &mut self.kind {
            CursorKind::Embedded(cursor) => cursor.next(),
            CursorKind::Cluster(cursor) => match cursor.advance().await? {
                true => Ok(Some(cursor.current().to_owned())),
                false => Ok(None),
            },
            CursorKind::ClusterSession(cursor) => {
                let Some(session) = as_cluster(session) else {
                    return Err(Error::new(2, "the cursor was opened in a session: give that session"));
                };
                match cursor.advance(&mut session.session).await? {
                    true => Ok(Some(cursor.current().to_owned())),
                    false => Ok(None),
                }
            }
        }
    }

    /// All documents that are left.
    ///
    /// # Errors
    /// A lost cursor, a failing storage or connection.
    pub async fn collect(mut self, mut session: Option<&mut Session>) -> Result<Vec<Document>> {
        let mut all = Vec::new();
        while let Some(document) = self.next(session.as_deref_mut()).await? {
            all.push(document);
        }
        Ok(all)
    }
}
