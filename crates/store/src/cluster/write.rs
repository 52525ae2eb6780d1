//! Writing to a deployment.

use super::{Cluster, ClusterSession, collation, hint, run};
use crate::collection::Collection;
use crate::error::{Error, Result};
use crate::options::{
    Delete, FindOneAndUpdate, InsertMany, InsertManyResult, Modifications, Update, UpdateResult, WriteError,
};
use bson::{Document, RawDocumentBuf};
use mongodb::error::{ErrorKind, IndexedWriteError};
use mongodb::options::{
    DeleteOptions, FindOneAndDeleteOptions, FindOneAndReplaceOptions, FindOneAndUpdateOptions, InsertManyOptions,
    ReplaceOptions, ReturnDocument, UpdateModifications, UpdateOptions,
};

pub(super) fn modifications(update: Modifications) -> UpdateModifications {
    match update {
        Modifications::Operators(operators) => UpdateModifications::Document(operators),
        Modifications::Pipeline(stages) => UpdateModifications::Pipeline(stages),
    }
}

fn failure(failed: &IndexedWriteError) -> WriteError {
    let error = Error::new(failed.code, failed.message.clone()).with_info(failed.details.clone());
    WriteError { index: failed.index, error }
}

/// `true` where it matters: servers need not know the option otherwise.
fn only_if(set: bool) -> Option<bool> {
    set.then_some(true)
}

fn update_options(options: Update) -> Result<UpdateOptions> {
    let mut given = UpdateOptions::default();
    given.upsert = only_if(options.upsert);
    given.array_filters = (!options.array_filters.is_empty()).then_some(options.array_filters);
    given.hint = hint(options.hint);
    given.collation = collation(options.collation)?;
    given.bypass_document_validation = only_if(options.bypass_document_validation);
    Ok(given)
}

fn updated(done: mongodb::results::UpdateResult) -> UpdateResult {
    UpdateResult { matched: done.matched_count, modified: done.modified_count, upserted: done.upserted_id }
}

fn which(after: bool) -> Option<ReturnDocument> {
    Some(if after { ReturnDocument::After } else { ReturnDocument::Before })
}

/// What an insert of many documents came to.
fn inserted(
    done: mongodb::error::Result<()>,
    count: usize,
    ordered: bool,
    in_transaction: bool,
) -> Result<InsertManyResult> {
    let error = match done {
        Ok(()) => return Ok(InsertManyResult { inserted: count as u64, ..InsertManyResult::default() }),
        Err(error) => error,
    };
    let errors: Vec<WriteError> = match &*error.kind {
        ErrorKind::InsertMany(many) if many.write_concern_error.is_none() && !in_transaction => {
            many.write_errors.iter().flatten().map(failure).collect()
        }
        _ => Vec::new(),
    };
    let Some(first) = errors.iter().map(|failed| failed.index).min() else { return Err(error.into()) };
    let inserted = if ordered { first } else { count - errors.len() };
    Ok(InsertManyResult { inserted: inserted as u64, ids: Vec::new(), errors })
}

impl Cluster {
    pub(crate) async fn insert(
        &self,
        collection: &Collection,
        documents: Vec<Document>,
        options: InsertMany,
        session: Option<&mut ClusterSession>,
    ) -> Result<InsertManyResult> {
        let count = documents.len();
        let in_transaction = session.is_some();
        let mut given = InsertManyOptions::default();
        given.ordered = Some(options.ordered);
        given.bypass_document_validation = only_if(options.bypass_document_validation);
        let collection = self.of(collection);
        let action = collection.insert_many(documents).with_options(given);
        let done = match session {
            Some(session) => action.session(&mut session.session).await,
            None => action.await,
        };
        inserted(done.map(drop), count, options.ordered, in_transaction)
    }

    pub(crate) async fn insert_raw(
        &self,
        collection: &Collection,
        documents: Vec<RawDocumentBuf>,
        options: InsertMany,
    ) -> Result<InsertManyResult> {
        let count = documents.len();
        let mut given = InsertManyOptions::default();
        given.ordered = Some(options.ordered);
        given.bypass_document_validation = only_if(options.bypass_document_validation);
        let collection = self.of(collection).clone_with_type::<RawDocumentBuf>();
        let done = collection.insert_many(documents).with_options(given).await;
        inserted(done.map(drop), count, options.ordered, false)
    }

    pub(crate) async fn update(
        &self,
        collection: &Collection,
        filter: Document,
        update: Modifications,
        options: Update,
        many: bool,
        session: Option<&mut ClusterSession>,
    ) -> Result<UpdateResult> {
        let collection = self.of(collection);
        let update = modifications(update);
        let action = if many { collection.update_many(filter, update) } else { collection.update_one(filter, update) };
        Ok(updated(run!(action.with_options(update_options(options)?), session)))
    }

    pub(crate) async fn replace(
        &self,
        collection: &Collection,
        filter: Document,
        replacement: Document,
        options: Update,
        session: Option<&mut ClusterSession>,
    ) -> Result<UpdateResult> {
        let mut given = ReplaceOptions::default();
        given.upsert = only_if(options.upsert);
        given.hint = hint(options.hint);
        given.collation = collation(options.collation)?;
        given.bypass_document_validation = only_if(options.bypass_document_validation);
        let collection = self.of(collection);
        Ok(updated(run!(collection.replace_one(filter, replacement).with_options(given), session)))
    }

    pub(crate) async fn find_one_and_update(
        &self,
        collection: &Collection,
        filter: Document,
        update: Modifications,
        options: FindOneAndUpdate,
        session: Option<&mut ClusterSession>,
    ) -> Result<Option<Document>> {
        let mut given = FindOneAndUpdateOptions::default();
        given.sort = options.sort;
        given.projection = options.projection;
        given.upsert = only_if(options.upsert);
        given.return_document = which(options.after);
        given.array_filters = (!options.array_filters.is_empty()).then_some(options.array_filters);
        given.hint = hint(options.hint);
        given.collation = collation(options.collation)?;
        given.bypass_document_validation = only_if(options.bypass_document_validation);
        let collection = self.of(collection);
        let action = collection.find_one_and_update(filter, modifications(update)).with_options(given);
        Ok(run!(action, session))
    }

    pub(crate) async fn find_one_and_replace(
        &self,
        collection: &Collection,
        filter: Document,
        replacement: Document,
        options: FindOneAndUpdate,
        session: Option<&mut ClusterSession>,
    ) -> Result<Option<Document>> {
        let mut given = FindOneAndReplaceOptions::default();
        given.sort = options.sort;
        given.projection = options.projection;
        given.upsert = only_if(options.upsert);
        given.return_document = which(options.after);
        given.hint = hint(options.hint);
        given.collation = collation(options.collation)?;
        given.bypass_document_validation = only_if(options.bypass_document_validation);
        let collection = self.of(collection);
        Ok(run!(collection.find_one_and_replace(filter, replacement).with_options(given), session))
    }

    pub(crate) async fn find_one_and_delete(
        &self,
        collection: &Collection,
        filter: Document,
        options: FindOneAndUpdate,
        session: Option<&mut ClusterSession>,
    ) -> Result<Option<Document>> {
        let mut given = FindOneAndDeleteOptions::default();
        given.sort = options.sort;
        given.projection = options.projection;
        given.hint = hint(options.hint);
        given.collation = collation(options.collation)?;
        let collection = self.of(collection);
        Ok(run!(collection.find_one_and_delete(filter).with_options(given), session))
    }

    pub(crate) async fn delete(
        &self,
        collection: &Collection,
        filter: Document,
        options: Delete,
        many: bool,
        session: Option<&mut ClusterSession>,
    ) -> Result<u64> {
        let mut given = DeleteOptions::default();
        given.hint = hint(options.hint);
        given.collation = collation(options.collation)?;
        let collection = self.of(collection);
        let action = if many { collection.delete_many(filter) } else { collection.delete_one(filter) };
        Ok(run!(action.with_options(given), session).deleted_count)
    }
}
