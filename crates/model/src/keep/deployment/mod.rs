//! Keeping a model true on a deployment that others write to: `sheaf keep URL MODEL`.
//!
//! Effects follow *state, not events*. An event only says which document to look at. One snapshot transaction reads the document
//! as it is and what was last accounted for it (its *record*), applies the difference, and rewrites the record:
//!
//! ```text
//!   event (collection, _id) ──> document now ─┐
//!                               record ───────┴─> planner ─> effects ─> parents, copies, rollups
//!                                                               └─────> record, resume token      (one transaction)
//! ```
//!
//! So an event that comes twice, late, or not in order does no harm, and images before a change aren't needed. A lost resume
//! token costs one pass over all documents and records, which is the same function over ranges, and is also how a keeper begins.
//! Copies, inboxes and what a delete does to references may be many: they are written in bounded transactions of their own
//! *before* the record, and again if the record was not reached.
//!
//! A keeper holds a lease with a fence: every transaction checks that the fence is still its own. A second keeper waits.
//! A writer that carries the model itself calls [`account`] in its own transaction and leaves the same records.

mod carry;
pub(crate) mod chunks;
pub(crate) mod inboxes;
mod lease;
mod records;
mod rolls;
mod sums;

pub use lease::LEASE;
pub use records::{KEEPERS, RECORDS};

use super::Keeper;
use bson::{Bson, Document, doc};
use lease::Lease;
use std::collections::BTreeSet;
use std::time::{Duration, Instant, UNIX_EPOCH};
use store::{ChangeStream, Error, Find, Result, Start, Store, Watch};

/// The most documents in one transaction.
pub const BATCH: usize = 100;

/// How long an event is waited for.
const AWAIT: Duration = Duration::from_millis(100);

/// How long a batch is tried again: a dead keeper's transaction holds the lease for a minute, until the server ends it.
const RETRY: Duration = Duration::from_secs(120);

/// A document that may have changed.
type Key = (String, Bson);

/// What a keeper has done, as metrics.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    /// Events read.
    pub events: u64,
    /// Documents looked at.
    pub documents: u64,
    /// Effects carried out.
    pub effects: u64,
    /// How old the last event was when it was carried out.
    pub lag: Duration,
    /// Passes over everything.
    pub passes: u64,
    /// Transactions that had to be tried again, and lost tokens.
    pub errors: u64,
    /// The last thing that went wrong.
    pub last_error: Option<String>,
}

impl Progress {
    fn failed(&mut self, error: &Error) {
        self.errors += 1;
        self.last_error = Some(error.to_string());
    }
}

/// A keeper of one database of a deployment.
pub struct Deployment {
    store: Store,
    database: String,
    keeper: Keeper,
    lease: Lease,
    stream: Option<ChangeStream>,
    /// Events that the stream has given and that are not carried out yet: a step that is given up keeps them here.
    given: Vec<Document>,
    progress: Progress,
}

impl Deployment {
    /// Prepares to keep a model; takes the lease as soon as nobody else holds it, and `Ok(None)` while somebody does.
    ///
    /// # Errors
    /// A server that keeps the model itself, one without transactions or change streams, a failing connection.
    pub async fn start(store: &Store, database: &str, keeper: Keeper, owner: &str) -> Result<Option<Deployment>> {
        let can = store.capabilities();
        if !can.transactions || !can.change_streams {
            return Err(Error::new(
                20,
                "keep needs transactions and change streams: a replica set or a sharded cluster, not a standalone server",
            ));
        }
        if can.hooks || keeps_itself(store).await? {
            return Err(Error::new(
                20,
                "this server keeps the model itself, in every write: nothing is left to keep beside it",
            ));
        }
        let Some(lease) = Lease::take(store, database, owner, now_ms()).await? else { return Ok(None) };
        records::prepare(store, database).await?;
        let progress = Progress::default();
        let (store, database, given) = (store.clone(), database.to_owned(), Vec::new());
        let mut kept = Deployment { store, database, keeper, lease, stream: None, given, progress };
        kept.open().await?;
        Ok(Some(kept))
    }

    /// What was done so far.
    pub fn progress(&self) -> &Progress {
        &self.progress
    }

    /// Opens the stream at the lease's token, or begins with a pass over everything.
    async fn open(&mut self) -> Result<()> {
        // What was given and not carried out comes again.
        self.given.clear();
        if let Some(token) = self.lease.token.clone() {
            let options = Watch { start: Start::StartAfter(token), ..watch() };
            match self.store.watch_database(&self.database, options).await {
                Ok(stream) => {
                    self.stream = Some(stream);
                    return Ok(());
                }
                Err(error) if error.is_history_lost() => self.progress.failed(&error),
                Err(error) => return Err(error),
            }
        }
        // The stream is opened first: what changes during the pass is seen again.
        let mut stream = self.store.watch_database(&self.database, watch()).await?;
        let first = stream.next_if_any().await?;
        let token = stream.resume_token();
        self.pass().await?;
        if let Some(event) = &first
            && let Some(key) = self.key(event)
        {
            self.carry(vec![key], None).await?;
        }
        self.lease.save(&self.store, token).await?;
        self.stream = Some(stream);
        Ok(())
    }

    /// Carries out the effects of the next events, at most [`BATCH`]; gives how many there were. Nothing is lost if the step is
    /// given up in the middle: the next one goes on.
    ///
    /// # Errors
    /// A lease that another keeper took, a failing connection.
    pub async fn step(&mut self) -> Result<usize> {
        let now = now_ms();
        let renewed = self.lease.renew(&self.store, now).await?;
        let Some(stream) = &mut self.stream else {
            // A step before this one was given up while it opened the stream.
            self.open().await?;
            return Ok(1);
        };
        while self.given.len() < BATCH {
            match stream.next_if_any().await {
                Ok(Some(event)) => self.given.push(event),
                Ok(None) => break,
                Err(error) if error.is_history_lost() || error.is_killed() => {
                    self.progress.failed(&error);
                    if error.is_history_lost() {
                        self.lease.token = None;
                    }
                    self.stream = None;
                    self.open().await?;
                    return Ok(1);
                }
                Err(error) => return Err(error),
            }
            // The batch is full enough once its first event has waited a while.
            if now_ms() - now > AWAIT.as_millis() as i64 {
                break;
            }
        }
        let (token, events) = (stream.resume_token(), &self.given);
        if events.is_empty() && stream.is_alive() {
            self.progress.lag = Duration::ZERO;
            // A quiet stream's token moves too, so that it never gets too old.
            if renewed {
                self.lease.save(&self.store, token).await?;
            }
            return Ok(0);
        }
        let is_lost = !stream.is_alive() || events.iter().any(is_definition);
        let (mut seen, mut batch) = (BTreeSet::new(), Vec::new());
        for event in events {
            if let Some(key) = self.key(event)
                && seen.insert(format!("{} {}", key.0, key.1))
            {
                batch.push(key);
            }
        }
        let (count, last) = (events.len(), events.last().and_then(|event| event.get_timestamp("clusterTime").ok()));
        self.carry(batch, token).await?;
        self.progress.events += count as u64;
        if let Some(time) = last {
            let age_ms = now_ms() - i64::from(time.time) * 1000;
            self.progress.lag = Duration::from_millis(age_ms.max(0) as u64);
        }
        if is_lost {
            // A collection was dropped or renamed: its documents are gone without events.
            self.pass().await?;
            if self.stream.as_ref().is_some_and(|stream| !stream.is_alive()) {
                self.lease.token = None;
                self.open().await?;
            }
        }
        self.given.clear();
        Ok(count)
    }

    /// Gives the lease back.
    ///
    /// # Errors
    /// A failing connection.
    pub async fn stop(mut self) -> Result<()> {
        self.lease.release(&self.store).await
    }

    /// The document that an event is about, if the model watches its collection.
    fn key(&self, event: &Document) -> Option<Key> {
        let collection = event.get_document("ns").ok()?.get_str("coll").ok()?;
        let id = event.get_document("documentKey").ok()?.get("_id")?;
        self.keeper.watches(collection).then(|| (collection.to_owned(), id.clone()))
    }

    /// Looks at every document and every record, as if there had been an event of each.
    ///
    /// # Errors
    /// A lease that another keeper took, a failing connection.
    pub async fn pass(&mut self) -> Result<()> {
        self.progress.passes += 1;
        let watched: Vec<String> = self.keeper.watches.keys().cloned().collect();
        for collection in watched {
            let documents = self.store.collection(&self.database, &collection);
            let ids = Find { projection: Some(doc! { "_id": 1 }), sort: Some(doc! { "_id": 1 }), ..Find::default() };
            self.pass_over(&collection, documents.stream(doc! {}, ids, None).await?, "_id").await?;
            let of_collection = doc! { "_id.c": &collection };
            let ids = Find { projection: Some(doc! { "_id": 1 }), sort: Some(doc! { "_id": 1 }), ..Find::default() };
            let records = self.store.collection(&self.database, RECORDS);
            self.pass_over(&collection, records.stream(of_collection, ids, None).await?, "_id.id").await?;
        }
        Ok(())
    }

    async fn pass_over(&mut self, collection: &str, mut cursor: store::Cursor, path: &str) -> Result<()> {
        let mut batch = Vec::new();
        loop {
            let found = cursor.next(None).await?;
            let is_end = found.is_none();
            if let Some(document) = found {
                let id = match path {
                    "_id" => document.get("_id").cloned(),
                    _ => document.get_document("_id").ok().and_then(|key| key.get("id")).cloned(),
                };
                batch.extend(id.map(|id| (collection.to_owned(), id)));
            }
            if batch.len() >= BATCH || is_end && !batch.is_empty() {
                self.lease.renew(&self.store, now_ms()).await?;
                self.carry(std::mem::take(&mut batch), None).await?;
            }
            if is_end {
                return Ok(());
            }
        }
    }

    /// Accounts for documents as they are now, and moves the token.
    async fn carry(&mut self, keys: Vec<Key>, token: Option<Document>) -> Result<()> {
        if keys.is_empty() && token.is_none() {
            return Ok(());
        }
        let many = carry::Carrier {
            store: &self.store,
            database: &self.database,
            keeper: &self.keeper,
            lease: Some(&self.lease),
        };
        let (begun, mut attempts, mut seen) = (Instant::now(), 0, Vec::new());
        let effects = loop {
            if seen.is_empty() {
                for key in &keys {
                    let (effects, images) = many.before_record(key).await?;
                    self.progress.effects += effects;
                    seen.push((key.clone(), images));
                }
            }
            match many.batch(&seen, token.clone()).await {
                Ok(Some(effects)) => break effects,
                Ok(None) if begun.elapsed() < RETRY => seen.clear(),
                Ok(None) => {
                    return Err(Error::new(
                        112,
                        "somebody else accounts for the same documents all the time: is a second keeper at work?",
                    ));
                }
                Err(error) if error.has_label("TransientTransactionError") && begun.elapsed() < RETRY => {
                    attempts += 1;
                    self.progress.failed(&error);
                    tokio::time::sleep(Duration::from_millis(5 * attempts).min(AWAIT)).await;
                }
                Err(error) => return Err(error),
            }
        };
        self.progress.documents += keys.len() as u64;
        self.progress.effects += effects;
        if token.is_some() {
            self.lease.token = token;
        }
        Ok(())
    }
}

/// Accounts for documents in the transaction that has just written them: effects and records at once, so that a keeper
/// beside has nothing left to do for them. For writers that carry the model themselves; gives the number of effects.
///
/// A document whose copies or references are more than one transaction should change (6,000) is left to the keeper.
///
/// # Errors
/// A store that fails; a conflict with another transaction, which is to be tried again as a whole.
pub async fn account(
    store: &Store,
    database: &str,
    keeper: &Keeper,
    written: &[(String, Bson)],
    session: &mut store::Session,
) -> Result<u64> {
    let carrier = carry::Carrier { store, database, keeper, lease: None };
    let (mut effects, mut sums) = (0, sums::Sums::default());
    for key in written.iter().filter(|(collection, _)| keeper.watches(collection)) {
        effects += carrier.account(key, &mut sums, session).await?;
    }
    Ok(effects + carrier.write_sums(&mut sums, session).await?)
}

/// Creates the index that accounting needs; what is there stays. For writers that call [`account`], before they write.
///
/// # Errors
/// A store that fails.
pub async fn prepare(store: &Store, database: &str) -> Result<()> {
    records::prepare(store, database).await
}

fn watch() -> Watch {
    // What the keeper itself notes is no news to it.
    let pipeline = vec![doc! { "$match": { "ns.coll": { "$nin": [RECORDS, KEEPERS] } } }];
    Watch { pipeline, max_await: AWAIT, batch_size: Some(BATCH as u32), ..Watch::default() }
}

fn is_definition(event: &Document) -> bool {
    matches!(event.get_str("operationType"), Ok("drop" | "rename" | "dropDatabase" | "invalidate"))
}

/// Whether the server is Sheaf with an active model of its own.
async fn keeps_itself(store: &Store) -> Result<bool> {
    Ok(store.capabilities().sheaf && store.collection("sheaf", "models").count(doc! {}, None).await? > 0)
}

pub(super) fn now_ms() -> i64 {
    UNIX_EPOCH.elapsed().map_or(0, |since| since.as_millis() as i64)
}

/// Keeps on until `stop` says so, and calls `report` every so often.
///
/// # Errors
/// A lease that another keeper took, a connection that stays broken.
pub async fn run(
    deployment: &mut Deployment,
    stop: impl Fn() -> bool,
    every: Duration,
    mut report: impl FnMut(&Progress, f64),
) -> Result<()> {
    let (mut last, mut effects) = (Instant::now(), 0);
    while !stop() {
        deployment.step().await?;
        let since = last.elapsed();
        if since >= every {
            let progress = deployment.progress();
            report(progress, (progress.effects - effects) as f64 / since.as_secs_f64());
            (last, effects) = (Instant::now(), progress.effects);
        }
    }
    Ok(())
}
