//! The network: its collections, their indexes, and how its writes are made one.

use crate::error::{Error, Result};
use crate::id::{Id, Page, PageRequest, Time};
use crate::once::KEEP_KEYS;
use crate::read;
use crate::settings::{Keeping, Settings};
use crate::updates::Hub;
use bson::{Document, doc};
use model::keep::Keeper;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use store::{BoxFuture, Collection, Find, Index, Session, Store};

/// The model of the network's documents, as it stands in `models/social` and `models/chat`: names and texts of its files.
pub const MODEL: [(&str, &str); 2] = [
    ("social.sheaf.kdl", include_str!("../../../models/social/social.sheaf.kdl")),
    ("chat.sheaf.kdl", include_str!("../../../models/chat/chat.sheaf.kdl")),
];

pub(crate) const USERS: &str = "users";
pub(crate) const FOLLOWS: &str = "follows";
pub(crate) const BLOCKS: &str = "blocks";
pub(crate) const MUTES: &str = "mutes";
pub(crate) const FRIENDS: &str = "friends";
pub(crate) const PAIRS: &str = "friendPairs";
pub(crate) const POSTS: &str = "posts";
pub(crate) const COMMENTS: &str = "comments";
pub(crate) const LIKES: &str = "likes";
pub(crate) const INBOXES: &str = "inboxes";
pub(crate) const INBOX_STATES: &str = "inboxStates";
pub(crate) const FAN_OUTS: &str = "fanOuts";
pub(crate) const RENAMES: &str = "renames";
pub(crate) const NOTIFICATIONS: &str = "notifications";
pub(crate) const CONVERSATIONS: &str = "conversations";
pub(crate) const MESSAGE_CHUNKS: &str = "messageChunks";
pub(crate) const FILES: &str = "fs.files";
pub(crate) const FILE_CHUNKS: &str = "fs.chunks";
pub(crate) const UPLOADS: &str = "fs.uploads";
pub(crate) const OPERATIONS: &str = "operations";
pub(crate) const ONCE_KEYS: &str = "onceKeys";
pub(crate) const DEPARTURES: &str = "departures";

/// How often a write is tried again that met a duplicate key which was gone when looked at.
pub(crate) const RACES: usize = 16;

/// Every index: collection, key, unique.
fn indexes() -> Vec<(&'static str, Document, bool)> {
    vec![
        (USERS, doc! { "username": 1 }, true),
        (FOLLOWS, doc! { "followerId": 1, "followeeId": 1 }, true),
        (FOLLOWS, doc! { "followerId": 1, "status": 1, "_id": -1 }, false),
        // Whom users follow in common is read from this alone.
        (FOLLOWS, doc! { "followerId": 1, "status": 1, "followeeId": 1 }, false),
        (FOLLOWS, doc! { "followerId": 1, "delivery": 1, "_id": 1 }, false),
        (FOLLOWS, doc! { "followeeId": 1, "status": 1, "_id": -1 }, false),
        (FOLLOWS, doc! { "followeeId": 1, "delivery": 1, "_id": 1 }, false),
        (BLOCKS, doc! { "blockerId": 1, "blockedId": 1 }, true),
        (BLOCKS, doc! { "blockerId": 1, "_id": -1 }, false),
        (BLOCKS, doc! { "blockedId": 1 }, false),
        (MUTES, doc! { "userId": 1, "mutedId": 1 }, true),
        (MUTES, doc! { "userId": 1, "_id": -1 }, false),
        (MUTES, doc! { "mutedId": 1 }, false),
        (FRIENDS, doc! { "fromUserId": 1, "toUserId": 1 }, true),
        (FRIENDS, doc! { "fromUserId": 1, "_id": -1 }, false),
        (PAIRS, doc! { "toUserId": 1, "status": 1, "requestId": -1 }, false),
        (PAIRS, doc! { "fromUserId": 1, "status": 1, "requestId": -1 }, false),
        (PAIRS, doc! { "status": 1, "expiresAt": 1 }, false),
        (POSTS, doc! { "authorId": 1, "_id": -1 }, false),
        (POSTS, doc! { "authorId": 1, "author.username": 1 }, false),
        (COMMENTS, doc! { "postId": 1, "_id": -1 }, false),
        (COMMENTS, doc! { "postId": 1, "parentId": 1, "_id": 1 }, false),
        (COMMENTS, doc! { "ancestors": 1 }, false),
        (COMMENTS, doc! { "authorId": 1, "_id": -1 }, false),
        (LIKES, doc! { "postId": 1, "userId": 1 }, true),
        (LIKES, doc! { "postId": 1, "_id": -1 }, false),
        (LIKES, doc! { "userId": 1, "_id": -1 }, false),
        (FAN_OUTS, doc! { "turn": 1 }, false),
        (INBOX_STATES, doc! { "seenAt": 1 }, false),
        (NOTIFICATIONS, doc! { "ownerId": 1, "_id": -1 }, false),
        (NOTIFICATIONS, doc! { "ownerId": 1, "key": 1 }, true),
        (CONVERSATIONS, doc! { "members.userId": 1, "lastAt": -1, "_id": -1 }, false),
        (FILES, doc! { "filename": 1, "uploadDate": 1 }, false),
        (FILES, doc! { "metadata.ownerId": 1, "filename": 1 }, false),
        (FILE_CHUNKS, doc! { "files_id": 1, "n": 1 }, true),
        (UPLOADS, doc! { "touchedAt": 1 }, false),
        (OPERATIONS, doc! { "userId": 1, "_id": -1 }, false),
    ]
}

/// Adds the hook that keeps a model, given by names and texts of its files, to an embedded store.
pub(crate) fn keep(store: &Store, database: &str, files: &[(&str, &str)]) -> Result<()> {
    let engine = store.engine().ok_or_else(|| store::Error::new(115, "a deployment has no write hooks"))?;
    let keeper = planner(files)?;
    engine.add_hook(Arc::new(model::keep::embedded::ModelHook::new(keeper, database)));
    Ok(())
}

/// What plans the effects of changes under a model, given by names and texts of its files.
pub(crate) fn planner(files: &[(&str, &str)]) -> Result<Keeper> {
    let mut sources = model::problem::Sources::default();
    for (name, text) in files {
        sources.push((*name).to_owned(), (*text).to_owned());
    }
    let checked = model::parse(sources).map_err(|problems| store::Error::new(9, format!("{problems:?}")))?;
    Ok(Keeper::new(&checked.model).map_err(|error| store::Error::new(9, error.to_string()))?)
}

/// A social network in one database of a store. Clones are the same network.
#[derive(Clone)]
pub struct Network {
    pub(crate) store: Store,
    database: Arc<str>,
    pub(crate) settings: Arc<Settings>,
    /// What plans the effects of writes, where no model layer does that in each write.
    keeper: Option<Arc<Keeper>>,
    pub(crate) hub: Arc<Hub>,
}

impl Network {
    /// A network in a database. On an embedded store, counts and copies are left to the model's hook, which whoever opened
    /// the store has added; on a deployment the network keeps them.
    pub fn new(store: Store, database: &str) -> Network {
        let keeping = if store.capabilities().hooks { Keeping::Model } else { Keeping::Service };
        Network::with_settings(store, database, Settings::new(keeping))
    }

    /// A network that behaves as the settings say.
    pub fn with_settings(store: Store, database: &str, settings: Settings) -> Network {
        Network::of_model(store, database, settings, &MODEL)
    }

    /// The same for another model, given by names and texts of its files.
    pub(crate) fn of_model(store: Store, database: &str, settings: Settings, files: &[(&str, &str)]) -> Network {
        let plan = || Arc::new(planner(files).expect("the model in this crate is a valid one"));
        let keeper = (settings.keeping == Keeping::Service).then(plan);
        Network { store, database: database.into(), settings: Arc::new(settings), keeper, hub: Arc::new(Hub::new()) }
    }

    /// Adds the hook that keeps the network's model to an embedded store, once for each opening of the store.
    ///
    /// # Errors
    /// A deployment, which has no hooks.
    pub fn keep_model(store: &Store, database: &str) -> Result<()> {
        keep(store, database, &MODEL)
    }

    /// Where its documents are.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// How it behaves.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The name of its database.
    pub fn database(&self) -> &str {
        &self.database
    }

    pub(crate) fn collection(&self, name: &str) -> Collection {
        self.store.collection(&self.database, name)
    }

    /// Creates the indexes that the network's queries and rules need; what is there stays.
    ///
    /// # Errors
    /// A store that fails, an index of the same name and another key.
    pub async fn ensure_indexes(&self) -> Result<()> {
        let inboxes = doc! { "clusteredIndex": { "key": { "_id": 1 }, "unique": true } };
        match self.collection(INBOXES).create(inboxes).await {
            Err(error) if error.code != Some(48) => return Err(error.into()),
            _ => {}
        }
        let mut all: BTreeMap<&str, Vec<Index>> = BTreeMap::new();
        for (collection, keys, unique) in indexes() {
            let index = if unique { Index::unique(keys) } else { Index::new(keys) };
            all.entry(collection).or_default().push(index);
        }
        let pairs = doc! { "unique": true, "partialFilterExpression": { "pair": { "$exists": true } } };
        all.entry(CONVERSATIONS).or_default().push(Index { keys: doc! { "pair": 1 }, options: pairs });
        let keyed = doc! { "partialFilterExpression": { "messages.k": { "$exists": true } } };
        let keys = doc! { "_id.c": 1, "messages.k": 1 };
        all.entry(MESSAGE_CHUNKS).or_default().push(Index { keys, options: keyed });
        let end = doc! { "expireAfterSeconds": 0 };
        all.entry(MESSAGE_CHUNKS).or_default().push(Index { keys: doc! { "expireAt": 1 }, options: end });
        let old = doc! { "expireAfterSeconds": KEEP_KEYS.as_secs() as i64 };
        all.entry(ONCE_KEYS).or_default().push(Index { keys: doc! { "at": 1 }, options: old });
        for (collection, indexes) in all {
            self.collection(collection).create_indexes(indexes).await?;
        }
        self.prepare_accounts().await
    }

    /// Whether the model layer keeps counts and copies.
    pub(crate) fn kept(&self) -> bool {
        self.settings.keeping == Keeping::Model
    }

    /// Creates the index that accounting for documents needs.
    pub(crate) async fn prepare_accounts(&self) -> Result<()> {
        if self.keeper.is_some() {
            model::keep::deployment::prepare(&self.store, &self.database).await?;
        }
        Ok(())
    }

    /// Accounts for documents of a collection that this transaction has written, unless the model layer does that in the
    /// write: counts and copies follow, and `sheaf keep` beside it finds nothing left to do.
    pub(crate) async fn account(&self, collection: &str, ids: &[Id], session: Option<&mut Session>) -> Result<()> {
        let (Some(keeper), Some(session)) = (&self.keeper, session) else { return Ok(()) };
        let written: Vec<_> = ids.iter().map(|id| (collection.to_owned(), (*id).into())).collect();
        model::keep::deployment::account(&self.store, &self.database, keeper, &written, session).await?;
        Ok(())
    }

    /// One write and what it moves elsewhere: one statement where the model layer does the moving, else one transaction.
    /// `body` makes one write, and then only what [`Network::account`] does.
    pub(crate) async fn atomically<T, F>(&self, body: F) -> Result<T>
    where
        T: Send + 'static,
        F: for<'s> Fn(Option<&'s mut Session>) -> BoxFuture<'s, Result<T>> + Send + Sync,
    {
        if self.kept() {
            return body(None).await;
        }
        self.transact(move |session| body(Some(session))).await
    }

    /// Runs `body` in a transaction, again if it lost to another one; a refusal of the business ends it.
    pub(crate) async fn transact<T, F>(&self, body: F) -> Result<T>
    where
        T: Send + 'static,
        F: for<'s> Fn(&'s mut Session) -> BoxFuture<'s, Result<T>> + Send + Sync,
    {
        let refused = Arc::new(Mutex::new(None));
        let outcome = self.store.with_transaction(|session| {
            let (work, refused) = (body(session), refused.clone());
            Box::pin(async move {
                match work.await {
                    Ok(value) => Ok(value),
                    Err(Error::Store(error)) => Err(error),
                    Err(refusal) => {
                        let message = refusal.to_string();
                        *refused.lock().unwrap_or_else(PoisonError::into_inner) = Some(refusal);
                        Err(store::Error::new(0, message))
                    }
                }
            })
        });
        outcome.await.map_err(|error| {
            let refused = refused.lock().unwrap_or_else(PoisonError::into_inner).take();
            refused.unwrap_or(Error::Store(error))
        })
    }

    /// One field's ids of all documents by a filter: where there may be a hundred thousand, they are not made documents of.
    pub(crate) async fn ids(&self, collection: &str, filter: Document, field: &str) -> Result<Vec<Id>> {
        let page = Find { projection: Some(doc! { "_id": 0, field: 1 }), ..Find::default() };
        let (mut found, mut ids) = (self.collection(collection).stream(filter, page, None).await?, Vec::new());
        while let Some(document) = found.next_raw(None).await? {
            ids.extend(document.get_object_id(field).map(Id::from));
        }
        Ok(ids)
    }

    /// Documents by a filter, newest id first, after a cursor.
    pub(crate) async fn newest_first(
        &self,
        collection: &str,
        mut filter: Document,
        after: Option<Id>,
        limit: usize,
    ) -> Result<Vec<Document>> {
        if let Some(after) = after {
            filter.insert("_id", doc! { "$lt": after });
        }
        let page = Find { sort: Some(doc! { "_id": -1 }), limit: limit as i64, ..Find::default() };
        Ok(self.collection(collection).find(filter, page, None).await?)
    }

    /// A page of documents by a filter, those with the latest time in a field first.
    pub(crate) async fn latest_first(
        &self,
        collection: &str,
        filter: Document,
        field: &str,
        projection: Option<Document>,
        page: &PageRequest,
    ) -> Result<Page<Document>> {
        latest_first(&self.collection(collection), filter, field, projection, page).await
    }
}

/// A page of a collection's documents by a filter, those with the latest time in a field first.
pub(crate) async fn latest_first(
    collection: &Collection,
    mut filter: Document,
    field: &str,
    projection: Option<Document>,
    page: &PageRequest,
) -> Result<Page<Document>> {
    if let Some(after) = &page.after {
        let wrong = || Error::InvalidCursor(after.clone());
        let (at, id) = after.rsplit_once('-').ok_or_else(wrong)?;
        let at = Time::from_timestamp_ms(at.parse().map_err(|_| wrong())?);
        let id: Id = id.parse().map_err(|_| wrong())?;
        filter.insert("$or", vec![doc! { field: { "$lt": at } }, doc! { field: at, "_id": { "$lt": id } }]);
    }
    let sort = Some(doc! { field: -1, "_id": -1 });
    let find = Find { sort, projection, limit: page.size() as i64 + 1, ..Find::default() };
    let found = collection.find(filter, find, None).await?;
    let cursor = |found: &Document| format!("{}-{}", read::time(found, field).timestamp_ms(), read::id(found, "_id"));
    Ok(Page::cut(found, page.size(), cursor))
}
