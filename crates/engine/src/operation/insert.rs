//! `insert`: new documents, each for itself all or nothing.

use super::{MAX_WRITE_BATCH, STEP_BYTES, STEP_TIME, STEP_WRITES, WriteError};
use crate::context::Context;
use crate::database::{Engine, Inner, Written};
use crate::document::validated;
use crate::error::{Code, Error, Result};
use crate::namespace::Namespace;
use crate::statement::{BLOCKED, Statement};
use bson::{RawDocumentBuf, rawdoc};
use std::time::Instant;

/// After so many documents that are looked through, others may run: a large batch takes milliseconds.
const DOCUMENTS_A_TURN: usize = 64;

/// Documents to insert.
#[derive(Clone, Debug)]
pub struct Insert {
    /// Where; the collection is created if it isn't there.
    pub namespace: Namespace,
    /// The documents.
    pub documents: Vec<RawDocumentBuf>,
    /// Whether to stop at the first that fails.
    pub ordered: bool,
    /// Whether the validator is passed by.
    pub bypass_document_validation: bool,
    /// `stmtIds`; the position in the batch when empty.
    pub statement_ids: Vec<i32>,
}

/// What was inserted.
#[derive(Debug, Default)]
pub struct InsertReply {
    /// How many documents.
    pub n: usize,
    /// Which failed.
    pub errors: Vec<WriteError>,
}

impl Engine {
    /// Inserts documents.
    ///
    /// # Errors
    /// What concerns the whole batch; a single document's failure stands in the reply, except in a transaction.
    pub fn insert(&self, context: &Context, insert: Insert) -> Result<Written<InsertReply>> {
        self.inner.insert(context, insert)
    }
}

impl Inner {
    fn insert(&self, context: &Context, mut insert: Insert) -> Result<Written<InsertReply>> {
        let count = insert.documents.len();
        if count == 0 || count > MAX_WRITE_BATCH {
            return Err(Error::new(
                Code::INVALID_LENGTH,
                format!("Write batch sizes must be between 1 and {MAX_WRITE_BATCH}. Got {count} operations."),
            ));
        }
        refuse_system(&insert.namespace)?;
        let documents = std::mem::take(&mut insert.documents).into_iter();
        let validated = documents.enumerate().map(|(index, document)| {
            if index % DOCUMENTS_A_TURN == DOCUMENTS_A_TURN - 1 {
                std::thread::yield_now();
            }
            validated(document)
        });
        let documents: Vec<Result<RawDocumentBuf>> = validated.collect();
        let mut reply = InsertReply::default();
        let mut ticket = self.storage.ticket(0);
        let mut next = 0;
        while next < count {
            context.check()?;
            let run = |statement: &mut Statement<'_>| {
                statement.bypass_validation = insert.bypass_document_validation;
                self.insert_step(context, statement, &insert, &documents, next)
            };
            let step = if count > 1 { self.write_step(context, run) } else { self.write(context, run) }?;
            ticket = step.ticket;
            reply.n += step.reply.inserted;
            let failed = step.reply.error.is_some();
            reply.errors.extend(step.reply.error.map(|error| WriteError { index: step.reply.next - 1, error }));
            next = step.reply.next;
            if failed && insert.ordered {
                break;
            }
        }
        Ok(Written { reply, ticket })
    }

    /// Inserts until a failure, the end, or the bounds of a step.
    fn insert_step(
        &self,
        context: &Context,
        statement: &mut Statement<'_>,
        insert: &Insert,
        documents: &[Result<RawDocumentBuf>],
        from: usize,
    ) -> Result<Step> {
        let mut step = Step { inserted: 0, next: from, error: None };
        let collection = statement.collection_or_create(&insert.namespace)?;
        let began = Instant::now();
        while step.next < documents.len() && step.next - from < STEP_WRITES && statement.size_bytes() < STEP_BYTES {
            if step.next > from && began.elapsed() >= STEP_TIME {
                break;
            }
            let index = step.next;
            step.next += 1;
            let statement_id = insert.statement_ids.get(index).copied().unwrap_or(index as i32) as u32;
            if let Some((session, number)) = context.retryable()
                && self.recorded(statement.view(), session, number, statement_id)?.is_some()
            {
                step.inserted += 1;
                continue;
            }
            let inserted = documents[index].clone().and_then(|document| {
                statement.atomically(|statement| {
                    statement.insert(&collection, document)?;
                    if let Some((session, number)) = context.retryable() {
                        self.record(statement, session, number, statement_id, &rawdoc! { "n": 1 });
                    }
                    Ok(())
                })
            });
            match inserted {
                Ok(()) => step.inserted += 1,
                Err(error) if error.code == BLOCKED || context.transaction().is_some() => return Err(error),
                Err(error) => {
                    step.error = Some(error);
                    break;
                }
            }
        }
        Ok(step)
    }
}

struct Step {
    inserted: usize,
    next: usize,
    error: Option<Error>,
}

/// Refuses client writes to the server's own collections.
pub(super) fn refuse_system(namespace: &Namespace) -> Result<()> {
    let open = ["system.js", "system.profile", "system.users", "system.roles", "system.version"];
    if namespace.is_system() && !open.contains(&namespace.collection.as_str()) {
        return Err(Error::new(Code::INVALID_NAMESPACE, format!("cannot write to '{namespace}'")));
    }
    Ok(())
}
