//! The verbs on a collection.

use crate::error::Result;
use crate::session::{Session, SessionKind};
use crate::{Kind, Store};
use bson::{Bson, Document};

/// A collection of a store.
#[derive(Clone)]
pub struct Collection {
    pub(crate) store: Store,
    pub(crate) database: String,
    pub(crate) name: String,
}

/// How a find orders and bounds its results.
#[derive(Clone, Default, Debug)]
pub struct Find {
    /// The order.
    pub sort: Option<Document>,
    /// Which parts of the documents.
    pub projection: Option<Document>,
    /// How many to pass over.
    pub skip: u64,
    /// The most to give; zero for all.
    pub limit: i64,
}

/// How an update behaves.
#[derive(Clone, Default, Debug)]
pub struct Update {
    /// Whether a document is inserted when none matches.
    pub upsert: bool,
    /// `arrayFilters`.
    pub array_filters: Vec<Document>,
}

/// How `find_one_and_update` behaves.
#[derive(Clone, Default, Debug)]
pub struct FindOneAndUpdate {
    /// Which document is the first.
    pub sort: Option<Document>,
    /// Which parts of it to give.
    pub projection: Option<Document>,
    /// Whether a document is inserted when none matches.
    pub upsert: bool,
    /// Whether to give the document as it is after, not before.
    pub after: bool,
}

/// What an update did.
#[derive(Clone, Default, Debug, PartialEq)]
pub struct UpdateResult {
    /// How many documents matched.
    pub matched: u64,
    /// How many changed.
    pub modified: u64,
    /// The `_id` that an upsert inserted.
    pub upserted: Option<Bson>,
}

/// Hands a call to the store's kind.
macro_rules! dispatch {
    ($self:ident, $session:ident, $embedded:ident => $embedded_call:expr, $cluster:ident => $cluster_call:expr) => {
        match &$self.store.kind {
            Kind::Embedded($embedded) => {
                let $session = match $session {
                    Some(Session { kind: SessionKind::Embedded(session) }) => Some(session),
                    _ => None,
                };
                $embedded_call
            }
            Kind::Cluster($cluster) => {
                let $session = match $session {
                    Some(Session { kind: SessionKind::Cluster(session) }) => Some(&mut **session),
                    _ => None,
                };
                $cluster_call
            }
        }
    };
}

impl Collection {
    /// The collection's name.
    pub fn name(&self) -> &str {
        &self.name
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
        dispatch!(self, session, embedded => embedded.insert(self, documents, session).await,
            cluster => cluster.insert(self, documents, session).await)
    }

    /// The documents that match.
    ///
    /// # Errors
    /// An invalid query.
    pub async fn find(&self, filter: Document, options: Find, session: Option<&mut Session>) -> Result<Vec<Document>> {
        dispatch!(self, session, embedded => embedded.find(self, filter, options, session),
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

    /// How many documents match.
    ///
    /// # Errors
    /// An invalid query.
    pub async fn count(&self, filter: Document, session: Option<&mut Session>) -> Result<u64> {
        dispatch!(self, session, embedded => embedded.count(self, filter, session),
            cluster => cluster.count(self, filter, session).await)
    }

    /// Updates the first document that matches.
    ///
    /// # Errors
    /// An invalid query or update, and what writing refuses.
    pub async fn update_one(
        &self,
        filter: Document,
        update: Document,
        options: Update,
        session: Option<&mut Session>,
    ) -> Result<UpdateResult> {
        dispatch!(self, session, embedded => embedded.update(self, filter, update, options, false, session).await,
            cluster => cluster.update(self, filter, update, options, false, session).await)
    }

    /// Updates all documents that match.
    ///
    /// # Errors
    /// An invalid query or update, and what writing refuses.
    pub async fn update_many(
        &self,
        filter: Document,
        update: Document,
        options: Update,
        session: Option<&mut Session>,
    ) -> Result<UpdateResult> {
        dispatch!(self, session, embedded => embedded.update(self, filter, update, options, true, session).await,
            cluster => cluster.update(self, filter, update, options, true, session).await)
    }

    /// Updates the first document that matches and gives it.
    ///
    /// # Errors
    /// An invalid query or update, and what writing refuses.
    pub async fn find_one_and_update(
        &self,
        filter: Document,
        update: Document,
        options: FindOneAndUpdate,
        session: Option<&mut Session>,
    ) -> Result<Option<Document>> {
        dispatch!(self, session, embedded => embedded.find_one_and_update(self, filter, update, options, session).await,
            cluster => cluster.find_one_and_update(self, filter, update, options, session).await)
    }

    /// Deletes the first document that matches; gives how many went.
    ///
    /// # Errors
    /// An invalid query, a hook's refusal.
    pub async fn delete_one(&self, filter: Document, session: Option<&mut Session>) -> Result<u64> {
        dispatch!(self, session, embedded => embedded.delete(self, filter, false, session).await,
            cluster => cluster.delete(self, filter, false, session).await)
    }

    /// Deletes all documents that match; gives how many went.
    ///
    /// # Errors
    /// An invalid query, a hook's refusal.
    pub async fn delete_many(&self, filter: Document, session: Option<&mut Session>) -> Result<u64> {
        dispatch!(self, session, embedded => embedded.delete(self, filter, true, session).await,
            cluster => cluster.delete(self, filter, true, session).await)
    }

    /// Creates an index unless it is there.
    ///
    /// # Errors
    /// A conflict with another index, duplicate keys in the documents.
    pub async fn create_index(&self, keys: Document, unique: bool) -> Result<()> {
        match &self.store.kind {
            Kind::Embedded(embedded) => embedded.create_index(self, keys, unique).await,
            Kind::Cluster(cluster) => cluster.create_index(self, keys, unique).await,
        }
    }
}
