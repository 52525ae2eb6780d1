//! Turning an index into a unique one: which keys several documents have.
//!
//! The index refuses new duplicates before (`prepareUnique`), so what a snapshot does not show can't come up meanwhile.

use super::validate::fields_length;
use crate::catalog::Collection;
use crate::context::Context;
use crate::database::Engine;
use crate::error::{Code, Error, Result};
use crate::keyspace;
use crate::namespace::Namespace;
use crate::statement::id_of;
use crate::storage::{Direction, View};
use bson::{RawArrayBuf, RawDocument, RawDocumentBuf, rawdoc};
use bytes::Bytes;

/// The most documents that are named.
const MAX_NAMED: usize = 1000;

/// The entries between two looks at whether to go on.
const ENTRIES_BETWEEN_CHECKS: usize = 1000;

impl Engine {
    /// The documents that stand in the way of making an index unique: `{ids: […]}` for each key that several have.
    ///
    /// # Errors
    /// `NamespaceNotFound` (26), `IndexNotFound` (27), a failing storage, an interruption.
    pub fn unique_violations(
        &self,
        context: &Context,
        namespace: &Namespace,
        name: &str,
    ) -> Result<Vec<RawDocumentBuf>> {
        let reading = self.inner.reading(context)?;
        let collection = reading.catalog.require(namespace)?;
        let index = collection
            .index(name)
            .ok_or_else(|| Error::new(Code::INDEX_NOT_FOUND, format!("cannot find index {name} for ns {namespace}")))?;
        let view = reading.view()?;
        let prefix = keyspace::prefix(keyspace::INDEXES, index.id);
        let mut end = None;
        let (from, to) = keyspace::bounds(&prefix, &mut end);
        let (mut violations, mut named) = (Vec::new(), 0);
        let (mut fields, mut holders): (Bytes, Vec<Bytes>) = Default::default();
        for (number, entry) in view.range(from, to, Direction::Forward)?.enumerate() {
            if number.is_multiple_of(ENTRIES_BETWEEN_CHECKS) {
                context.check()?;
            }
            let rest = entry?.0.slice(keyspace::RECORD_PREFIX_BYTES..);
            let length = fields_length(&index.spec, &rest)?;
            if rest[..length] != fields[..] || holders.is_empty() {
                named += if holders.len() > 1 { holders.len() } else { 0 };
                violations.extend(violation(&*view, collection, &holders)?);
                holders.clear();
                fields = rest.slice(..length);
            }
            if named + holders.len() >= MAX_NAMED {
                break;
            }
            holders.push(rest.slice(length..));
        }
        violations.extend(violation(&*view, collection, &holders)?);
        Ok(violations)
    }
}

/// The documents with one key, if there are several.
fn violation(view: &dyn View, collection: &Collection, holders: &[Bytes]) -> Result<Option<RawDocumentBuf>> {
    if holders.len() < 2 {
        return Ok(None);
    }
    let mut ids = RawArrayBuf::new();
    for record_key in holders {
        if let Some(bytes) = view.get(&keyspace::record(collection.id, record_key))? {
            ids.push(id_of(RawDocument::from_bytes(&bytes)?)?);
        }
    }
    Ok(Some(rawdoc! { "ids": ids }))
}
