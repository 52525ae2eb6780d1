//! Partial filters: which documents an index holds.

use super::parse::cannot;
use crate::document::collation::Collator;
use crate::error::{Code, Error, Result};
use crate::expression::{Environment, Parser};
use crate::filter::Filter;
use bson::{RawBsonRef, RawDocument, RawDocumentBuf, rawdoc};
use std::sync::Arc;

/// Operators on a field that a partial filter may use.
const FIELD_OPERATORS: &[&str] = &["$eq", "$gt", "$gte", "$lt", "$lte", "$in", "$exists", "$type", "$all"];

/// A checked partial filter.
#[derive(Debug)]
pub struct Partial {
    document: RawDocumentBuf,
    clauses: Vec<RawDocumentBuf>,
    filter: Filter,
    environment: Environment,
}

impl Partial {
    /// Parses a partial filter.
    ///
    /// # Errors
    /// `CannotCreateIndex` (67) for operators that it may not use, `BadValue` (2) for malformed filters, `QueryFeatureNotAllowed`
    /// (224) for `$expr`.
    pub fn parse(document: &RawDocument, collator: Option<Arc<Collator>>) -> Result<Partial> {
        check(document)?;
        let mut clauses = Vec::new();
        flatten(document, &mut clauses)?;
        clauses.sort_by(|a, b| a.as_bytes().cmp(b.as_bytes()));
        let filter = Filter::parse(document, &mut Parser::new(), collator.clone())?;
        let environment = Environment { collator, ..Environment::fixed() };
        Ok(Partial { document: document.to_owned(), clauses, filter, environment })
    }

    /// The filter as given.
    pub fn document(&self) -> &RawDocument {
        &self.document
    }

    /// Whether the index holds a document.
    ///
    /// # Errors
    /// `InvalidBSON` (22) when the bytes are malformed.
    pub fn matches(&self, document: &RawDocument) -> Result<bool> {
        self.filter.matches(document, &self.environment)
    }

    /// The parsed filter.
    pub fn filter(&self) -> &Filter {
        &self.filter
    }

    /// Its conditions, all of which must hold, in a fixed order: equal filters have equal clauses.
    pub fn clauses(&self) -> &[RawDocumentBuf] {
        &self.clauses
    }
}

/// Breaks conjunctions up.
fn flatten(document: &RawDocument, clauses: &mut Vec<RawDocumentBuf>) -> Result<()> {
    for field in document {
        let (name, value) = field?;
        match (name.as_str(), value) {
            ("$and", RawBsonRef::Array(array)) => {
                for inner in array {
                    if let RawBsonRef::Document(inner) = inner? {
                        flatten(inner, clauses)?;
                    }
                }
            }
            (name, value) => {
                let mut clause = rawdoc! {};
                crate::document::append(&mut clause, name, value)?;
                clauses.push(clause);
            }
        }
    }
    Ok(())
}

fn check(document: &RawDocument) -> Result<()> {
    for field in document {
        let (name, value) = field?;
        match name.as_str() {
            "$and" | "$or" => {
                let Some(array) = value.as_array() else {
                    return Err(Error::bad_value(format!("{} argument must be an array", name.as_str())));
                };
                let mut empty = true;
                for inner in array {
                    empty = false;
                    let inner = inner?;
                    let inner = inner
                        .as_document()
                        .ok_or_else(|| Error::bad_value("$or/$and/$nor entries need to be full objects"))?;
                    check(inner)?;
                }
                if empty {
                    return Err(Error::bad_value("$and/$or/$nor must be a nonempty array"));
                }
            }
            "$expr" => {
                return Err(Error::new(
                    Code::QUERY_FEATURE_NOT_ALLOWED,
                    "$expr is not supported in a partial filter expression",
                ));
            }
            "$where" | "$text" => {
                return Err(Error::bad_value(format!(
                    "{} is not allowed in a partial filter expression",
                    name.as_str()
                )));
            }
            "$comment" => {}
            name if name.starts_with('$') => return Err(unsupported(name)),
            _ => check_field(value)?,
        }
    }
    Ok(())
}

fn check_field(value: RawBsonRef<'_>) -> Result<()> {
    if matches!(value, RawBsonRef::RegularExpression(_)) {
        return Err(unsupported("$regex"));
    }
    let RawBsonRef::Document(document) = value else { return Ok(()) };
    let is_operators = match document.iter().next() {
        Some(first) => first?.0.as_str().starts_with('$'),
        None => false,
    };
    if !is_operators {
        return Ok(());
    }
    for field in document {
        let (name, value) = field?;
        let name = name.as_str();
        let truth = crate::document::Value::Borrowed(value).is_true();
        if !FIELD_OPERATORS.contains(&name) || (name == "$exists" && !truth) {
            return Err(unsupported(name));
        }
        if let ("$in", RawBsonRef::Array(array)) = (name, value) {
            for element in array {
                if matches!(element?, RawBsonRef::RegularExpression(_)) {
                    return Err(unsupported("$regex"));
                }
            }
        }
    }
    Ok(())
}

fn unsupported(name: &str) -> Error {
    cannot(format!(
        "Expression not supported in partial index: {name}. Use equality, $gt, $gte, $lt, $lte, $in, $exists: true, $type, $and, $or"
    ))
}
