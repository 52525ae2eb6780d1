//! Logical sessions, retryable writes and multi-document transactions.
//!
//! A transaction reads a snapshot and keeps its writes on top of it until it commits. What it writes carries intents: the
//! first updater wins, and another transaction that wants the same gets `WriteConflict` at once. At commit the hooks run
//! on the latest state and everything goes into the log as one record.
//!
//! What a transaction reads is flushed, unless its session reads *ahead*: then it is everything executed, so that whoever
//! makes one transaction after the other need not wait for a flush between them. Its commit comes after what it read in the
//! log, so once that is durable, so is what it was decided on; before that nobody may be told of either.

use crate::catalog::Catalog;
use crate::context::{Context, SessionContext, SessionId};
use crate::database::{Inner, State, Written};
use crate::error::{Code, Error, Result};
use crate::event::Note;
use crate::keyspace;
use crate::namespace::Namespace;
use crate::statement::{BLOCKED, CommittedWrite, Delta, Latest, Outcome, Statement, write_conflict};
use crate::storage::{Layer, Overlaid, Ticket, View};
use bson::{RawDocument, RawDocumentBuf};
use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How long a transaction may stay open.
pub const TRANSACTION_LIFETIME: Duration = Duration::from_secs(60);

/// The most bytes that a transaction may write.
pub const MAX_TRANSACTION_BYTES: usize = 192 << 20;

/// How long an unused session is remembered.
pub const SESSION_TIMEOUT: Duration = Duration::from_secs(30 * 60);

/// The most sessions that are remembered at once.
pub const MAX_SESSIONS: usize = 1_000_000;

/// All sessions in use.
#[derive(Default)]
pub(crate) struct Sessions {
    states: Mutex<HashMap<SessionId, Arc<Mutex<SessionState>>>>,
    next_owner: AtomicU64,
}

pub(crate) struct SessionState {
    /// The highest transaction number seen.
    number: i64,
    transaction: Phase,
    last_use: Instant,
    /// Whether it was ended: an operation that has found it before must begin nothing that nobody would end.
    ended: bool,
}

enum Phase {
    None,
    Active(Box<Transaction>),
    Committed(Ticket),
    Aborted,
}

struct Transaction {
    owner: u64,
    view: Arc<Overlaid>,
    begun_with: Arc<Catalog>,
    catalog: Arc<Catalog>,
    catalog_changed: bool,
    note: Note,
    deltas: BTreeMap<u32, Delta>,
    started: Instant,
    session: SessionContext,
}

/// An open transaction, as others may see it.
#[derive(Clone, Debug)]
pub struct OpenTransaction {
    /// Whose it is, with its number.
    pub session: SessionContext,
    /// How long it has been open.
    pub open: Duration,
}

/// What a transaction reads.
pub(crate) struct TransactionState {
    pub(crate) view: Arc<Overlaid>,
    pub(crate) catalog: Arc<Catalog>,
}

impl Sessions {
    fn get(&self, id: SessionId) -> Result<Arc<Mutex<SessionState>>> {
        let mut states = self.states.lock();
        if states.len() >= MAX_SESSIONS && !states.contains_key(&id) {
            return Err(Error::new(Code(261), format!("there are more than {MAX_SESSIONS} sessions; end some")));
        }
        let fresh = || SessionState { number: -1, transaction: Phase::None, last_use: Instant::now(), ended: false };
        Ok(states.entry(id).or_insert_with(|| Arc::new(Mutex::new(fresh()))).clone())
    }

    /// The open transactions; those that are at work right now are left out.
    pub(crate) fn open_transactions(&self) -> Vec<OpenTransaction> {
        let states: Vec<_> = self.states.lock().values().cloned().collect();
        let open = |state: &Arc<Mutex<SessionState>>| match &state.try_lock()?.transaction {
            Phase::Active(transaction) => {
                Some(OpenTransaction { session: transaction.session.clone(), open: transaction.started.elapsed() })
            }
            _ => None,
        };
        states.iter().filter_map(open).collect()
    }

    /// How many transactions are open; those that are at work right now count too.
    pub(crate) fn open_count(&self) -> usize {
        let states: Vec<_> = self.states.lock().values().cloned().collect();
        let is_open = |state: &Arc<Mutex<SessionState>>| {
            state.try_lock().is_none_or(|state| matches!(state.transaction, Phase::Active(_)))
        };
        states.iter().filter(|state| is_open(state)).count()
    }
}

impl SessionState {
    /// The open transaction that an operation belongs to, begun if the operation says so.
    fn transaction(&mut self, engine: &Inner, context: &SessionContext) -> Result<&mut Transaction> {
        let number = context.txn_number.ok_or_else(|| {
            Error::new(Code::INVALID_OPTIONS, "a transaction's operation needs txnNumber beside autocommit: false")
        })?;
        self.last_use = Instant::now();
        if self.ended {
            return Err(no_transaction(number));
        }
        if number < self.number {
            return Err(too_old(number, self.number));
        }
        if context.start_transaction && !context.begun.load(Ordering::Relaxed) {
            self.begin(engine, number, context)?;
            context.begun.store(true, Ordering::Relaxed);
        } else if number > self.number {
            return Err(no_transaction(number));
        }
        match &mut self.transaction {
            Phase::Active(transaction) if transaction.started.elapsed() < TRANSACTION_LIFETIME => {}
            Phase::Active(_) => self.abort(engine),
            _ => {}
        }
        match &mut self.transaction {
            Phase::Active(transaction) => Ok(transaction),
            Phase::Committed(_) => Err(Error::new(
                Code::TRANSACTION_COMMITTED,
                format!("Transaction with {{ txnNumber: {number} }} has been committed."),
            )),
            Phase::None | Phase::Aborted => Err(no_transaction(number)),
        }
    }

    fn begin(&mut self, engine: &Inner, number: i64, session: &SessionContext) -> Result<()> {
        if number == self.number && !matches!(self.transaction, Phase::None) {
            return Err(Error::new(
                Code::CONFLICTING_OPERATION_IN_PROGRESS,
                format!("Transaction {number} has already been started on this session; use the next txnNumber"),
            ));
        }
        self.abort(engine);
        let state = if session.ahead { engine.executed_state()? } else { engine.state() };
        self.number = number;
        self.transaction = Phase::Active(Box::new(Transaction {
            owner: engine.sessions.next_owner.fetch_add(1, Ordering::Relaxed),
            view: Arc::new(Overlaid::new(state.snapshot)),
            begun_with: state.catalog.clone(),
            catalog: state.catalog,
            catalog_changed: false,
            note: Note::default(),
            deltas: BTreeMap::new(),
            started: Instant::now(),
            session: session.clone(),
        }));
        Ok(())
    }

    fn abort(&mut self, engine: &Inner) {
        if let Phase::Active(transaction) = std::mem::replace(&mut self.transaction, Phase::Aborted) {
            engine.intents.release(transaction.owner);
        }
    }
}

impl Transaction {
    fn absorb(&mut self, outcome: Outcome) -> Result<()> {
        let view = Arc::make_mut(&mut self.view);
        view.writes.absorb(outcome.writes);
        self.note.absorb(outcome.note);
        for (collection, delta) in outcome.deltas {
            self.deltas.entry(collection).or_default().add(delta);
        }
        if let Some(catalog) = outcome.catalog {
            self.catalog = catalog;
            self.catalog_changed = true;
        }
        let size = view.writes.size_bytes() + self.note.size_bytes();
        if size > MAX_TRANSACTION_BYTES {
            return Err(Error::new(
                Code::TRANSACTION_TOO_LARGE,
                format!("the transaction writes {size} bytes, more than {MAX_TRANSACTION_BYTES}; split it"),
            ));
        }
        Ok(())
    }

    /// The documents that it changed in namespaces that hooks watch, with what they are now.
    fn changes(&self, latest: &dyn View, is_watched: impl Fn(&Namespace) -> bool) -> Result<Vec<CommittedWrite>> {
        let mut changes = Vec::new();
        let mut known: HashMap<u32, bool> = HashMap::new();
        for (key, after) in self.view.writes.iter().filter(|write| write.0[0] == keyspace::RECORDS) {
            let id = u32::from_be_bytes(key[1..5].try_into().expect("a record's key begins with its collection"));
            let Some(collection) = self.catalog.by_id(id) else { continue };
            if !*known.entry(id).or_insert_with(|| is_watched(&collection.namespace)) {
                continue;
            }
            let before = latest.get(key)?;
            if before.as_ref() != after {
                let record_key = key.slice(keyspace::RECORD_PREFIX_BYTES..);
                changes.push(CommittedWrite {
                    collection: collection.clone(),
                    record_key,
                    before,
                    after: after.cloned(),
                });
            }
        }
        Ok(changes)
    }

    /// Refuses to commit on a catalogue that does not fit what was written.
    fn check_catalog(&self, now: &Arc<Catalog>) -> Result<()> {
        if Arc::ptr_eq(now, &self.begun_with) {
            return Ok(());
        }
        for id in self.deltas.keys() {
            let Some(mine) = self.catalog.by_id(*id) else { continue };
            let fits = now.get(&mine.namespace).is_some_and(|theirs| {
                theirs.id == *id && theirs.indexes.iter().map(|i| i.id).eq(mine.indexes.iter().map(|i| i.id))
            });
            if !fits || self.catalog_changed {
                return Err(write_conflict());
            }
        }
        Ok(())
    }
}

impl Inner {
    /// Everything executed so far, flushed or not.
    fn executed_state(&self) -> Result<State> {
        self.with_writer(|writer, working| Ok(State { snapshot: writer.executed(), catalog: working.catalog.clone() }))
    }

    /// Whether a hook wants to see the writes of a namespace.
    fn is_watched(&self, namespace: &Namespace) -> bool {
        self.hooks.load().iter().any(|hook| hook.watches(namespace))
    }

    /// Runs a statement in the context's transaction. A failing statement aborts the transaction.
    pub(crate) fn write_in_transaction<T>(
        &self,
        context: &Context,
        mut body: impl FnMut(&mut Statement<'_>) -> Result<T>,
    ) -> Result<Written<T>> {
        let session = context.transaction().expect("the caller has seen that there is one");
        let state = self.sessions.get(session.id)?;
        let mut state = state.lock();
        let transaction = state.transaction(self, session).map_err(labelled)?;
        let done = self.with_writer(|writer, _| {
            let mut statement =
                Statement::new(self, &*transaction.view, transaction.catalog.clone(), (self.options.clock)())
                    .in_transaction(
                        transaction.owner,
                        Latest { view: &*writer, snapshot: &transaction.view.snapshot },
                        &transaction.view.writes,
                    );
            let reply = body(&mut statement)?;
            Ok((reply, statement.finish()))
        });
        let done = done.and_then(|(reply, outcome)| transaction.absorb(outcome).map(|()| reply));
        match done {
            Ok(reply) => Ok(Written { reply, ticket: self.storage.ticket(0) }),
            Err(error) => {
                state.abort(self);
                Err(labelled(error))
            }
        }
    }

    /// What the context's transaction reads.
    pub(crate) fn transaction_state(&self, session: &SessionContext) -> Result<TransactionState> {
        let state = self.sessions.get(session.id)?;
        let mut state = state.lock();
        let transaction = state.transaction(self, session).map_err(labelled)?;
        Ok(TransactionState { view: transaction.view.clone(), catalog: transaction.catalog.clone() })
    }

    /// Commits the context's transaction. Asked again, it gives the same answer.
    pub(crate) fn commit_transaction(&self, session: &SessionContext) -> Result<Written<()>> {
        let state = self.sessions.get(session.id)?;
        let mut state = state.lock();
        if let (Phase::Committed(ticket), true) = (&state.transaction, Some(state.number) == session.txn_number) {
            return Ok(Written { reply: (), ticket: self.storage.ticket(ticket.position()) });
        }
        let transaction = state.transaction(self, session).map_err(labelled)?;
        let committed = self.with_writer(|writer, working| {
            transaction.check_catalog(&working.catalog)?;
            let changes = transaction.changes(writer, |namespace| self.is_watched(namespace))?;
            let catalog = if transaction.catalog_changed { &transaction.catalog } else { &working.catalog };
            let catalog = catalog.clone();
            // The transaction ends here, whatever becomes of it.
            let writes = std::mem::take(&mut Arc::make_mut(&mut transaction.view).writes);
            let written = Layer::with_writes(&*writer, writes);
            let mut statement = Statement::new(self, &written, catalog, (self.options.clock)())
                .at_commit(transaction.owner, written.writes());
            statement.run_commit_hooks(&changes)?;
            let hooks = statement.finish();
            let mut note = Note::default();
            if transaction.note.size_bytes() > 0 {
                note = Note::of_transaction(session)?;
                note.absorb(std::mem::take(&mut transaction.note));
            }
            let mut outcome = Outcome {
                writes: written.into_writes(),
                note,
                deltas: std::mem::take(&mut transaction.deltas),
                catalog: transaction.catalog_changed.then(|| transaction.catalog.clone()),
                hook_writes: 0,
            };
            outcome.absorb(hooks);
            self.commit(writer, working, outcome)
        });
        match committed {
            Ok(ticket) => {
                self.intents.release(transaction.owner);
                state.transaction = Phase::Committed(self.storage.ticket(ticket.position()));
                Ok(Written { reply: (), ticket })
            }
            Err(error) => {
                state.abort(self);
                Err(labelled(error))
            }
        }
    }

    /// Drops the context's transaction.
    pub(crate) fn abort_transaction(&self, session: &SessionContext) -> Result<()> {
        let state = self.sessions.get(session.id)?;
        let mut state = state.lock();
        state.transaction(self, session).map_err(labelled)?;
        state.abort(self);
        Ok(())
    }

    /// Forgets sessions; their transactions are aborted.
    pub(crate) fn end_sessions(&self, ids: &[SessionId]) {
        for id in ids {
            let state = self.sessions.states.lock().remove(id);
            if let Some(state) = state {
                let mut state = state.lock();
                state.ended = true;
                state.abort(self);
            }
        }
    }

    /// Aborts transactions that are open too long, forgets sessions that nobody used for long.
    pub(crate) fn expire_sessions(&self) {
        let states: Vec<_> = self.sessions.states.lock().iter().map(|(id, state)| (*id, state.clone())).collect();
        for (id, state) in states {
            let Some(mut state) = state.try_lock() else { continue };
            if matches!(&state.transaction, Phase::Active(open) if open.started.elapsed() >= TRANSACTION_LIFETIME) {
                state.abort(self);
            }
            if state.last_use.elapsed() >= SESSION_TIMEOUT {
                state.ended = true;
                self.sessions.states.lock().remove(&id);
            }
        }
    }

    /// The recorded result of a retryable statement, if it was executed before.
    ///
    /// The caller holds the writer lock, and a transaction's statements and its commit take that lock while they hold their
    /// session: so the session is not waited for here.
    ///
    /// # Errors
    /// `TransactionTooOld` (225) when the session has gone on to a later number; [`BLOCKED`] while another operation of the
    /// session is at work.
    pub(crate) fn recorded(
        &self,
        view: &dyn View,
        session: &SessionContext,
        number: i64,
        statement: u32,
    ) -> Result<Option<RawDocumentBuf>> {
        let state = self.sessions.get(session.id)?;
        {
            let Some(mut state) = state.try_lock() else {
                return Err(Error::new(BLOCKED, "another operation of the session is at work"));
            };
            state.last_use = Instant::now();
            if number < state.number {
                return Err(too_old(number, state.number));
            }
            state.abort_if_older(self, number);
        }
        let Some(value) = view.get(&record_key(session.id, statement))? else { return Ok(None) };
        let record = RawDocument::from_bytes(&value)?;
        Ok(match record.get_i64("n") {
            Ok(recorded) if recorded == number => Some(record.get_document("r").map_err(broken)?.to_owned()),
            Ok(recorded) if recorded > number => return Err(too_old(number, recorded)),
            _ => None,
        })
    }

    /// Records the result of a retryable statement, to be committed with what it wrote.
    pub(crate) fn record(
        &self,
        target: &mut Statement<'_>,
        session: &SessionContext,
        number: i64,
        statement: u32,
        result: &RawDocument,
    ) {
        let record = bson::rawdoc! { "n": number, "t": (self.options.clock)(), "r": result.to_owned() };
        target.put(record_key(session.id, statement), Bytes::from(record.into_bytes()));
    }
}

impl SessionState {
    fn abort_if_older(&mut self, engine: &Inner, number: i64) {
        if number > self.number {
            self.abort(engine);
            self.number = number;
            self.transaction = Phase::None;
        }
    }
}

impl Outcome {
    fn absorb(&mut self, later: Outcome) {
        self.writes.absorb(later.writes);
        self.note.absorb(later.note);
        for (collection, delta) in later.deltas {
            self.deltas.entry(collection).or_default().add(delta);
        }
        self.catalog = later.catalog.or(self.catalog.take());
    }
}

fn record_key(session: SessionId, statement: u32) -> Bytes {
    let mut key = Vec::with_capacity(21);
    key.push(keyspace::SESSIONS);
    key.extend_from_slice(&session);
    key.extend_from_slice(&statement.to_be_bytes());
    Bytes::from(key)
}

fn broken(error: impl std::fmt::Display) -> Error {
    Error::internal(format!("a retryable write's record is broken: {error}"))
}

fn too_old(number: i64, last: i64) -> Error {
    Error::new(
        Code::TRANSACTION_TOO_OLD,
        format!(
            "Cannot start transaction with {{ txnNumber: {number} }} on session because a newer transaction with txnNumber {last} has already started"
        ),
    )
}

fn no_transaction(number: i64) -> Error {
    Error::new(
        Code::NO_SUCH_TRANSACTION,
        format!(
            "Given transaction number {number} does not match any in-progress transactions. The transaction may have been aborted; run it again"
        ),
    )
}

/// Adds the label that tells drivers to run the whole transaction again.
fn labelled(error: Error) -> Error {
    let transient = [
        Code::WRITE_CONFLICT,
        Code::NO_SUCH_TRANSACTION,
        Code::SNAPSHOT_UNAVAILABLE,
        Code::LOCK_TIMEOUT,
        Code::SHUTDOWN_IN_PROGRESS,
        Code::INTERRUPTED_AT_SHUTDOWN,
    ];
    if transient.contains(&error.code) && error.labels().is_empty() {
        return error.with_label("TransientTransactionError");
    }
    error
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::{Engine, Options};

    #[test]
    fn an_operation_that_found_its_session_before_it_was_killed_begins_no_transaction_in_it() {
        let engine = Engine::in_memory(Options::system()).unwrap();
        let inner = &engine.inner;
        let session = SessionContext {
            id: [7; 16],
            user: [0; 32],
            txn_number: Some(1),
            in_transaction: true,
            start_transaction: true,
            begun: Arc::default(),
            ahead: false,
        };
        let found = inner.sessions.get(session.id).unwrap();
        inner.end_sessions(&[session.id]);
        let error = found.lock().transaction(inner, &session).err().expect("the session is over");
        assert_eq!(error.code, Code::NO_SUCH_TRANSACTION);
        assert!(
            inner.sessions.get(session.id).unwrap().lock().transaction(inner, &session).is_ok(),
            "another one begins"
        );
    }
}
