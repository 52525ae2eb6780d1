//! Update operators: the document after from the document before.

use crate::document::FieldPath;
use crate::document::collation::Collator;
use crate::error::{Code, Error, Result};
use crate::expression::{Environment, Parser};
use bson::oid::ObjectId;
use bson::{RawBson, RawBsonRef, RawDocument, RawDocumentBuf};
use std::sync::Arc;

/// A parsed update.
#[derive(Debug)]
pub struct Update {}

/// What applying an update needs to know.
#[derive(Debug)]
pub struct UpdateContext<'a> {
    /// The operation's environment.
    pub environment: &'a Environment,
    /// The array position that the filter matched.
    pub position: Option<usize>,
    /// Whether a document is being inserted.
    pub inserting: bool,
}

impl<'a> UpdateContext<'a> {
    /// For an existing document.
    pub fn new(environment: &'a Environment, position: Option<usize>) -> UpdateContext<'a> {
        UpdateContext { environment, position, inserting: false }
    }
}

impl Update {
    /// Parses.
    ///
    /// # Errors
    /// Always, for now.
    pub fn parse(_: RawBsonRef<'_>, _: &[&RawDocument], _: &mut Parser, _: Option<Arc<Collator>>) -> Result<Update> {
        Err(Error::new(Code::NOT_IMPLEMENTED, "updates come in the next step"))
    }

    /// Whether it is a replacement.
    pub fn is_replacement(&self) -> bool {
        false
    }

    /// Whether it uses the positional operator.
    pub fn needs_position(&self) -> bool {
        false
    }

    /// Applies.
    ///
    /// # Errors
    /// None, for now.
    pub fn apply(&self, _: &RawDocument, _: &UpdateContext<'_>) -> Result<Option<RawDocumentBuf>> {
        Ok(None)
    }
}

/// What changed.
#[derive(Debug)]
pub struct Description {}

impl Description {
    /// As a document.
    ///
    /// # Errors
    /// None, for now.
    pub fn to_document(&self, _: bool) -> Result<RawDocumentBuf> {
        Ok(RawDocumentBuf::new())
    }
}

/// Describes a change.
///
/// # Errors
/// None, for now.
pub fn describe(_: &RawDocument, _: &RawDocument) -> Result<Description> {
    Ok(Description {})
}

/// The document to insert.
///
/// # Errors
/// None, for now.
pub fn upsert_document(
    _: &[(FieldPath, RawBson)],
    _: &Update,
    _: &UpdateContext<'_>,
    _: impl FnOnce() -> ObjectId,
) -> Result<RawDocumentBuf> {
    Ok(RawDocumentBuf::new())
}
