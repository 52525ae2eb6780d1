//! `delete`: documents that match go, one or all.

use super::read::{Parsed, Query};
use super::{MAX_WRITE_BATCH, Pace, STEP_BYTES, STEP_TIME, WriteError};
use crate::context::Context;
use crate::database::{Engine, Inner, Written};
use crate::error::{Code, Error, Result};
use crate::namespace::Namespace;
use crate::series::Change;
use crate::statement::Statement;
use bson::{RawDocument, RawDocumentBuf, rawdoc};
use bytes::Bytes;
use std::sync::Arc;
use std::time::Instant;

/// A batch of deletes.
#[derive(Clone, Debug)]
pub struct Delete {
    /// Where.
    pub namespace: Namespace,
    /// The deletes.
    pub statements: Vec<DeleteStatement>,
    /// Whether to stop at the first that fails.
    pub ordered: bool,
    /// `stmtIds`; the position in the batch when empty.
    pub statement_ids: Vec<i32>,
}

/// One delete.
#[derive(Clone, Debug)]
pub struct DeleteStatement {
    /// Which documents. Its skip and limit are not used.
    pub query: Query,
    /// Whether all that match go, or the first.
    pub multi: bool,
}

/// What was deleted.
#[derive(Debug, Default)]
pub struct DeleteReply {
    /// How many documents.
    pub n: usize,
    /// Which statements failed.
    pub errors: Vec<WriteError>,
}

impl Engine {
    /// Deletes documents.
    ///
    /// # Errors
    /// What concerns the whole batch; a single statement's failure stands in the reply, except in a transaction.
    pub fn delete(&self, context: &Context, delete: &Delete) -> Result<Written<DeleteReply>> {
        self.inner.delete(context, delete)
    }
}

impl Inner {
    fn delete(self: &Arc<Inner>, context: &Context, delete: &Delete) -> Result<Written<DeleteReply>> {
        let count = delete.statements.len();
        if count == 0 || count > MAX_WRITE_BATCH {
            return Err(Error::new(
                Code::INVALID_LENGTH,
                format!("Write batch sizes must be between 1 and {MAX_WRITE_BATCH}. Got {count} operations."),
            ));
        }
        super::insert::refuse_system(&delete.namespace)?;
        let mut reply = DeleteReply::default();
        let mut ticket = self.storage.ticket(0);
        for (index, statement) in delete.statements.iter().enumerate() {
            context.check()?;
            let statement_id = delete.statement_ids.get(index).copied().unwrap_or(index as i32) as u32;
            let begun = context.monitor.begin_statement();
            let done = if statement.multi {
                context.block(|| self.delete_many(context, &delete.namespace, &statement.query))
            } else {
                self.delete_one(context, &delete.namespace, &statement.query, statement_id, &|_| rawdoc! {}).map(
                    |done| Written { reply: usize::from(!matches!(done.reply, Deleted::Nothing)), ticket: done.ticket },
                )
            };
            if let Ok(done) = &done {
                context.monitor.end_statement(begun, index, done.reply, done.reply);
            }
            match done {
                Ok(done) => {
                    ticket = done.ticket;
                    reply.n += done.reply;
                }
                Err(error) if context.transaction().is_some() || ends_all(error.code) => return Err(error),
                Err(error) => {
                    reply.errors.push(WriteError { index, error });
                    if delete.ordered {
                        break;
                    }
                }
            }
        }
        Ok(Written { reply, ticket })
    }

    /// Deletes all that match, in bounded steps, up to the first that fails.
    pub(crate) fn delete_many(
        self: &Arc<Inner>,
        context: &Context,
        namespace: &Namespace,
        query: &Query,
    ) -> Result<Written<usize>> {
        self.delete_each(context, namespace, query, &mut Err)
    }

    /// Deletes all that match, in bounded steps; where a document can't be deleted, `failed` says whether to go on.
    pub(crate) fn delete_each(
        self: &Arc<Inner>,
        context: &Context,
        namespace: &Namespace,
        query: &Query,
        failed: &mut dyn FnMut(Error) -> Result<()>,
    ) -> Result<Written<usize>> {
        if context.retryable().is_some() {
            return Err(Error::new(
                Code::INVALID_OPTIONS,
                "Cannot use retryable writes with limit=0; leave txnNumber away",
            ));
        }
        let (reading, mut ticket) = self.reading_for_write(context)?;
        let mut deleted = 0;
        let series = reading.catalog.get(namespace).filter(|collection| collection.settings.series.is_some());
        if let Some(series) = series {
            let done = self.change_measurements(context, series, query, true, &Change::Delete, None)?;
            return Ok(Written { reply: done.reply.changed, ticket: done.ticket });
        }
        let Some(collection) = reading.catalog.get(namespace) else {
            self.parse_query(query, None)?;
            return Ok(Written { reply: 0, ticket });
        };
        crate::statement::refuse_view(collection)?;
        let parsed = self.parse_query(query, Some(collection))?;
        let mut candidates = self.all_candidates(&reading, collection, query, &parsed, context)?;
        let mut pace = Pace::default();
        loop {
            let keys = candidates.next()?;
            if keys.is_empty() {
                return Ok(Written { reply: deleted, ticket });
            }
            let mut next = 0;
            while next < keys.len() {
                context.check()?;
                let step =
                    self.write_step(context, |statement| delete_step(statement, collection.id, &parsed, &keys[next..]));
                let step = match step {
                    Ok(step) => step,
                    Err(error) => {
                        failed(error)?;
                        next += 1;
                        continue;
                    }
                };
                pace.step(&step.ticket)?;
                ticket = step.ticket;
                next += step.reply.0;
                deleted += step.reply.1;
            }
        }
    }

    /// Deletes the first that matches; gives it. A repeated retryable statement gives its recorded result.
    pub(crate) fn delete_one(
        self: &Arc<Inner>,
        context: &Context,
        namespace: &Namespace,
        query: &Query,
        statement_id: u32,
        describe: &dyn Fn(&RawDocument) -> RawDocumentBuf,
    ) -> Result<Written<Deleted>> {
        let (reading, _) = self.reading_for_write(context)?;
        let collection = reading.catalog.get(namespace);
        if let Some(collection) = collection {
            crate::statement::refuse_view(collection)?;
        }
        let parsed = self.parse_query(query, collection.map(|collection| &**collection))?;
        let recorded = |statement: &Statement<'_>| match context.retryable() {
            Some((session, number)) => self.recorded(statement.view(), session, number, statement_id),
            None => Ok(None),
        };
        let series = collection.filter(|collection| collection.settings.series.is_some());
        if let Some(series) = series {
            let before = self.write(context, |statement| recorded(statement))?;
            if let Some(record) = before.reply {
                return Ok(Written { reply: Deleted::Before(record), ticket: before.ticket });
            }
            let beside = |statement: &mut Statement<'_>, document: &RawDocument| {
                if let Some((session, number)) = context.retryable() {
                    self.record(statement, session, number, statement_id, &describe(document));
                }
            };
            let done = self.change_measurements(context, series, query, false, &Change::Delete, Some(&beside))?;
            let reply = done.reply.first.map_or(Deleted::Nothing, Deleted::Now);
            return Ok(Written { reply, ticket: done.ticket });
        }
        if let Some(collection) = collection {
            let mut rows = self.candidates(&reading, collection, query, &parsed, context)?;
            while let Some(row) = rows.next()? {
                context.check()?;
                let key = row.record.clone().expect("a candidate has its record key");
                let tried = self.write(context, |statement| {
                    if let Some(record) = recorded(statement)? {
                        return Ok(Deleted::Before(record));
                    }
                    let Some(before) = delete_if_matching(statement, collection.id, &parsed, &key)? else {
                        return Ok(Deleted::Nothing);
                    };
                    if let Some((session, number)) = context.retryable() {
                        self.record(statement, session, number, statement_id, &describe(&before));
                    }
                    Ok(Deleted::Now(before))
                })?;
                if !matches!(tried.reply, Deleted::Nothing) {
                    return Ok(tried);
                }
            }
        }
        self.write(context, |statement| Ok(recorded(statement)?.map_or(Deleted::Nothing, Deleted::Before)))
    }
}

/// How a delete of one document ended.
pub(crate) enum Deleted {
    Nothing,
    Now(RawDocumentBuf),
    Before(RawDocumentBuf),
}

/// Deletes documents until one fails, the end, or the bounds of a step; fails only if the first does.
fn delete_step(
    statement: &mut Statement<'_>,
    collection: u32,
    parsed: &Parsed,
    keys: &[Bytes],
) -> Result<(usize, usize)> {
    let (mut seen, mut deleted) = (0, 0);
    let began = Instant::now();
    for key in keys {
        if statement.size_bytes() >= STEP_BYTES || (seen > 0 && began.elapsed() >= STEP_TIME) {
            break;
        }
        match statement.atomically(|statement| delete_if_matching(statement, collection, parsed, key)) {
            Err(_) if seen > 0 => break,
            Err(error) => return Err(error),
            Ok(document) => deleted += usize::from(document.is_some()),
        }
        seen += 1;
    }
    Ok((seen, deleted))
}

/// Deletes the document under a record key, if it is still there and still matches.
fn delete_if_matching(
    statement: &mut Statement<'_>,
    collection: u32,
    parsed: &Parsed,
    key: &Bytes,
) -> Result<Option<RawDocumentBuf>> {
    let Some(collection) = statement.catalog.by_id(collection).cloned() else { return Ok(None) };
    let Some(bytes) = statement.read(&collection, key)? else { return Ok(None) };
    let before = RawDocument::from_bytes(&bytes)?;
    if !parsed.filter.matches(before, &parsed.environment)? {
        return Ok(None);
    }
    statement.delete(&collection, key, before)?;
    Ok(Some(before.to_owned()))
}

/// Errors that end the whole command rather than one statement.
fn ends_all(code: Code) -> bool {
    [Code::MAX_TIME_MS_EXPIRED, Code::INTERRUPTED, Code::INTERRUPTED_AT_SHUTDOWN, Code::COMMAND_NOT_SUPPORTED_ON_VIEW]
        .contains(&code)
}
