//! `update`: documents changed by operators, a replacement or a pipeline; inserted by an upsert when nothing matches.
//!
//! Candidates are found on a snapshot, outside the writer lock; each is read again, matched again and changed under it. So a hot
//! document has no conflict and no retry, and a guard in the filter holds at the moment of the write.

use super::read::{Parsed, Query, exact_id, same_collation};
use super::{MAX_WRITE_BATCH, Pace, STEP_BYTES, STEP_TIME, WriteError};
use crate::catalog::Collection;
use crate::context::Context;
use crate::database::{Engine, Inner, Written};
use crate::document::{get, validated};
use crate::error::{Code, Error, Result};
use crate::namespace::Namespace;
use crate::series::Change;
use crate::statement::{BLOCKED, Statement, UpdateKind, id_of};
use crate::update;
use bson::oid::ObjectId;
use bson::{RawBson, RawDocument, RawDocumentBuf, rawdoc};
use bytes::Bytes;
use std::sync::Arc;
use std::time::Instant;

/// How often an upsert that lost a race tries again.
const MAX_UPSERT_ATTEMPTS: usize = 100;

/// A batch of updates.
#[derive(Clone, Debug)]
pub struct Update {
    /// Where.
    pub namespace: Namespace,
    /// The updates.
    pub statements: Vec<UpdateStatement>,
    /// Whether to stop at the first that fails.
    pub ordered: bool,
    /// Whether the validator is passed by.
    pub bypass_document_validation: bool,
    /// `stmtIds`; the position in the batch when empty.
    pub statement_ids: Vec<i32>,
}

/// One update.
#[derive(Clone, Debug)]
pub struct UpdateStatement {
    /// Which documents. Its skip and limit are not used.
    pub query: Query,
    /// Operators, a replacement or a pipeline.
    pub update: RawBson,
    /// Whether all that match are changed, or the first.
    pub multi: bool,
    /// Whether a document is inserted when none matches.
    pub upsert: bool,
    /// `arrayFilters`.
    pub array_filters: Vec<RawDocumentBuf>,
}

/// What was updated.
#[derive(Debug, Default)]
pub struct UpdateReply {
    /// How many documents matched or were inserted.
    pub n: usize,
    /// How many changed.
    pub n_modified: usize,
    /// The `_id`s that upserts inserted, with the statement's position.
    pub upserted: Vec<(usize, RawBson)>,
    /// Which statements failed.
    pub errors: Vec<WriteError>,
}

/// An update after parsing.
pub(crate) struct Prepared {
    pub(crate) query: Query,
    pub(crate) parsed: Parsed,
    pub(crate) update: update::Update,
    pub(crate) upsert: bool,
    /// What an upsert inserts, where it is not made of the filter and the update.
    pub(crate) instead: Option<RawDocumentBuf>,
    pub(crate) bypass_validation: bool,
}

impl Prepared {
    /// A document that matches, after the update; none if that leaves it as it is.
    pub(super) fn applied(&self, before: &RawDocument) -> Result<Option<RawDocumentBuf>> {
        let environment = &self.parsed.environment;
        let mut context = update::UpdateContext::new(environment, None);
        if self.update.needs_position() {
            context.position = self.parsed.filter.matched_position(before, environment)?.map(|found| found.1);
        }
        self.update.apply(before, &context)
    }
}

/// What became of one document.
pub(crate) struct Changed {
    pub(crate) before: Option<RawDocumentBuf>,
    pub(crate) after: RawDocumentBuf,
    pub(crate) modified: bool,
}

/// How a statement that changes one document ended; `None` when nothing matched.
pub(crate) type ChangedOne = Option<Changed>;

impl Engine {
    /// Updates documents.
    ///
    /// # Errors
    /// What concerns the whole batch; a single statement's failure stands in the reply, except in a transaction.
    pub fn update(&self, context: &Context, update: &Update) -> Result<Written<UpdateReply>> {
        self.inner.update(context, update)
    }
}

impl Inner {
    fn update(self: &Arc<Inner>, context: &Context, update: &Update) -> Result<Written<UpdateReply>> {
        let count = update.statements.len();
        if count == 0 || count > MAX_WRITE_BATCH {
            return Err(Error::new(
                Code::INVALID_LENGTH,
                format!("Write batch sizes must be between 1 and {MAX_WRITE_BATCH}. Got {count} operations."),
            ));
        }
        super::insert::refuse_system(&update.namespace)?;
        let mut reply = UpdateReply::default();
        let mut ticket = self.storage.ticket(0);
        for (index, statement) in update.statements.iter().enumerate() {
            context.check()?;
            let statement_id = update.statement_ids.get(index).copied().unwrap_or(index as i32) as u32;
            let begun = context.monitor.begin_statement();
            let done = self.update_statement(context, update, statement, statement_id);
            if let Ok(done) = &done {
                context.monitor.end_statement(begun, index, done.reply.n, done.reply.n_modified);
            }
            match done {
                Ok(done) => {
                    ticket = done.ticket;
                    reply.n += done.reply.n;
                    reply.n_modified += done.reply.n_modified;
                    reply.upserted.extend(done.reply.upserted.map(|id| (index, id)));
                    if let Some(error) = done.reply.error {
                        reply.errors.push(WriteError { index, error });
                    }
                }
                Err(error) if context.transaction().is_some() || is_whole(error.code) => return Err(error),
                Err(error) => reply.errors.push(WriteError { index, error }),
            }
            if update.ordered && !reply.errors.is_empty() {
                break;
            }
        }
        Ok(Written { reply, ticket })
    }

    fn update_statement(
        self: &Arc<Inner>,
        context: &Context,
        update: &Update,
        statement: &UpdateStatement,
        statement_id: u32,
    ) -> Result<Written<StatementReply>> {
        let collection = self.catalog_for_write(context)?.get(&update.namespace).cloned();
        let series = collection.as_ref().filter(|collection| collection.settings.series.is_some());
        if let Some(series) = series {
            return self.update_series(context, series, statement);
        }
        let mut prepared = self.prepare_update(statement, collection.as_deref())?;
        prepared.bypass_validation = update.bypass_document_validation;
        if statement.multi {
            if context.retryable().is_some() {
                return Err(Error::new(
                    Code::INVALID_OPTIONS,
                    "Cannot use retryable writes with multi=true; leave txnNumber away",
                ));
            }
            return context.block(|| self.update_many(context, &update.namespace, &prepared));
        }
        let describe = |changed: &ChangedOne| StatementReply::one(changed).to_record();
        let done = self.change_one(context, &update.namespace, &prepared, statement_id, &describe)?;
        let ticket = done.ticket;
        let reply = match done.reply {
            Done::Now(changed) => StatementReply::one(&changed),
            Done::Before(record) => StatementReply::from_record(&record),
        };
        Ok(Written { reply, ticket })
    }

    /// Changes the meta values of a time series.
    fn update_series(
        self: &Arc<Inner>,
        context: &Context,
        collection: &Arc<Collection>,
        statement: &UpdateStatement,
    ) -> Result<Written<StatementReply>> {
        crate::series::check_update(collection, statement)?;
        let prepared = self.prepare_update(statement, Some(collection))?;
        let environment = &prepared.parsed.environment;
        let change =
            |before: &RawDocument| prepared.update.apply(before, &update::UpdateContext::new(environment, None));
        let change = Change::Update(&change);
        let done = self.change_measurements(context, collection, &statement.query, true, &change, None)?;
        let reply =
            StatementReply { n: done.reply.matched, n_modified: done.reply.changed, ..StatementReply::default() };
        Ok(Written { reply, ticket: done.ticket })
    }

    /// Parses one update.
    pub(crate) fn prepare_update(
        &self,
        statement: &UpdateStatement,
        collection: Option<&Collection>,
    ) -> Result<Prepared> {
        let mut parsed = self.parse_query(&statement.query, collection)?;
        let filters: Vec<&RawDocument> = statement.array_filters.iter().map(|filter| &**filter).collect();
        let collator = parsed.collator.clone();
        let update = update::Update::parse((&statement.update).into(), &filters, &mut parsed.parser, collator)?;
        if statement.multi && update.is_replacement() {
            return Err(Error::failed_to_parse("multi update is not supported for replacement-style update"));
        }
        Ok(Prepared {
            query: statement.query.clone(),
            parsed,
            update,
            upsert: statement.upsert,
            instead: None,
            bypass_validation: false,
        })
    }

    /// Changes the first document that matches, or upserts; a repeated retryable statement gives its recorded result.
    pub(crate) fn change_one(
        self: &Arc<Inner>,
        context: &Context,
        namespace: &Namespace,
        prepared: &Prepared,
        statement_id: u32,
        describe: &dyn Fn(&ChangedOne) -> RawDocumentBuf,
    ) -> Result<Written<Done>> {
        let mut attempts = 0;
        loop {
            let once = OneChange { engine: self, context, namespace, prepared, statement_id, describe };
            match once.run() {
                Err(error)
                    if prepared.upsert && error.code == Code::DUPLICATE_KEY && attempts < MAX_UPSERT_ATTEMPTS =>
                {
                    if context.transaction().is_some() || !lost_a_race(&error, prepared) {
                        return Err(error);
                    }
                    attempts += 1;
                }
                done => return done,
            }
        }
    }

    fn update_many(
        self: &Arc<Inner>,
        context: &Context,
        namespace: &Namespace,
        prepared: &Prepared,
    ) -> Result<Written<StatementReply>> {
        let (reading, mut ticket) = self.reading_for_write(context)?;
        let mut reply = StatementReply::default();
        if let Some(collection) = reading.catalog.get(namespace) {
            crate::statement::refuse_view(collection)?;
            let mut candidates =
                self.all_candidates(&reading, collection, &prepared.query, &prepared.parsed, context)?;
            let mut pace = Pace::default();
            loop {
                let keys = candidates.next()?;
                if keys.is_empty() {
                    break;
                }
                let mut next = 0;
                while next < keys.len() {
                    context.check()?;
                    let step = self.write_step(context, |statement| {
                        statement.bypass_validation = prepared.bypass_validation;
                        update_step(statement, collection.id, namespace, prepared, &keys[next..])
                    })?;
                    pace.step(&step.ticket)?;
                    ticket = step.ticket;
                    next += step.reply.seen;
                    reply.n += step.reply.n;
                    reply.n_modified += step.reply.n_modified;
                    if step.reply.error.is_some() {
                        reply.error = step.reply.error;
                        return Ok(Written { reply, ticket });
                    }
                }
            }
        }
        if reply.n == 0 && prepared.upsert {
            let describe = |_: &ChangedOne| RawDocumentBuf::new();
            let done = self.change_one(context, namespace, prepared, 0, &describe)?;
            if let Done::Now(changed) = done.reply {
                reply = StatementReply::one(&changed);
            }
            ticket = done.ticket;
        }
        Ok(Written { reply, ticket })
    }
}

/// Whether an upsert's duplicate key may come from another upsert of the same filter: then the document is there now.
fn lost_a_race(error: &Error, prepared: &Prepared) -> bool {
    let Some(pattern) =
        error.details.as_ref().and_then(|details| details.extra.as_ref()?.get_document("keyPattern").ok())
    else {
        return false;
    };
    let Ok(equalities) = prepared.parsed.filter.equalities() else { return false };
    pattern.iter().flatten().all(|(name, _)| equalities.iter().any(|(path, _)| path.as_str() == name.as_str()))
}

/// Errors that end the whole command rather than one statement.
fn is_whole(code: Code) -> bool {
    [Code::MAX_TIME_MS_EXPIRED, Code::INTERRUPTED, Code::INTERRUPTED_AT_SHUTDOWN, Code::COMMAND_NOT_SUPPORTED_ON_VIEW]
        .contains(&code)
}

/// A single-document change on its way.
struct OneChange<'o> {
    engine: &'o Arc<Inner>,
    context: &'o Context,
    namespace: &'o Namespace,
    prepared: &'o Prepared,
    statement_id: u32,
    describe: &'o dyn Fn(&ChangedOne) -> RawDocumentBuf,
}

/// A change that was made now, or the record of one made before.
pub(crate) enum Done {
    Now(ChangedOne),
    Before(RawDocumentBuf),
}

impl OneChange<'_> {
    fn run(&self) -> Result<Written<Done>> {
        let prepared = self.prepared;
        let id = exact_id(&prepared.query.filter);
        let catalog = self.engine.catalog_for_write(self.context)?;
        let collection = catalog.get(self.namespace).cloned();
        if let Some(collection) = &collection {
            crate::statement::refuse_view(collection)?;
        }
        let direct = id.filter(|_| {
            let default = collection.as_ref().and_then(|c| c.settings.collation.as_ref());
            prepared.query.hint.is_none() && same_collation(prepared.parsed.collator.as_ref(), default)
        });
        if let Some(id) = direct {
            return self.write(|statement| {
                let Some(collection) = statement.catalog.get(self.namespace).cloned() else { return Ok(None) };
                let record_key = statement.find_id(&collection, id)?;
                self.context.monitor.note_point_read(record_key.is_some());
                match record_key {
                    Some(record_key) => self.change(statement, &collection, &record_key),
                    None => Ok(None),
                }
            });
        }
        if collection.is_some() { self.try_candidates() } else { self.write(|_| Ok(None)) }
    }

    /// Tries what matched in a view of everything executed so far, one document after the other.
    fn try_candidates(&self) -> Result<Written<Done>> {
        let prepared = self.prepared;
        let (reading, _) = self.engine.reading_for_write(self.context)?;
        if let Some(collection) = reading.catalog.get(self.namespace).cloned() {
            let mut rows =
                self.engine.candidates(&reading, &collection, &prepared.query, &prepared.parsed, self.context)?;
            while let Some(row) = rows.next()? {
                self.context.check()?;
                let record_key = row.record.clone().expect("a candidate has its record key");
                let tried = self
                    .engine
                    .write(self.context, |statement| self.try_change(statement, collection.id, &record_key))?;
                if let Some(done) = tried.reply {
                    return Ok(Written { reply: done, ticket: tried.ticket });
                }
            }
        }
        self.write(|_| Ok(None))
    }

    /// Changes one candidate, unless it does not match any more.
    fn try_change(
        &self,
        statement: &mut Statement<'_>,
        collection_id: u32,
        record_key: &Bytes,
    ) -> Result<Option<Done>> {
        if let Some(before) = self.recorded(statement)? {
            return Ok(Some(Done::Before(before)));
        }
        let Some(collection) = statement.catalog.by_id(collection_id).cloned() else { return Ok(None) };
        statement.bypass_validation = self.prepared.bypass_validation;
        let changed = self.change(statement, &collection, record_key)?;
        if changed.is_none() {
            return Ok(None);
        }
        self.record(statement, &changed);
        Ok(Some(Done::Now(changed)))
    }

    /// Runs `find` under the writer lock; upserts when it finds nothing.
    fn write(&self, find: impl Fn(&mut Statement<'_>) -> Result<ChangedOne>) -> Result<Written<Done>> {
        self.engine.write(self.context, |statement| {
            if let Some(before) = self.recorded(statement)? {
                return Ok(Done::Before(before));
            }
            statement.bypass_validation = self.prepared.bypass_validation;
            let mut changed = find(statement)?;
            if changed.is_none() && self.prepared.upsert {
                changed = Some(self.upsert(statement)?);
            }
            self.record(statement, &changed);
            Ok(Done::Now(changed))
        })
    }

    fn recorded(&self, statement: &Statement<'_>) -> Result<Option<RawDocumentBuf>> {
        match self.context.retryable() {
            Some((session, number)) => self.engine.recorded(statement.view(), session, number, self.statement_id),
            None => Ok(None),
        }
    }

    fn record(&self, statement: &mut Statement<'_>, changed: &ChangedOne) {
        if let (Some((session, number)), true) = (self.context.retryable(), changed.is_some()) {
            let record = (self.describe)(changed);
            self.engine.record(statement, session, number, self.statement_id, &record);
        }
    }

    fn change(
        &self,
        statement: &mut Statement<'_>,
        collection: &Arc<Collection>,
        record_key: &Bytes,
    ) -> Result<ChangedOne> {
        change(statement, collection, record_key, self.prepared)
    }

    fn upsert(&self, statement: &mut Statement<'_>) -> Result<Changed> {
        let prepared = self.prepared;
        let equalities = prepared.parsed.filter.equalities()?;
        let context =
            update::UpdateContext { inserting: true, ..update::UpdateContext::new(&prepared.parsed.environment, None) };
        let document = match &prepared.instead {
            Some(document) => document.clone(),
            None => validated(update::upsert_document(&equalities, &prepared.update, &context, ObjectId::new)?)?,
        };
        let collection = statement.collection_or_create(self.namespace)?;
        statement.insert(&collection, document.clone())?;
        Ok(Changed { before: None, after: document, modified: true })
    }
}

/// Changes the document under a record key, if it is still there and still matches.
pub(crate) fn change(
    statement: &mut Statement<'_>,
    collection: &Arc<Collection>,
    record_key: &Bytes,
    prepared: &Prepared,
) -> Result<ChangedOne> {
    let Some(bytes) = statement.read(collection, record_key)? else { return Ok(None) };
    let before = RawDocument::from_bytes(&bytes)?;
    let environment = &prepared.parsed.environment;
    if !prepared.parsed.filter.matches(before, environment)? {
        return Ok(None);
    }
    let (after, modified) = match prepared.applied(before)? {
        Some(after) => {
            let kind = if prepared.update.is_replacement() { UpdateKind::Replace } else { UpdateKind::Update };
            (statement.update(collection, record_key, before, after, kind)?, true)
        }
        None => (before.to_owned(), false),
    };
    Ok(Some(Changed { before: Some(before.to_owned()), after, modified }))
}

#[derive(Default)]
struct ManyStep {
    seen: usize,
    n: usize,
    n_modified: usize,
    error: Option<Error>,
}

fn update_step(
    statement: &mut Statement<'_>,
    collection_id: u32,
    namespace: &Namespace,
    prepared: &Prepared,
    keys: &[Bytes],
) -> Result<ManyStep> {
    let mut step = ManyStep::default();
    let began = Instant::now();
    for key in keys {
        if statement.size_bytes() >= STEP_BYTES || (step.seen > 0 && began.elapsed() >= STEP_TIME) {
            break;
        }
        step.seen += 1;
        let Some(collection) = statement.catalog.get(namespace).filter(|found| found.id == collection_id).cloned()
        else {
            continue;
        };
        match statement.atomically(|statement| change(statement, &collection, key, prepared)) {
            Ok(Some(changed)) => {
                step.n += 1;
                step.n_modified += usize::from(changed.modified);
            }
            Ok(None) => {}
            Err(error) if error.code == BLOCKED && step.seen > 1 => {
                step.seen -= 1;
                break;
            }
            Err(error) if error.code == BLOCKED || error.code == Code::WRITE_CONFLICT => return Err(error),
            Err(error) => {
                step.error = Some(error);
                break;
            }
        }
    }
    Ok(step)
}

/// One statement's part of the reply.
#[derive(Default)]
struct StatementReply {
    n: usize,
    n_modified: usize,
    upserted: Option<RawBson>,
    error: Option<Error>,
}

impl StatementReply {
    fn one(changed: &ChangedOne) -> StatementReply {
        let Some(changed) = changed else { return StatementReply::default() };
        let upserted = match &changed.before {
            Some(_) => None,
            None => id_of(&changed.after).ok().map(RawBson::from),
        };
        let n_modified = usize::from(changed.modified && upserted.is_none());
        StatementReply { n: 1, n_modified, upserted, error: None }
    }

    fn to_record(&self) -> RawDocumentBuf {
        let mut record = rawdoc! { "n": self.n as i64, "m": self.n_modified as i64 };
        if let Some(id) = &self.upserted {
            record.append(bson::raw::cstr!("u"), id.as_raw_bson_ref());
        }
        record
    }

    fn from_record(record: &RawDocument) -> StatementReply {
        let number = |name| record.get_i64(name).unwrap_or(0) as usize;
        let upserted = get(record, "u").ok().flatten().map(RawBson::from);
        StatementReply { n: number("n"), n_modified: number("m"), upserted, error: None }
    }
}
