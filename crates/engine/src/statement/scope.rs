//! What a write hook sees of a statement and may do in it.

use super::{Statement, UpdateKind, id_of};
use crate::error::Result;
use crate::hook::{Changing, HookScope, MAX_HOOK_WRITES};
use crate::keyspace;
use crate::namespace::Namespace;
use bson::{RawBsonRef, RawDocument, RawDocumentBuf};
use bytes::Bytes;

impl HookScope for Statement<'_> {
    fn get(&self, namespace: &Namespace, id: RawBsonRef<'_>) -> Result<Option<RawDocumentBuf>> {
        let Some(collection) = self.catalog.get(namespace) else { return Ok(None) };
        let found = self.find_document(collection, id)?;
        Ok(found.map(|(_, bytes)| RawDocumentBuf::from_bytes(bytes.to_vec())).transpose()?)
    }

    fn find(&self, namespace: &Namespace, filter: &RawDocument, limit: usize) -> Result<Vec<RawDocumentBuf>> {
        let Some(collection) = self.catalog.get(namespace) else { return Ok(Vec::new()) };
        self.engine.find_in_view(&self.layer, collection, filter, None, limit)
    }

    fn find_sorted(
        &self,
        namespace: &Namespace,
        filter: &RawDocument,
        sort: &RawDocument,
        limit: usize,
    ) -> Result<Vec<RawDocumentBuf>> {
        let Some(collection) = self.catalog.get(namespace) else { return Ok(Vec::new()) };
        self.engine.find_in_view(&self.layer, collection, filter, Some(sort), limit)
    }

    fn insert(&mut self, namespace: &Namespace, document: RawDocumentBuf) -> Result<()> {
        self.count_hook_write()?;
        let document = crate::document::validated(document)?;
        let collection = self.collection_or_create(namespace)?;
        Statement::insert(self, &collection, document)
    }

    fn replace(&mut self, namespace: &Namespace, document: RawDocumentBuf) -> Result<bool> {
        let Some(collection) = self.catalog.get(namespace).cloned() else { return Ok(false) };
        let Some((record_key, before)) = self.find_document(&collection, id_of(&document)?)? else { return Ok(false) };
        self.count_hook_write()?;
        let before = RawDocument::from_bytes(&before)?;
        Statement::update(self, &collection, &record_key, before, document, UpdateKind::Update)?;
        Ok(true)
    }

    fn change(&mut self, namespace: &Namespace, id: RawBsonRef<'_>, change: &mut Changing<'_>) -> Result<bool> {
        let Some(collection) = self.catalog.get(namespace).cloned() else { return Ok(false) };
        let Some((record_key, before)) = self.find_document(&collection, id)? else { return Ok(false) };
        let before = RawDocument::from_bytes(&before)?;
        if let Some(after) = change(before, self)? {
            self.count_hook_write()?;
            Statement::update(self, &collection, &record_key, before, after, UpdateKind::Update)?;
        }
        Ok(true)
    }

    fn delete(&mut self, namespace: &Namespace, id: RawBsonRef<'_>) -> Result<bool> {
        let Some(collection) = self.catalog.get(namespace).cloned() else { return Ok(false) };
        let Some((record_key, before)) = self.find_document(&collection, id)? else { return Ok(false) };
        self.count_hook_write()?;
        Statement::delete(self, &collection, &record_key, RawDocument::from_bytes(&before)?)?;
        Ok(true)
    }

    fn now(&self) -> i64 {
        self.now_ms
    }

    fn writes_left(&self) -> usize {
        MAX_HOOK_WRITES.saturating_sub(self.hook_writes)
    }

    fn require_layer(&mut self, layer: &str, required: bool) {
        let key = keyspace::layer(layer);
        if required {
            self.layer.put(key, Bytes::from_static(&[1]));
        } else {
            self.layer.delete(key);
        }
    }
}
