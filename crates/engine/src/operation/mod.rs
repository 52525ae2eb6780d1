//! The operations that a client can ask for, one file each: typed arguments in, typed replies out.
//!
//! Each is parsed once, refuses here whatever is invalid, finds its candidates on a snapshot, and writes in bounded steps under
//! the writer lock.

mod access;
mod aggregate;
mod capped;
mod collections;
mod count;
mod definition;
mod delete;
mod digest;
mod distinct;
mod explain;
mod find;
mod find_and_modify;
mod indexes;
mod insert;
mod listing;
mod plans;
mod profile;
mod read;
mod reading;
mod reports;
mod scan;
mod shape;
mod sizes;
mod transaction;
mod unique;
mod update;
mod validate;
mod views;

pub use access::PipelineAccess;
pub use aggregate::Aggregate;
pub use count::Count;
pub use definition::{CollectionInfo, Create, Rename};
pub use delete::{Delete, DeleteReply, DeleteStatement};
pub use digest::DatabaseDigest;
pub use distinct::Distinct;
pub use explain::Explain;
pub use find::{DEFAULT_AWAIT, Find};
pub use find_and_modify::{FindAndModify, FindAndModifyReply, Modification};
pub(crate) use indexes::Unfinished;
pub use indexes::{CreateIndexesReply, DropIndexes};
pub use insert::{Insert, InsertReply};
pub use profile::PROFILE_COLLECTION;
pub use read::{Query, is_by_id};
pub(crate) use reading::{SharedView, ViewCell};
pub(crate) use sizes::Estimates;
pub use sizes::Sizes;
pub use update::{Update, UpdateReply, UpdateStatement};
pub use validate::{IndexValidation, Validation};

use crate::document::collation::Collator;
use crate::error::{Error, Result};
use crate::expression::{self, Environment, Parser, Scope};
use crate::storage::Ticket;
use bson::{RawDocument, RawDocumentBuf};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// The most statements in one write command.
pub const MAX_WRITE_BATCH: usize = 100_000;

/// The bytes after which a batch of document writes is committed and the writer lock given up for a moment.
pub(crate) const STEP_BYTES: usize = 1 << 20;

/// The document writes after which it is.
pub(crate) const STEP_WRITES: usize = 500;

/// The time after which it is: what a point writer may have to wait for a large statement beside it.
pub(crate) const STEP_TIME: Duration = Duration::from_micros(250);

/// The steps of a statement that may be executed and not flushed.
const STEPS_AHEAD: usize = 4;

/// Keeps a statement of many steps from running ahead of its flushes, so that others find the log's queue short.
#[derive(Default)]
pub(crate) struct Pace(VecDeque<Ticket>);

impl Pace {
    /// A step was executed: waits until no more than some steps are not flushed.
    ///
    /// # Errors
    /// A failed flush.
    pub(crate) fn step(&mut self, ticket: &Ticket) -> Result<()> {
        self.0.push_back(ticket.at(ticket.position()));
        if self.0.len() <= STEPS_AHEAD {
            return Ok(());
        }
        self.0.pop_front().map_or(Ok(()), |oldest| oldest.wait().map(drop))
    }
}

/// A statement of a batch that failed.
#[derive(Debug)]
pub struct WriteError {
    /// Which statement of the batch.
    pub index: usize,
    /// Why.
    pub error: Error,
}

/// Defines the variables of `let` for the parser, and their values for the environment.
pub(crate) fn bind_variables(
    variables: Option<&RawDocument>,
    parser: &mut Parser,
    environment: &mut Environment,
) -> Result<()> {
    let Some(variables) = variables else { return Ok(()) };
    let nothing = RawDocumentBuf::new();
    let mut values = Vec::new();
    for variable in variables {
        let (name, value) = variable?;
        check_variable(name.as_str())?;
        let expression = expression::parse(value, parser)?;
        if expression::dependencies(&*expression).is_none_or(|fields| !fields.is_empty()) {
            return Err(Error::location(
                4890500,
                "Command let Expression tried to access a field, but this is not allowed because command let expressions \
                 run before the query examines any documents.",
            ));
        }
        values.push((name.as_str(), expression.evaluate(&Scope::new(&nothing, environment))?.into_owned()));
    }
    for (name, value) in values {
        let id = parser.define(name);
        environment.variables.push((id, value));
    }
    Ok(())
}

fn check_variable(name: &str) -> Result<()> {
    let first = name.chars().next().unwrap_or('\0');
    let starts_well = first.is_ascii_lowercase() || !first.is_ascii();
    let rest_is_well = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || !c.is_ascii());
    if starts_well && rest_is_well {
        return Ok(());
    }
    Err(Error::failed_to_parse(format!("'{name}' starts with an invalid character for a user variable name")))
}

/// The collation to use: the operation's own, or the collection's.
pub(crate) fn collator(own: Option<&RawDocument>, default: Option<&Arc<Collator>>) -> Result<Option<Arc<Collator>>> {
    match own {
        Some(document) if document.iter().next().is_some() => Collator::parse(document),
        _ => Ok(default.cloned()),
    }
}
