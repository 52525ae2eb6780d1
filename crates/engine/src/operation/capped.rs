//! `convertToCapped` and `cloneCollectionAsCapped`: the newest documents of a collection in a capped one.
//!
//! The documents are copied in bounded steps into a collection of its own, which then takes its name: the original's, or the
//! one asked for. Only the index on `_id` comes along, as in MongoDB.

use super::{Create, Rename, STEP_BYTES};
use crate::catalog::Collection;
use crate::context::Context;
use crate::database::{Engine, Written};
use crate::document::validated;
use crate::error::{Code, Error, Result};
use crate::keyspace;
use crate::namespace::Namespace;
use crate::statement::refuse_view;
use crate::storage::{Direction, View};
use bson::{RawDocument, RawDocumentBuf, rawdoc};
use bytes::Bytes;
use std::ops::Bound;

impl Engine {
    /// Replaces a collection by a capped one of `size_bytes` with its newest documents.
    ///
    /// # Errors
    /// `NamespaceNotFound` (26), `CommandNotSupportedOnView` (166).
    pub fn convert_to_capped(&self, context: &Context, namespace: &Namespace, size_bytes: i64) -> Result<Written<()>> {
        self.copy_capped(context, namespace, namespace, size_bytes, true)
    }

    /// Copies the newest documents of a collection into a new capped one of `size_bytes`.
    ///
    /// # Errors
    /// As [`Engine::convert_to_capped`], and `NamespaceExists` (48).
    pub fn clone_as_capped(
        &self,
        context: &Context,
        from: &Namespace,
        to: &Namespace,
        size_bytes: i64,
    ) -> Result<Written<()>> {
        self.copy_capped(context, from, to, size_bytes, false)
    }

    fn copy_capped(
        &self,
        context: &Context,
        from: &Namespace,
        to: &Namespace,
        size_bytes: i64,
        drop_target: bool,
    ) -> Result<Written<()>> {
        let state = self.state();
        let source =
            state.catalog.get(from).cloned().ok_or_else(|| {
                Error::new(Code::NAMESPACE_NOT_FOUND, format!("source collection {from} does not exist"))
            })?;
        refuse_unfit(&source)?;
        if let (false, Some(target)) = (drop_target, state.catalog.get(to)) {
            refuse_view(target)?;
            let message = format!("cloneCollectionAsCapped failed - destination collection {to} already exists");
            return Err(Error::new(Code::NAMESPACE_EXISTS, message));
        }
        let number = (self.inner.options.random)();
        let collection = format!("tmp{number:016x}.convertToCapped");
        let temporary = Namespace { database: to.database.clone(), collection };
        let options = rawdoc! { "capped": true, "size": size_bytes };
        self.create(context, &Create { namespace: temporary.clone(), options })?.wait()?;
        let copied = context.block(|| self.copy_documents(context, &source, &temporary));
        let renamed = copied
            .and_then(|()| self.rename(context, &Rename { from: temporary.clone(), to: to.clone(), drop_target }));
        if renamed.is_err() {
            self.drop_collection(&Context::default(), &temporary)?.wait()?;
        }
        renamed
    }

    /// Copies all documents in their order; the capped collection keeps the newest.
    fn copy_documents(&self, context: &Context, source: &Collection, target: &Namespace) -> Result<()> {
        let prefix = keyspace::prefix(keyspace::RECORDS, source.id);
        let end = keyspace::after_prefix(&prefix).expect("records are not the last kind of keys");
        let mut after: Option<Bytes> = None;
        loop {
            context.check()?;
            let snapshot = self.inner.storage.snapshot();
            let from = after.as_deref().map_or(Bound::Included(&prefix[..]), Bound::Excluded);
            let mut documents: Vec<RawDocumentBuf> = Vec::new();
            let mut bytes = 0;
            for entry in snapshot.range(from, Bound::Excluded(&end), Direction::Forward)? {
                let (key, document) = entry?;
                bytes += document.len();
                documents.push(RawDocument::from_bytes(&document)?.to_owned());
                after = Some(key);
                if bytes >= STEP_BYTES {
                    break;
                }
            }
            if documents.is_empty() {
                return Ok(());
            }
            let documents = documents.into_iter().map(validated).collect::<Result<Vec<_>>>()?;
            let step = self.inner.write(context, |statement| {
                let collection = statement.catalog.require(target)?.clone();
                documents.iter().try_for_each(|document| statement.insert(&collection, document.clone()))
            })?;
            step.wait()?;
        }
    }
}

/// Refuses views and what is shown as one.
fn refuse_unfit(source: &Collection) -> Result<()> {
    refuse_view(source)?;
    if source.settings.time_series.is_some() {
        return Err(Error::new(
            Code::COMMAND_NOT_SUPPORTED_ON_VIEW,
            format!("{} is a time-series collection, which can't be capped", source.namespace),
        ));
    }
    Ok(())
}
