//! The verbs on a collection's documents. What concerns its definition is in `admin.rs`.

use crate::cursor::Cursor;
use crate::error::{Error, Result};
use crate::options::{
    Aggregate, BulkWrite, BulkWriteResult, Delete, Find, FindOneAndUpdate, InsertMany, InsertManyResult, Modifications,
    Update, UpdateResult, Watch, WriteModel,
};
use crate::session::Session;
use crate::stream::ChangeStream;
use crate::{Kind, Store, dispatch};
use bson::{Bson, Document, RawDocumentBuf};

/// A collection of a store.
#[derive(Clone)]
pub struct Collection {
    pub(crate) store: Store,
    pub(crate) database: String,
    pub(crate) name: String,
}

impl Collection {
    /// The collection's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its database's name.
    pub fn database(&self) -> &str {
        &self.database
    }

    /// The store that it is in.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Inserts a document.
    ///
    /// # Errors
    /// A duplicate key, a validator's refusal.
    pub async fn insert_one(&self, document: Document, session: Option<&mut Session>) -> Result<()> {
        self.insert_many(vec![document], session).await
    }

    /// Inserts documents in order, up to the first that fails.
    ///
    /// # Errors
    /// A duplicate key, a validator's refusal.
    pub async fn insert_many(&self, documents: Vec<Document>, session: Option<&mut Session>) -> Result<()> {
        let done = self.insert_many_with(documents, InsertMany::default(), session).await?;
        match done.errors.into_iter().next() {
            Some(failed) => Err(failed.error),
            None => Ok(()),
        }
    }

    /// Inserts documents; says which failed. Documents without `_id` get an ObjectId.
    ///
    /// # Errors
    /// What concerns the whole call; within a transaction also the first document's failure.
    pub async fn insert_many_with(
        &self,
        mut documents: Vec<Document>,
        options: InsertMany,
        session: Option<&mut Session>,
    ) -> Result<InsertManyResult> {
        if documents.is_empty() {
            return Ok(InsertManyResult::default());
        }
        let ids = documents.iter_mut().map(own_id).collect();
        let mut done = dispatch!(self.store, session,
            embedded => embedded.insert(self, documents, options, session).await,
            cluster => cluster.insert(self, documents, options, session).await)?;
        done.ids = ids;
        Ok(done)
    }

    /// Inserts documents by their bytes; says which failed. For moving many documents that have their `_id`.
    ///
    /// # Errors
    /// What concerns the whole call.
    pub async fn insert_raw_many(
        &self,
        documents: Vec<RawDocumentBuf>,
        options: InsertMany,
    ) -> Result<InsertManyResult> {
        if documents.is_empty() {
            return Ok(InsertManyResult::default());
        }
        match &self.store.kind {
            Kind::Embedded(embedded) => embedded.insert_raw(self, documents, options, None).await,
            Kind::Cluster(cluster) => cluster.insert_raw(self, documents, options).await,
        }
    }

    /// The documents that match, all in memory: for many, use [`Collection::stream`].
    ///
    /// # Errors
    /// An invalid query.
    pub async fn find(
        &self,
        filter: Document,
        options: Find,
        mut session: Option<&mut Session>,
    ) -> Result<Vec<Document>> {
        let cursor = self.stream(filter, options, session.as_deref_mut()).await?;
        cursor.collect(session).await
    }

    /// The documents that match, batch by batch.
    ///
    /// # Errors
    /// An invalid query.
    pub async fn stream(&self, filter: Document, options: Find, session: Option<&mut Session>) -> Result<Cursor> {
        dispatch!(self.store, session, embedded => embedded.find(self, filter, options, session),
            cluster => cluster.find(self, filter, options, session).await)
    }

    /// The first document that matches.
    ///
    /// # Errors
    /// An invalid query.
    pub async fn find_one(&self, filter: Document, session: Option<&mut Session>) -> Result<Option<Document>> {
        let found = self.find(filter, Find { limit: 1, ..Find::default() }, session).await?;
        Ok(found.into_iter().next())
    }

    /// The results of a pipeline, batch by batch.
    ///
    /// # Errors
    /// An invalid pipeline.
    pub async fn aggregate(
        &self,
        pipeline: Vec<Document>,
        options: Aggregate,
        session: Option<&mut Session>,
    ) -> Result<Cursor> {
        dispatch!(self.store, session, embedded => embedded.aggregate(self, pipeline, options, session),
            cluster => cluster.aggregate(self, pipeline, options, session).await)
    }

    /// How many documents match.
    ///
    /// # Errors
    /// An invalid query.
    pub async fn count(&self, filter: Document, session: Option<&mut Session>) -> Result<u64> {
        dispatch!(self.store, session, embedded => embedded.count(self, filter, session),
            cluster => cluster.count(self, filter, session).await)
    }

    /// How many documents there are, from the collection's totals.
    ///
    /// # Errors
    /// A failing storage or connection.
    pub async fn estimated_count(&self) -> Result<u64> {
        match &self.store.kind {
            crate::Kind::Embedded(embedded) => embedded.count(self, Document::new(), None),
            crate::Kind::Cluster(cluster) => cluster.estimated_count(self).await,
        }
    }

    /// The different values of a field in the documents that match.
    ///
    /// # Errors
    /// An invalid query, values beyond 16 MiB.
    pub async fn distinct(&self, key: &str, filter: Document, session: Option<&mut Session>) -> Result<Vec<Bson>> {
        dispatch!(self.store, session, embedded => embedded.distinct(self, key, filter, session),
            cluster => cluster.distinct(self, key, filter, session).await)
    }

    /// Updates the first document that matches.
    ///
    /// # Errors
    /// An invalid query or update, and what writing refuses.
    pub async fn update_one(
        &self,
        filter: Document,
        update: impl Into<Modifications>,
        options: Update,
        session: Option<&mut Session>,
    ) -> Result<UpdateResult> {
        self.update(filter, update.into(), options, false, session).await
    }

    /// Updates all documents that match.
    ///
    /// # Errors
    /// An invalid query or update, and what writing refuses.
    pub async fn update_many(
        &self,
        filter: Document,
        update: impl Into<Modifications>,
        options: Update,
        session: Option<&mut Session>,
    ) -> Result<UpdateResult> {
        self.update(filter, update.into(), options, true, session).await
    }

    async fn update(
        &self,
        filter: Document,
        update: Modifications,
        options: Update,
        many: bool,
        session: Option<&mut Session>,
    ) -> Result<UpdateResult> {
        check_modifications(&update)?;
        dispatch!(self.store, session, embedded => embedded.update(self, filter, update, options, many, session).await,
            cluster => cluster.update(self, filter, update, options, many, session).await)
    }

    /// Replaces the first document that matches; its `_id` stays.
    ///
    /// # Errors
    /// An invalid query, and what writing refuses.
    pub async fn replace_one(
        &self,
        filter: Document,
        replacement: Document,
        options: Update,
        session: Option<&mut Session>,
    ) -> Result<UpdateResult> {
        check_replacement(&replacement)?;
        dispatch!(self.store, session,
            embedded => embedded.update(self, filter, replacement.into(), options, false, session).await,
            cluster => cluster.replace(self, filter, replacement, options, session).await)
    }

    /// Updates the first document that matches and gives it.
    ///
    /// # Errors
    /// An invalid query or update, and what writing refuses.
    pub async fn find_one_and_update(
        &self,
        filter: Document,
        update: impl Into<Modifications>,
        options: FindOneAndUpdate,
        session: Option<&mut Session>,
    ) -> Result<Option<Document>> {
        let update = update.into();
        check_modifications(&update)?;
        dispatch!(self.store, session,
            embedded => embedded.find_one_and_update(self, filter, update, options, session).await,
            cluster => cluster.find_one_and_update(self, filter, update, options, session).await)
    }

    /// Replaces the first document that matches and gives it.
    ///
    /// # Errors
    /// An invalid query, and what writing refuses.
    pub async fn find_one_and_replace(
        &self,
        filter: Document,
        replacement: Document,
        options: FindOneAndUpdate,
        session: Option<&mut Session>,
    ) -> Result<Option<Document>> {
        check_replacement(&replacement)?;
        dispatch!(self.store, session,
            embedded => embedded.find_one_and_update(self, filter, replacement.into(), options, session).await,
            cluster => cluster.find_one_and_replace(self, filter, replacement, options, session).await)
    }

    /// Deletes the first document that matches and gives it as it was.
    ///
    /// # Errors
    /// An invalid query, a hook's refusal.
    pub async fn find_one_and_delete(
        &self,
        filter: Document,
        options: FindOneAndUpdate,
        session: Option<&mut Session>,
    ) -> Result<Option<Document>> {
        dispatch!(self.store, session,
            embedded => embedded.find_one_and_delete(self, filter, options, session).await,
            cluster => cluster.find_one_and_delete(self, filter, options, session).await)
    }

    /// Deletes the first document that matches; gives how many went.
    ///
    /// # Errors
    /// An invalid query, a hook's refusal.
    pub async fn delete_one(&self, filter: Document, session: Option<&mut Session>) -> Result<u64> {
        self.delete(filter, Delete::default(), false, session).await
    }

    /// Deletes all documents that match; gives how many went.
    ///
    /// # Errors
    /// An invalid query, a hook's refusal.
    pub async fn delete_many(&self, filter: Document, session: Option<&mut Session>) -> Result<u64> {
        self.delete(filter, Delete::default(), true, session).await
    }

    /// Deletes the first document that matches, or all (`many`); gives how many went.
    ///
    /// # Errors
    /// An invalid query, a hook's refusal.
    pub async fn delete(
        &self,
        filter: Document,
        options: Delete,
        many: bool,
        session: Option<&mut Session>,
    ) -> Result<u64> {
        dispatch!(self.store, session, embedded => embedded.delete(self, filter, options, many, session).await,
            cluster => cluster.delete(self, filter, options, many, session).await)
    }

    /// Inserts, updates, replaces and deletes in one call; says which writes failed.
    ///
    /// # Errors
    /// What concerns the whole call; within a transaction also the first write's failure.
    pub async fn bulk_write(
        &self,
        models: Vec<WriteModel>,
        options: BulkWrite,
        session: Option<&mut Session>,
    ) -> Result<BulkWriteResult> {
        let models = models.into_iter().map(|model| (self.clone(), model)).collect();
        self.store.bulk_write(models, options, session).await
    }

    /// What changes in the collection.
    ///
    /// # Errors
    /// A start that is no longer kept (286), a standalone server (40573).
    pub async fn watch(&self, options: Watch) -> Result<ChangeStream> {
        self.store.watch_namespace(&self.database, &self.name, options).await
    }
}

/// The `_id` of a document; puts one at its beginning when it has none.
fn own_id(document: &mut Document) -> Bson {
    if let Some(id) = document.get("_id") {
        return id.clone();
    }
    let id = Bson::ObjectId(bson::oid::ObjectId::new());
    let rest = std::mem::take(document);
    document.insert("_id", id.clone());
    document.extend(rest);
    id
}

/// Refuses a replacement where operators belong.
pub(crate) fn check_modifications(update: &Modifications) -> Result<()> {
    match update {
        Modifications::Operators(operators) if operators.keys().next().is_none_or(|first| !first.starts_with('$')) => {
            Err(Error::new(9, "an update holds operators such as $set; use replace_one for a whole document"))
        }
        _ => Ok(()),
    }
}

/// Refuses operators where a whole document belongs.
pub(crate) fn check_replacement(replacement: &Document) -> Result<()> {
    match replacement.keys().next() {
        Some(first) if first.starts_with('$') => {
            Err(Error::new(9, format!("a replacement is a whole document and can't begin with {first}")))
        }
        _ => Ok(()),
    }
}
