//! A MongoDB deployment through the official driver.

use crate::Capabilities;
use crate::collection::{Collection, Find, FindOneAndUpdate, Update, UpdateResult};
use crate::error::{Error, Result};
use crate::session::{Session, SessionKind};
use bson::{Document, doc};
use mongodb::error::{ErrorKind, WriteFailure};
use mongodb::options::{ReadConcern, ReturnDocument, WriteConcern};
use mongodb::{Client, ClientSession, IndexModel};
use std::time::Instant;

#[derive(Clone)]
pub(crate) struct Cluster {
    client: Client,
    capabilities: Capabilities,
}

pub(crate) struct ClusterSession {
    session: ClientSession,
}

impl From<mongodb::error::Error> for Error {
    fn from(error: mongodb::error::Error) -> Error {
        let code = match &*error.kind {
            ErrorKind::Command(command) => Some(command.code),
            ErrorKind::Write(WriteFailure::WriteError(write)) => Some(write.code),
            ErrorKind::Write(WriteFailure::WriteConcernError(concern)) => Some(concern.code),
            ErrorKind::InsertMany(many) => {
                many.write_errors.as_ref().and_then(|errors| errors.first()).map(|error| error.code)
            }
            _ => None,
        };
        Error::labelled(code, error.kind.to_string(), error.labels().iter().cloned().collect())
    }
}

impl ClusterSession {
    pub(crate) async fn start_transaction(&mut self) -> Result<()> {
        self.session
            .start_transaction()
            .read_concern(ReadConcern::snapshot())
            .write_concern(WriteConcern::majority())
            .await?;
        Ok(())
    }

    pub(crate) async fn commit(&mut self, until: Instant) -> Result<()> {
        loop {
            match self.session.commit_transaction().await {
                Ok(()) => return Ok(()),
                Err(error) if error.contains_label("UnknownTransactionCommitResult") && Instant::now() < until => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    pub(crate) async fn abort(&mut self) -> Result<()> {
        Ok(self.session.abort_transaction().await?)
    }
}

/// Runs an action of the driver, in a session where there is one.
macro_rules! run {
    ($action:expr, $session:expr) => {
        match $session {
            Some(session) => $action.session(&mut session.session).await?,
            None => $action.await?,
        }
    };
}

impl Cluster {
    pub(crate) async fn connect(url: &str) -> Result<Cluster> {
        let client = Client::with_uri_str(url).await?;
        let hello = client.database("admin").run_command(doc! { "hello": 1 }).await?;
        let sharded = hello.get_str("msg").ok() == Some("isdbgrid");
        let replicated = sharded || hello.contains_key("setName");
        let capabilities = Capabilities {
            transactions: replicated,
            change_streams: replicated,
            retryable_writes: replicated && hello.contains_key("logicalSessionTimeoutMinutes"),
            sharded,
            hooks: false,
        };
        Ok(Cluster { client, capabilities })
    }

    pub(crate) fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    pub(crate) async fn start_session(&self) -> Result<Session> {
        let session = ClusterSession { session: self.client.start_session().await? };
        Ok(Session { kind: SessionKind::Cluster(Box::new(session)) })
    }

    pub(crate) async fn run_command(&self, database: &str, command: Document) -> Result<Document> {
        Ok(self.client.database(database).run_command(command).await?)
    }

    fn of(&self, collection: &Collection) -> mongodb::Collection<Document> {
        self.client.database(&collection.database).collection(&collection.name)
    }

    pub(crate) async fn insert(
        &self,
        collection: &Collection,
        documents: Vec<Document>,
        session: Option<&mut ClusterSession>,
    ) -> Result<()> {
        let collection = self.of(collection);
        run!(collection.insert_many(documents), session);
        Ok(())
    }

    pub(crate) async fn find(
        &self,
        collection: &Collection,
        filter: Document,
        options: Find,
        session: Option<&mut ClusterSession>,
    ) -> Result<Vec<Document>> {
        let collection = self.of(collection);
        let mut find = collection.find(filter).skip(options.skip).limit(options.limit);
        if let Some(sort) = options.sort {
            find = find.sort(sort);
        }
        if let Some(projection) = options.projection {
            find = find.projection(projection);
        }
        let mut found = Vec::new();
        match session {
            Some(session) => {
                let mut cursor = find.session(&mut session.session).await?;
                while cursor.advance(&mut session.session).await? {
                    found.push(cursor.deserialize_current()?);
                }
            }
            None => {
                let mut cursor = find.await?;
                while cursor.advance().await? {
                    found.push(cursor.deserialize_current()?);
                }
            }
        }
        Ok(found)
    }

    pub(crate) async fn count(
        &self,
        collection: &Collection,
        filter: Document,
        session: Option<&mut ClusterSession>,
    ) -> Result<u64> {
        let collection = self.of(collection);
        Ok(run!(collection.count_documents(filter), session))
    }

    pub(crate) async fn update(
        &self,
        collection: &Collection,
        filter: Document,
        update: Document,
        options: Update,
        multi: bool,
        session: Option<&mut ClusterSession>,
    ) -> Result<UpdateResult> {
        let collection = self.of(collection);
        let action = if multi { collection.update_many(filter, update) } else { collection.update_one(filter, update) };
        let mut action = action.upsert(options.upsert);
        if !options.array_filters.is_empty() {
            action = action.array_filters(options.array_filters);
        }
        let done = run!(action, session);
        Ok(UpdateResult { matched: done.matched_count, modified: done.modified_count, upserted: done.upserted_id })
    }

    pub(crate) async fn find_one_and_update(
        &self,
        collection: &Collection,
        filter: Document,
        update: Document,
        options: FindOneAndUpdate,
        session: Option<&mut ClusterSession>,
    ) -> Result<Option<Document>> {
        let collection = self.of(collection);
        let which = if options.after { ReturnDocument::After } else { ReturnDocument::Before };
        let mut action = collection.find_one_and_update(filter, update).upsert(options.upsert).return_document(which);
        if let Some(sort) = options.sort {
            action = action.sort(sort);
        }
        if let Some(projection) = options.projection {
            action = action.projection(projection);
        }
        Ok(run!(action, session))
    }

    pub(crate) async fn delete(
        &self,
        collection: &Collection,
        filter: Document,
        multi: bool,
        session: Option<&mut ClusterSession>,
    ) -> Result<u64> {
        let collection = self.of(collection);
        let done = if multi {
            run!(collection.delete_many(filter), session)
        } else {
            run!(collection.delete_one(filter), session)
        };
        Ok(done.deleted_count)
    }

    pub(crate) async fn create_index(&self, collection: &Collection, keys: Document, unique: bool) -> Result<()> {
        let options = mongodb::options::IndexOptions::builder().unique(unique).build();
        let index = IndexModel::builder().keys(keys).options(options).build();
        self.of(collection).create_index(index).await?;
        Ok(())
    }
}
