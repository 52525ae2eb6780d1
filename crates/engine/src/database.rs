//! The engine as a whole: opening it, reading a consistent state, committing.
//!
//! A write runs under the storage's one writer lock as a [`Statement`], a pure function from what
//! it sees to what it writes, and is visible to readers once it is flushed. What may take long (finding the candidates of an
//! update, waiting for another transaction) happens outside that lock.

use crate::catalog::{Catalog, Collection};
use crate::context::Context;
use crate::counters::Counters;
use crate::cursor::Cursors;
use crate::error::{Code, Error, Result};
use crate::expression::Environment;
use crate::hook::WriteHook;
use crate::index_uses::IndexUses;
use crate::intent::Intents;
use crate::operation::Estimates;
use crate::plan::PlanCache;
use crate::series::Packer;
use crate::session::Sessions;
use crate::snapshots::Snapshots;
use crate::statement::{BLOCKED, Delta, Outcome, Statement};
use crate::storage::{Changes, Direction, Position, Snapshot, Storage, Ticket, View, Writer};
use crate::watch::Hub;
use crate::{keyspace, storage};
use arc_swap::ArcSwap;
use bson::{DateTime, Timestamp};
use bytes::Bytes;
use parking_lot::{Mutex, RwLock};
use std::hash::BuildHasher;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A source of the time, in milliseconds since 1970.
pub type Clock = Arc<dyn Fn() -> i64 + Send + Sync>;

/// A source of random bits.
pub type Random = Arc<dyn Fn() -> u64 + Send + Sync>;

/// How an engine is opened.
#[derive(Clone)]
pub struct Options {
    /// The storage's sizes and bounds.
    pub storage: storage::Options,
    /// The time.
    pub clock: Clock,
    /// Randomness, for UUIDs, `$rand` and `$sample`.
    pub random: Random,
}

/// A database engine: one folder, or one in memory. Clones are the same engine.
#[derive(Clone)]
pub struct Engine {
    pub(crate) inner: Arc<Inner>,
}

/// What all parts of the engine share.
pub(crate) struct Inner {
    /// Before the storage, which its thread reads.
    pub(crate) hub: Hub,
    pub(crate) storage: Storage,
    pub(crate) options: Options,
    pub(crate) counters: Counters,
    pub(crate) intents: Intents,
    pub(crate) hooks: ArcSwap<Vec<Arc<dyn WriteHook>>>,
    pub(crate) sessions: Sessions,
    pub(crate) cursors: Cursors,
    pub(crate) plans: PlanCache,
    pub(crate) index_uses: IndexUses,
    pub(crate) estimates: Estimates,
    pub(crate) snapshots: Snapshots,
    pub(crate) series: Packer,
    working: Mutex<Working>,
    /// The catalogue of everything executed so far.
    latest_catalog: ArcSwap<Catalog>,
    /// The catalogues as of positions, oldest first; the first is as of the beginning or of what everybody can see.
    published: RwLock<Vec<(Position, Arc<Catalog>)>>,
    /// The time of the last executed commit.
    last_time: AtomicU64,
    /// How often expired documents are deleted, in milliseconds.
    ttl_period_ms: AtomicU64,
    /// The size from which on a document is too near to the limit.
    pub(crate) document_alarm_bytes: AtomicU64,
}

/// What the holder of the writer lock works on.
pub(crate) struct Working {
    pub(crate) catalog: Arc<Catalog>,
}

/// A published state: data and the catalogue that belongs to it.
#[derive(Clone)]
pub struct State {
    /// The data.
    pub snapshot: Snapshot,
    /// The catalogue.
    pub catalog: Arc<Catalog>,
}

/// A reply to a write, with the ticket that says when it is durable: acknowledge it only then.
#[must_use = "a write may be acknowledged only once its ticket is done"]
pub struct Written<T> {
    /// The reply.
    pub reply: T,
    /// Done when what the reply speaks of is flushed.
    pub ticket: Ticket,
}

impl<T> Written<T> {
    /// Blocks until the write is durable.
    ///
    /// # Errors
    /// A failed flush.
    pub fn wait(self) -> Result<T> {
        self.ticket.wait()?;
        Ok(self.reply)
    }

    /// Waits until the write is durable.
    ///
    /// # Errors
    /// A failed flush.
    pub async fn durable(self) -> Result<T> {
        self.ticket.await?;
        Ok(self.reply)
    }
}

/// How many documents a collection holds, and their bytes.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub struct Totals {
    /// The documents.
    pub count: i64,
    /// Their bytes; of a time series, those of its buckets and of what is not packed yet.
    pub size_bytes: i64,
    /// The packed buckets of a time series.
    pub buckets: i64,
    /// The largest document ever written.
    pub largest_bytes: i64,
}

impl Options {
    /// The system's clock and the standard library's randomness, with the storage's usual bounds.
    pub fn system() -> Options {
        let clock = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64);
        let state = std::hash::RandomState::new();
        let counter = AtomicU64::new(0);
        let random = move || state.hash_one((counter.fetch_add(1, Ordering::Relaxed), clock()));
        Options { storage: storage::Options::default(), clock: Arc::new(clock), random: Arc::new(random) }
    }
}

impl Engine {
    /// Opens a folder, creating it if need be.
    ///
    /// # Errors
    /// A folder that another process has open, that can't be read, or whose content is damaged.
    pub fn open(folder: &Path, options: Options) -> Result<Engine> {
        Engine::open_with(folder, options, Vec::new())
    }

    /// Opens a folder with write hooks that see every write, the very first one too.
    ///
    /// # Errors
    /// As [`Engine::open`]; a layer that the folder requires and that no hook belongs to.
    pub fn open_with(folder: &Path, options: Options, hooks: Vec<Arc<dyn WriteHook>>) -> Result<Engine> {
        let storage = Storage::open(folder, options.storage.clone())?;
        Engine::on_with(storage, options, hooks)
    }

    /// An engine in memory: the same behaviour, gone at the end.
    ///
    /// # Errors
    /// None in practice.
    pub fn in_memory(options: Options) -> Result<Engine> {
        let storage = Storage::in_memory(options.storage.clone());
        Engine::on(storage, options)
    }

    /// An engine on a storage.
    ///
    /// # Errors
    /// A catalogue that can't be read.
    pub fn on(storage: Storage, options: Options) -> Result<Engine> {
        Engine::on_with(storage, options, Vec::new())
    }

    /// An engine on a storage, with write hooks that see every write.
    ///
    /// # Errors
    /// As [`Engine::on`]; a layer that the storage's content requires and that no hook belongs to.
    pub fn on_with(storage: Storage, options: Options, hooks: Vec<Arc<dyn WriteHook>>) -> Result<Engine> {
        let snapshot = storage.snapshot();
        check_layers(&snapshot, &hooks)?;
        let catalog = Arc::new(Catalog::load(&snapshot)?);
        let last_time = storage.writer()?.time();
        let inner = Arc::new(Inner {
            hub: Hub::default(),
            index_uses: IndexUses::since((options.clock)()),
            series: Packer::new(((options.clock)().max(0) as u64).max(((last_time >> 32) + 1) * 1000)),
            storage,
            options,
            counters: Counters::default(),
            intents: Intents::default(),
            hooks: ArcSwap::from_pointee(hooks),
            sessions: Sessions::default(),
            cursors: Cursors::default(),
            plans: PlanCache::new(),
            estimates: Estimates::default(),
            snapshots: Snapshots::default(),
            working: Mutex::new(Working { catalog: catalog.clone() }),
            latest_catalog: ArcSwap::new(catalog.clone()),
            published: RwLock::new(vec![(0, catalog)]),
            last_time: AtomicU64::new(last_time),
            ttl_period_ms: AtomicU64::new(crate::housekeeping::TTL_PERIOD.as_millis() as u64),
            document_alarm_bytes: AtomicU64::new(crate::alarm::DEFAULT_BYTES),
        });
        crate::housekeeping::start(&inner);
        Ok(Engine { inner })
    }

    /// Adds a write hook; it sees all writes from now on.
    pub fn add_hook(&self, hook: Arc<dyn WriteHook>) {
        self.inner.hooks.rcu(|hooks| {
            let mut hooks = Vec::clone(hooks);
            hooks.push(hook.clone());
            hooks
        });
    }

    /// Sets how often expired documents are deleted; once a minute by default.
    pub fn set_ttl_period(&self, period: Duration) {
        self.inner.ttl_period_ms.store(period.as_millis() as u64, Ordering::Relaxed);
    }

    /// Deletes the documents whose time is over; gives how many.
    ///
    /// # Errors
    /// A failing storage.
    pub fn delete_expired(&self) -> Result<u64> {
        self.inner.delete_expired()
    }

    /// Packs all measurements of time series that are not packed yet; gives the number of buckets made.
    ///
    /// # Errors
    /// A failing storage.
    pub fn pack_series(&self) -> Result<usize> {
        self.inner.pack_due(true)
    }

    /// How many transactions are open.
    pub fn open_transaction_count(&self) -> usize {
        self.inner.sessions.open_count()
    }

    /// The published state.
    pub fn state(&self) -> State {
        self.inner.state()
    }

    /// The storage below, for its log and its statistics.
    pub fn storage(&self) -> &Storage {
        &self.inner.storage
    }

    /// The cluster time: that of the last executed commit, or the clock's if that is later.
    pub fn cluster_time(&self) -> Timestamp {
        timestamp(self.inner.last_time.load(Ordering::Acquire))
    }

    /// How many documents a collection holds, and their bytes.
    ///
    /// # Errors
    /// A failing storage.
    pub fn totals(&self, collection: &Collection) -> Result<Totals> {
        self.inner.totals(&self.inner.storage.snapshot(), collection.id)
    }

    /// Flushes and folds everything; further writes are refused.
    ///
    /// # Errors
    /// A failing storage.
    pub fn close(self) -> Result<()> {
        self.inner.storage.clone().close()
    }
}

impl Inner {
    /// The published state.
    pub(crate) fn state(&self) -> State {
        loop {
            let snapshot = self.storage.snapshot();
            let published = self.published.read();
            let found = published.iter().rev().find(|entry| entry.0 <= snapshot.position());
            if let Some((_, catalog)) = found {
                return State { snapshot, catalog: catalog.clone() };
            }
        }
    }

    /// The catalogue that a write finds its collection in before it takes the writer lock: that of everything executed so
    /// far, or what its transaction sees.
    pub(crate) fn catalog_for_write(&self, context: &Context) -> Result<Arc<Catalog>> {
        match context.transaction() {
            Some(session) => Ok(self.transaction_state(session)?.catalog),
            None => Ok(self.latest_catalog.load_full()),
        }
    }

    /// The time of the last executed commit.
    pub(crate) fn operation_time(&self) -> u64 {
        self.last_time.load(Ordering::Acquire)
    }

    /// How often expired documents are deleted.
    pub(crate) fn ttl_period(&self) -> Duration {
        Duration::from_millis(self.ttl_period_ms.load(Ordering::Relaxed))
    }

    /// The environment of an operation that begins now.
    pub(crate) fn environment(&self) -> Environment {
        let random = self.options.random.clone();
        Environment {
            now: DateTime::from_millis((self.options.clock)()),
            cluster_time: timestamp(self.last_time.load(Ordering::Acquire)),
            collator: None,
            variables: Vec::new(),
            random: Arc::new(move || (random() >> 11) as f64 / (1u64 << 53) as f64),
        }
    }

    /// A random UUID (version 4).
    pub(crate) fn new_uuid(&self) -> [u8; 16] {
        let mut uuid = [0; 16];
        uuid[..8].copy_from_slice(&(self.options.random)().to_be_bytes());
        uuid[8..].copy_from_slice(&(self.options.random)().to_be_bytes());
        uuid[6] = uuid[6] & 0x0f | 0x40;
        uuid[8] = uuid[8] & 0x3f | 0x80;
        uuid
    }

    /// Runs a statement and commits it; in a transaction, adds it to the transaction. Waits for other transactions' intents.
    pub(crate) fn write<T>(
        &self,
        context: &Context,
        body: impl FnMut(&mut Statement<'_>) -> Result<T>,
    ) -> Result<Written<T>> {
        self.write_then(context, |writer| drop(writer), body)
    }

    /// The same for one of many steps of a statement: who waits for the writer lock gets it before the next step.
    pub(crate) fn write_step<T>(
        &self,
        context: &Context,
        body: impl FnMut(&mut Statement<'_>) -> Result<T>,
    ) -> Result<Written<T>> {
        let unlock = |writer: Writer<'_>| {
            writer.hand_over();
            // Whoever was woken meanwhile may also wait for this core.
            std::thread::yield_now();
        };
        self.write_then(context, unlock, body)
    }

    fn write_then<T>(
        &self,
        context: &Context,
        unlock: fn(Writer<'_>),
        mut body: impl FnMut(&mut Statement<'_>) -> Result<T>,
    ) -> Result<Written<T>> {
        if context.transaction().is_some() {
            return self.write_in_transaction(context, body);
        }
        loop {
            let releases = self.intents.releases();
            match self.write_once(context.is_patient, unlock, &mut body) {
                Err(error) if error.code == BLOCKED => {
                    context.check()?;
                    context.block(|| self.intents.wait(releases, Duration::from_millis(100)));
                    context.check()?;
                }
                done => return done,
            }
        }
    }

    fn write_once<T>(
        &self,
        is_patient: bool,
        unlock: fn(Writer<'_>),
        body: &mut impl FnMut(&mut Statement<'_>) -> Result<T>,
    ) -> Result<Written<T>> {
        let mut writer = self.storage.writer()?;
        writer.is_patient = is_patient;
        let mut working = self.working.lock();
        let mut statement = Statement::new(self, &writer, working.catalog.clone(), (self.options.clock)());
        let reply = body(&mut statement)?;
        let outcome = statement.finish();
        let ticket = self.commit(&mut writer, &mut working, outcome)?;
        drop(working);
        unlock(writer);
        Ok(Written { reply, ticket })
    }

    /// Runs `body` with the writer and what it works on.
    pub(crate) fn with_writer<T>(&self, body: impl FnOnce(&mut Writer<'_>, &mut Working) -> Result<T>) -> Result<T> {
        let mut writer = self.storage.writer()?;
        let mut working = self.working.lock();
        body(&mut writer, &mut working)
    }

    /// Commits what a statement did. The ticket also covers everything that the statement saw.
    pub(crate) fn commit(&self, writer: &mut Writer<'_>, working: &mut Working, outcome: Outcome) -> Result<Ticket> {
        if outcome.writes.is_empty() && outcome.note.size_bytes() == 0 {
            return Ok(self.storage.ticket(writer.position()));
        }
        let mut writes = outcome.writes.into_vec();
        for (collection, delta) in &outcome.deltas {
            writes.extend(self.new_totals(writer, *collection, *delta)?);
        }
        let clock_time = (((self.options.clock)().max(0) as u64 / 1000) << 32) | 1;
        let time = clock_time.max(self.last_time.load(Ordering::Acquire) + 1);
        // Before the commit: once it is executed, it may be visible at any moment, and then its catalogue must be known.
        if let Some(catalog) = &outcome.catalog {
            self.publish_catalog(writer.position() + 1, catalog.clone());
        }
        let committed = writer.commit(Changes { time, note: outcome.note.into_bytes(), writes });
        if let Some(catalog) = outcome.catalog {
            match committed {
                Ok(_) => working.catalog = catalog,
                Err(_) => self.withdraw_catalog(working.catalog.clone()),
            }
        }
        let ticket = committed?;
        self.last_time.store(time, Ordering::Release);
        Ok(ticket)
    }

    /// From a position on, readers see this catalogue; writers look for their collections in it at once. The caller holds
    /// the writer lock.
    fn publish_catalog(&self, position: Position, catalog: Arc<Catalog>) {
        self.latest_catalog.store(catalog.clone());
        let mut published = self.published.write();
        published.push((position, catalog));
        let flushed = self.storage.flushed();
        while published.len() > 8 && published[4].0 <= flushed {
            published.remove(0);
        }
    }

    /// Takes back the catalogue that was published last, for one whose commit failed.
    fn withdraw_catalog(&self, before: Arc<Catalog>) {
        self.latest_catalog.store(before);
        self.published.write().pop();
    }

    /// A collection's totals as they are to be stored, if they change.
    fn new_totals(&self, view: &dyn View, collection: u32, delta: Delta) -> Result<Option<(Bytes, Option<Bytes>)>> {
        let totals = self.totals(view, collection)?;
        let grows = delta.count != 0 || delta.size_bytes != 0 || delta.buckets != 0;
        if !grows && delta.largest_bytes <= totals.largest_bytes {
            return Ok(None);
        }
        let mut value = Vec::with_capacity(32);
        value.extend_from_slice(&(totals.count + delta.count).to_le_bytes());
        value.extend_from_slice(&(totals.size_bytes + delta.size_bytes).to_le_bytes());
        value.extend_from_slice(&(totals.buckets + delta.buckets).to_le_bytes());
        value.extend_from_slice(&totals.largest_bytes.max(delta.largest_bytes).to_le_bytes());
        self.watch_size(collection, totals.largest_bytes, delta.largest_bytes);
        Ok(Some((totals_key(collection), Some(value.into()))))
    }

    /// How many documents a collection holds in a view, and their bytes.
    pub(crate) fn totals(&self, view: &dyn View, collection: u32) -> Result<Totals> {
        let Some(value) = view.get(&totals_key(collection))? else { return Ok(Totals::default()) };
        let number = |from: usize| {
            let bytes = value.get(from..from + 8).and_then(|bytes| bytes.try_into().ok());
            bytes.map(i64::from_le_bytes).ok_or_else(|| Error::internal("a collection's totals are broken"))
        };
        let later = |from: usize| if value.len() > from { number(from) } else { Ok(0) };
        Ok(Totals { count: number(0)?, size_bytes: number(8)?, buckets: later(16)?, largest_bytes: later(24)? })
    }
}

/// Refuses to open what a missing layer would have to keep.
fn check_layers(view: &dyn View, hooks: &[Arc<dyn WriteHook>]) -> Result<()> {
    let prefix = keyspace::prefix(keyspace::SETTINGS, 0);
    let mut end = None;
    let (from, to) = keyspace::bounds(&prefix, &mut end);
    for entry in view.range(from, to, Direction::Forward)? {
        let (key, _) = entry?;
        let Some(name) = keyspace::layer_name(&key[prefix.len()..]) else { continue };
        if !hooks.iter().any(|hook| hook.layer() == Some(name)) {
            return Err(Error::new(
                Code::ILLEGAL_OPERATION,
                format!("these data are kept by the layer `{name}` and open only together with it"),
            ));
        }
    }
    Ok(())
}

/// Where a collection's totals lie.
pub(crate) fn totals_key(collection: u32) -> Bytes {
    keyspace::key(keyspace::SETTINGS, collection, b"totals")
}

/// A commit's time as BSON has it.
pub(crate) fn timestamp(time: u64) -> Timestamp {
    Timestamp { time: (time >> 32) as u32, increment: time as u32 }
}
