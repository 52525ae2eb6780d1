//! A document on its way through a plan or a pipeline, with what travels beside it.

use crate::error::Result;
use bson::{RawDocument, RawDocumentBuf};
use bytes::Bytes;

/// A document whose bytes are shared with the storage where they can be.
#[derive(Clone, Debug)]
pub struct Row {
    bytes: Bytes,
    /// The key of the stored record, for rows that came straight from a collection.
    pub record: Option<Bytes>,
    /// The encoded sort key, for `$meta: "sortKey"` and for merging sorted inputs.
    pub sort_key: Option<Bytes>,
}

impl Row {
    /// A row over stored bytes.
    ///
    /// # Errors
    /// `InvalidBSON` (22) when the bytes are not framed as a document.
    pub fn stored(bytes: Bytes, record: Bytes) -> Result<Row> {
        RawDocument::from_bytes(&bytes)?;
        Ok(Row { bytes, record: Some(record), sort_key: None })
    }

    /// The document.
    pub fn document(&self) -> &RawDocument {
        RawDocument::from_bytes(&self.bytes).expect("a row's frame is checked when it is made")
    }

    /// The document's bytes.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// The same row with another document; what travels beside it stays.
    pub fn with_document(self, document: RawDocumentBuf) -> Row {
        Row { bytes: Bytes::from(document.into_bytes()), ..self }
    }
}

impl From<RawDocumentBuf> for Row {
    fn from(document: RawDocumentBuf) -> Row {
        Row { bytes: Bytes::from(document.into_bytes()), record: None, sort_key: None }
    }
}
