//! What runs beside the writes: backfills, lagging copies and references, a batch at a time, with the lag as a metric.
//!
//! The work stands in notes ([`super::BACKFILL`], [`super::LAGGING`]), which are durable and say how far each got. This
//! thread only asks for the next batch; it may be killed at any moment, and two of them do no harm.

use super::active::Models;
use super::{BACKFILL, LAGGING};
use bson::{Bson, Document, RawBson, RawDocumentBuf, doc};
use engine::operation::{Delete, DeleteStatement, Find, FindAndModify, Modification, Query};
use engine::{Code, Context, Engine, Error, Namespace, Result};
use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long it sleeps at most when nobody wakes it.
const PERIOD: Duration = Duration::from_secs(1);

/// How long it waits after an error.
const PAUSE_AFTER_ERROR: Duration = Duration::from_millis(500);

/// The most notes that are looked at in one round.
const NOTES: u64 = 1_000;

/// Tells the service that there is something to do.
#[derive(Debug, Default)]
pub(super) struct Wake {
    asked: Mutex<bool>,
    changed: Condvar,
}

impl Wake {
    pub(super) fn ask(&self) {
        *self.asked.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }

    fn wait(&self, at_most: Duration) {
        let asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.changed.wait_timeout_while(asked, at_most, |asked| !*asked);
        let (mut asked, _) = waited.unwrap_or_else(PoisonError::into_inner);
        *asked = false;
    }
}

/// How far the lagging part of a model is behind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// For each declaration with something to do: since when, in milliseconds.
    pub lag_ms: BTreeMap<String, i64>,
    /// The declarations that are being filled.
    pub filling: Vec<String>,
    /// The batches done since the start.
    pub batches: u64,
    /// The last error.
    pub last_error: Option<String>,
}

/// The thread; it ends when this is dropped.
#[derive(Debug)]
pub struct Service {
    shared: Arc<Shared>,
    thread: Option<std::thread::JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    stop: std::sync::atomic::AtomicBool,
    wake: Arc<Wake>,
    status: Mutex<Status>,
}

impl Service {
    /// Starts it on an engine that was opened with these models.
    ///
    /// # Errors
    /// A system that gives no thread; activations that can't be read.
    pub fn start(engine: &Engine, models: &Arc<Models>) -> Result<Service> {
        models.load(engine)?;
        let shared =
            Arc::new(Shared { stop: false.into(), wake: models.wake(), status: Mutex::new(Status::default()) });
        let mut worker = Worker { engine: engine.clone(), models: models.clone(), shared: shared.clone() };
        let thread = std::thread::Builder::new().name("sheaf-model".into()).spawn(move || worker.run())?;
        Ok(Service { shared, thread: Some(thread) })
    }

    /// How far it is.
    pub fn status(&self) -> Status {
        self.shared.status.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until nothing is left to do; false if that takes longer than `at_most`.
    pub fn settle(&self, engine: &Engine, models: &Models, at_most: Duration) -> Result<bool> {
        let until = Instant::now() + at_most;
        loop {
            let mut left = 0;
            for database in models.databases() {
                left += open_notes(engine, &database, BACKFILL)?.len() + open_notes(engine, &database, LAGGING)?.len();
            }
            if left == 0 {
                return Ok(true);
            }
            if Instant::now() >= until {
                return Ok(false);
            }
            self.shared.wake.ask();
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.shared.stop.store(true, std::sync::atomic::Ordering::Release);
        self.shared.wake.ask();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the thread that keeps the model ended by a panic");
        }
    }
}

struct Worker {
    engine: Engine,
    models: Arc<Models>,
    shared: Arc<Shared>,
}

impl Worker {
    fn stopped(&self) -> bool {
        self.shared.stop.load(std::sync::atomic::Ordering::Acquire)
    }

    fn run(&mut self) {
        while !self.stopped() {
            match self.round() {
                Ok(true) => {}
                Ok(false) => self.shared.wake.wait(PERIOD),
                Err(error) => {
                    tracing::warn!(%error, "keeping the model in the background goes on after a pause");
                    self.change_status(|status| status.last_error = Some(error.to_string()));
                    self.shared.wake.wait(PAUSE_AFTER_ERROR);
                }
            }
        }
    }

    fn change_status(&self, change: impl FnOnce(&mut Status)) {
        change(&mut self.shared.status.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// One batch of everything that is open; false if there was nothing.
    fn round(&mut self) -> Result<bool> {
        let now = (bson::DateTime::now()).timestamp_millis();
        let mut worked = false;
        let (mut lag_ms, mut filling) = (BTreeMap::new(), Vec::new());
        for database in self.models.databases() {
            for note in open_notes(&self.engine, &database, BACKFILL)? {
                filling.push(note.get_str("_id").unwrap_or_default().to_owned());
                if self.stopped() {
                    return Ok(false);
                }
                worked |= self.step(&database, BACKFILL, &note)?;
            }
            for note in open_notes(&self.engine, &database, LAGGING)? {
                let name = note.get_document("_id").and_then(|id| id.get_str("declaration")).unwrap_or_default();
                let since = note.get_datetime("since").map_or(now, |since| since.timestamp_millis());
                let lag = (now - since).max(0);
                self.alarm(&database, name, lag);
                let known = lag_ms.entry(name.to_owned()).or_insert(lag);
                *known = lag.max(*known);
                if self.stopped() {
                    return Ok(false);
                }
                worked |= self.step(&database, LAGGING, &note)?;
            }
        }
        self.change_status(|status| (status.lag_ms, status.filling) = (lag_ms, filling));
        Ok(worked)
    }

    /// Says so when copies are further behind than the model allows.
    fn alarm(&self, database: &str, declaration: &str, lag_ms: i64) {
        if let Some(max) = self.models.max_lag_ms(database, declaration)
            && lag_ms > max as i64
        {
            tracing::warn!(database, declaration, lag_ms, max_lag_ms = max, "copies are further behind than declared");
        }
    }

    /// The next batch of a note; a lagging one that is done goes.
    fn step(&self, database: &str, collection: &str, note: &Document) -> Result<bool> {
        let Some(id) = note.get("_id").cloned() else { return Ok(false) };
        let namespace = Namespace::new(database, collection)?;
        let after = step(&self.engine, &namespace, id.clone())?;
        self.change_status(|status| status.batches += 1);
        let done = after.is_none_or(|after| after.get_bool("done").unwrap_or(false));
        if done && collection == LAGGING {
            let query = query(&doc! { "_id": id, "done": true })?;
            let statements = vec![DeleteStatement { query, multi: false }];
            let delete = Delete { namespace, statements, ordered: true, statement_ids: Vec::new() };
            self.engine.delete(&Context::default(), &delete)?.wait()?;
        }
        Ok(true)
    }
}

fn raw(document: &Document) -> Result<RawDocumentBuf> {
    super::compile::raw(document)
}

fn query(filter: &Document) -> Result<Query> {
    Ok(Query { filter: raw(filter)?, ..Query::default() })
}

/// Asks for the next batch of a note; gives the note after it.
pub(super) fn step(engine: &Engine, namespace: &Namespace, id: Bson) -> Result<Option<Document>> {
    let arguments = FindAndModify {
        namespace: namespace.clone(),
        query: query(&doc! { "_id": id, "done": { "$ne": true } })?,
        modification: Modification::Update {
            update: RawBson::Document(raw(&doc! { "$inc": { "tick": 1_i64 } })?),
            upsert: false,
            new: true,
            array_filters: Vec::new(),
        },
        fields: None,
        bypass_document_validation: true,
        statement_id: 0,
    };
    let context = Context { is_patient: true, ..Context::default() };
    let reply = engine.find_and_modify(&context, &arguments)?.wait()?;
    reply.value.map(|value| super::value::document(&value)).transpose()
}

/// Does everything that is to be filled in a database.
pub(super) fn fill(engine: &Engine, database: &str) -> Result<()> {
    let namespace = Namespace::new(database, BACKFILL)?;
    for note in open_notes(engine, database, BACKFILL)? {
        let Some(id) = note.get("_id").cloned() else { continue };
        while step(engine, &namespace, id.clone())?.is_some() {}
    }
    Ok(())
}

/// The documents of a collection that match.
pub(super) fn find(engine: &Engine, namespace: Namespace, filter: &Document, limit: u64) -> Result<Vec<Document>> {
    let query = Query { filter: raw(filter)?, limit, ..Query::default() };
    let find = Find { query, ..Find::new(namespace) };
    let mut batch = engine.find(&Context::default(), &find)?;
    let mut found = Vec::new();
    loop {
        for bytes in &batch.documents {
            let bytes = bson::RawDocument::from_bytes(bytes)
                .map_err(|error| Error::new(Code::INVALID_BSON, format!("a stored document can't be read: {error}")))?;
            found.push(super::value::document(bytes)?);
        }
        if batch.cursor == 0 {
            return Ok(found);
        }
        batch = engine.get_more(&Context::default(), batch.cursor, &find.namespace, None, None)?;
    }
}

fn open_notes(engine: &Engine, database: &str, collection: &str) -> Result<Vec<Document>> {
    find(engine, Namespace::new(database, collection)?, &doc! { "done": { "$ne": true } }, NOTES)
}
