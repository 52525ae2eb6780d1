//! One handle on documents, of two kinds: the engine in this process, or a MongoDB deployment by its URL.
//!
//! The verbs are the official driver's, with BSON documents as arguments. Whoever uses a [`Store`] does not see which kind it
//! is; [`Store::capabilities`] says what it can guarantee.
//!
//! ```
//! # tokio::runtime::Runtime::new().unwrap().block_on(async {
//! use bson::doc;
//! let store = store::Store::in_memory()?;
//! let orders = store.collection("shop", "orders");
//! orders.insert_one(doc! { "_id": 1, "status": "created" }, None).await?;
//! orders.update_one(doc! { "_id": 1 }, doc! { "$set": { "status": "paid" } }, Update::default(), None).await?;
//! assert_eq!(orders.find_one(doc! { "_id": 1 }, None).await?.unwrap().get_str("status").unwrap(), "paid");
//! # use store::Update;
//! # Ok::<(), store::Error>(()) }).unwrap();
//! ```

mod admin;
mod cluster;
mod collection;
mod cursor;
mod embedded;
mod error;
mod options;
mod session;
mod stream;

pub use collection::Collection;
pub use cursor::Cursor;
pub use error::{Error, Result};
pub use options::{
    Aggregate, BulkWrite, BulkWriteResult, CollectionInfo, CollectionStats, DatabaseInfo, Delete, Find,
    FindOneAndUpdate, Freshness, Index, InsertMany, InsertManyResult, Modifications, Start, Update, UpdateResult,
    Watch, WriteError, WriteModel, default_name,
};
pub use session::Session;
pub use stream::ChangeStream;

use bson::Document;
use engine::Engine;
use engine::storage::Ticket;
use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::time::{Duration, Instant};

/// How long `with_transaction` tries again.
pub const TRANSACTION_RETRY: Duration = Duration::from_secs(120);

/// A future that borrows from its arguments.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A handle on documents. Clones are the same store.
#[derive(Clone)]
pub struct Store {
    pub(crate) kind: Kind,
}

#[derive(Clone)]
pub(crate) enum Kind {
    Embedded(embedded::Embedded),
    Cluster(cluster::Cluster),
}

/// What a transaction gave that is executed and maybe not flushed yet.
pub struct Executed<T> {
    value: T,
    flushed: Option<Ticket>,
}

impl<T> Executed<T> {
    /// What it gave, once it is durable.
    ///
    /// # Errors
    /// A failed flush.
    pub async fn durable(self) -> Result<T> {
        if let Some(flushed) = self.flushed {
            flushed.await?;
        }
        Ok(self.value)
    }
}

/// What a store can guarantee.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Capabilities {
    /// Multi-document transactions.
    pub transactions: bool,
    /// Change streams.
    pub change_streams: bool,
    /// Writes that the driver may repeat without doing them twice.
    pub retryable_writes: bool,
    /// Whether it is a sharded cluster.
    pub sharded: bool,
    /// Whether write hooks run in this process, in the write's own transaction.
    pub hooks: bool,
    /// Whether the server is Sheaf, which may keep a model itself.
    pub sheaf: bool,
    /// The newest wire version that the server speaks; 25 is MongoDB 8.0.
    pub wire_version: i32,
}

/// Hands a call to the store's kind, with the session as that kind has it.
macro_rules! dispatch {
    ($store:expr, $session:ident, $embedded:ident => $embedded_call:expr, $cluster:ident => $cluster_call:expr) => {
        match &$store.kind {
            $crate::Kind::Embedded($embedded) => {
                let $session = $crate::embedded::as_embedded($session);
                $embedded_call
            }
            $crate::Kind::Cluster($cluster) => {
                let $session = $crate::cluster::as_cluster($session);
                $cluster_call
            }
        }
    };
}
pub(crate) use dispatch;

impl Store {
    /// A store by where it is: a `mongodb://` or `mongodb+srv://` URL, or a folder.
    ///
    /// # Errors
    /// As [`Store::connect`] and [`Store::open`].
    pub async fn at(place: &str) -> Result<Store> {
        if is_url(place) { Store::connect(place).await } else { Store::open(Path::new(place)) }
    }

    /// A store on an engine in this process.
    pub fn embedded(engine: Engine) -> Store {
        Store { kind: Kind::Embedded(embedded::Embedded::new(engine)) }
    }

    /// A store in a folder, created if need be.
    ///
    /// # Errors
    /// A folder that another process has open or that can't be read.
    pub fn open(folder: &Path) -> Result<Store> {
        Ok(Store::embedded(Engine::open(folder, engine::Options::system())?))
    }

    /// A store in memory.
    ///
    /// # Errors
    /// None in practice.
    pub fn in_memory() -> Result<Store> {
        Ok(Store::embedded(Engine::in_memory(engine::Options::system())?))
    }

    /// A store on a deployment.
    ///
    /// # Errors
    /// A URL that can't be parsed, a deployment that doesn't answer.
    pub async fn connect(url: &str) -> Result<Store> {
        Ok(Store { kind: Kind::Cluster(cluster::Cluster::connect(url).await?) })
    }

    /// The engine, if the store is in this process.
    pub fn engine(&self) -> Option<&Engine> {
        match &self.kind {
            Kind::Embedded(embedded) => Some(embedded.engine()),
            Kind::Cluster(_) => None,
        }
    }

    /// What the store can guarantee.
    pub fn capabilities(&self) -> Capabilities {
        match &self.kind {
            Kind::Embedded(_) => Capabilities {
                transactions: true,
                change_streams: true,
                retryable_writes: true,
                sharded: false,
                hooks: true,
                sheaf: true,
                wire_version: 25,
            },
            Kind::Cluster(cluster) => cluster.capabilities(),
        }
    }

    /// The database that the URL names.
    pub fn default_database(&self) -> Option<&str> {
        match &self.kind {
            Kind::Embedded(_) => None,
            Kind::Cluster(cluster) => cluster.default_database(),
        }
    }

    /// A collection; nothing is created before something is written.
    pub fn collection(&self, database: &str, name: &str) -> Collection {
        Collection { store: self.clone(), database: database.to_owned(), name: name.to_owned() }
    }

    /// Begins a session.
    ///
    /// # Errors
    /// A deployment that doesn't answer.
    pub async fn start_session(&self) -> Result<Session> {
        match &self.kind {
            Kind::Embedded(embedded) => Ok(embedded.start_session()),
            Kind::Cluster(cluster) => cluster.start_session().await,
        }
    }

    /// Runs `body` in a transaction and commits it; runs it again when it lost to another transaction, so `body` must
    /// have no effects besides its writes.
    ///
    /// # Errors
    /// What `body` returns, unless it may be tried again; a commit that fails.
    pub async fn with_transaction<T, F>(&self, body: F) -> Result<T>
    where
        F: for<'s> FnMut(&'s mut Session) -> BoxFuture<'s, Result<T>>,
    {
        self.transact(false, body).await?.durable().await
    }

    /// The same, but on an embedded store it reads what is executed, flushed or not, and does not wait for its own flush:
    /// whoever makes one transaction after the other gets on with the next meanwhile. Nobody may be told of what the body
    /// saw or did before [`Executed::durable`].
    ///
    /// # Errors
    /// As [`Store::with_transaction`], but for a failed flush.
    pub async fn execute_transaction<T, F>(&self, body: F) -> Result<Executed<T>>
    where
        F: for<'s> FnMut(&'s mut Session) -> BoxFuture<'s, Result<T>>,
    {
        self.transact(true, body).await
    }

    async fn transact<T, F>(&self, ahead: bool, mut body: F) -> Result<Executed<T>>
    where
        F: for<'s> FnMut(&'s mut Session) -> BoxFuture<'s, Result<T>>,
    {
        let until = Instant::now() + TRANSACTION_RETRY;
        let mut session = self.start_session().await?;
        loop {
            session.begin(ahead).await?;
            let error = match body(&mut session).await {
                Ok(value) => match session.execute(until).await {
                    Ok(flushed) => return Ok(Executed { value, flushed }),
                    Err(error) => error,
                },
                Err(error) => {
                    // The body's error matters, not that of the abort: the transaction is over either way.
                    let _ = session.abort_transaction().await;
                    error
                }
            };
            if !error.has_label("TransientTransactionError") || Instant::now() >= until {
                return Err(error);
            }
            tokio::task::yield_now().await;
        }
    }

    /// Inserts, updates, replaces and deletes in several collections in one call; says which writes failed. On a server
    /// before MongoDB 8.0 it takes several calls.
    ///
    /// # Errors
    /// What concerns the whole call; within a transaction also the first write's failure.
    pub async fn bulk_write(
        &self,
        models: Vec<(Collection, WriteModel)>,
        options: BulkWrite,
        session: Option<&mut Session>,
    ) -> Result<BulkWriteResult> {
        for (_, model) in &models {
            match model {
                WriteModel::Update { update, .. } => collection::check_modifications(update)?,
                WriteModel::Replace { replacement, .. } => collection::check_replacement(replacement)?,
                WriteModel::Insert(_) | WriteModel::Delete { .. } => {}
            }
        }
        if models.is_empty() {
            return Ok(BulkWriteResult::default());
        }
        dispatch!(self, session, embedded => embedded.bulk_write(models, options, session).await,
            cluster => cluster.bulk_write(models, options, session).await)
    }

    /// The results of a pipeline on a database, e.g. one that begins with `$documents`, `$currentOp` or
    /// `$listLocalSessions`.
    ///
    /// # Errors
    /// An invalid pipeline.
    pub async fn aggregate(
        &self,
        database: &str,
        pipeline: Vec<Document>,
        options: Aggregate,
        session: Option<&mut Session>,
    ) -> Result<Cursor> {
        let whole = self.collection(database, "");
        dispatch!(self, session, embedded => embedded.aggregate(&whole, pipeline, options, session),
            cluster => cluster.aggregate(&whole, pipeline, options, session).await)
    }

    /// What changes anywhere.
    ///
    /// # Errors
    /// A start that is no longer kept (286), a standalone server (40573).
    pub async fn watch(&self, options: Watch) -> Result<ChangeStream> {
        self.watch_namespace("", "", options).await
    }

    /// What changes in a database.
    ///
    /// # Errors
    /// A start that is no longer kept (286), a standalone server (40573).
    pub async fn watch_database(&self, database: &str, options: Watch) -> Result<ChangeStream> {
        self.watch_namespace(database, "", options).await
    }

    pub(crate) async fn watch_namespace(&self, database: &str, name: &str, options: Watch) -> Result<ChangeStream> {
        match &self.kind {
            Kind::Embedded(embedded) => embedded.watch(database, name, options),
            Kind::Cluster(cluster) => cluster.watch(database, name, options).await,
        }
    }

    /// Runs a command for administration; drivers never repeat those.
    ///
    /// # Errors
    /// What the command refuses; `Unsupported` on an embedded store.
    pub async fn run_command(&self, database: &str, command: Document) -> Result<Document> {
        match &self.kind {
            Kind::Embedded(_) => Err(Error::unsupported("commands: use the verbs, or the engine itself")),
            Kind::Cluster(cluster) => cluster.run_command(database, command).await,
        }
    }
}

/// Whether a place is a deployment's URL, not a folder.
pub fn is_url(place: &str) -> bool {
    place.starts_with("mongodb://") || place.starts_with("mongodb+srv://")
}
