//! How a statement finds documents by their `_id`.

use super::Statement;
use crate::catalog::Collection;
use crate::error::Result;
use crate::storage::View;
use crate::{key, keyspace};
use bson::RawBsonRef;
use bytes::Bytes;

/// A document that was found by its `_id`; forgotten with the next write.
pub(super) struct LastRead {
    collection: u32,
    encoded_id: Bytes,
    record_key: Bytes,
    document: Bytes,
}

impl Statement<'_> {
    /// Forgets what was read, because something is written.
    pub(super) fn forget_read(&mut self) {
        self.last_read.get_mut().take();
    }

    /// The document with that `_id`, with its record key, as the statement sees it.
    pub(super) fn find_document(&self, collection: &Collection, id: RawBsonRef<'_>) -> Result<Option<(Bytes, Bytes)>> {
        if collection.settings.series.is_some() {
            return Ok(None); // measurements are not found by _id
        }
        let encoded_id = self.encode_id(collection, id)?;
        if let Some(last) = &*self.last_read.borrow()
            && last.collection == collection.id
            && last.encoded_id == encoded_id
        {
            return Ok(Some((last.record_key.clone(), last.document.clone())));
        }
        let record_key = match collection.settings.clustered {
            true => encoded_id.clone(),
            false => match self.layer.get(&keyspace::id(collection.id, &encoded_id))? {
                Some(record_key) => record_key,
                None => return Ok(None),
            },
        };
        let Some(document) = self.read(collection, &record_key)? else { return Ok(None) };
        let read = LastRead { collection: collection.id, encoded_id, record_key, document };
        let found = (read.record_key.clone(), read.document.clone());
        self.last_read.replace(Some(read));
        Ok(Some(found))
    }

    /// The document under a record key, as the statement sees it.
    pub(crate) fn read(&self, collection: &Collection, record_key: &[u8]) -> Result<Option<Bytes>> {
        self.layer.get(&keyspace::record(collection.id, record_key))
    }

    /// The record key of the document with that `_id`.
    pub(crate) fn find_id(&self, collection: &Collection, id: RawBsonRef<'_>) -> Result<Option<Bytes>> {
        if collection.settings.series.is_some() {
            return Ok(None); // measurements are not found by _id
        }
        let encoded = self.encode_id(collection, id)?;
        if collection.settings.clustered {
            return Ok(self.read(collection, &encoded)?.map(|_| encoded));
        }
        self.layer.get(&keyspace::id(collection.id, &encoded))
    }

    pub(super) fn encode_id(&self, collection: &Collection, id: RawBsonRef<'_>) -> Result<Bytes> {
        let mut encoded = Vec::with_capacity(24);
        key::encode(id, collection.collator().map(|collator| &**collator), &mut encoded)?;
        Ok(Bytes::from(encoded))
    }
}
