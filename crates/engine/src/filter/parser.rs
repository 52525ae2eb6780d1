//! From a filter's BSON to its tree: what is an operator, what a field, what an implicit equality.

use super::{Node, UNSUPPORTED, eq, find, regex};
use crate::document::collation::Collator;
use crate::error::{Code, Error, Result};
use crate::expression;
use bson::{RawBsonRef, RawDocument};
use std::sync::Arc;

/// The deepest nesting of `$and`, `$or`, `$nor`, `$not` and `$elemMatch`.
const MAX_FILTER_DEPTH: usize = 100;

/// A row of the operator table.
pub struct Operator {
    /// The name with its `$`.
    pub name: &'static str,
    /// Parses its argument; refuses all that is invalid whatever the document.
    pub parse: Parse,
}

/// Where an operator stands, and how it is parsed there.
pub enum Parse {
    /// In place of a field: `{$and: […]}`.
    Top(fn(RawBsonRef<'_>, &mut Parser<'_>) -> Result<Node>),
    /// Below a field: `{a: {$gt: 1}}`.
    Field(fn(Field<'_>, RawBsonRef<'_>, &mut Parser<'_>) -> Result<Node>),
}

/// The field that an operator stands below.
#[derive(Clone, Copy)]
pub struct Field<'a> {
    /// Its dotted path.
    pub path: &'a str,
    /// All operators of the field, for `$regex` with its `$options`.
    pub operators: &'a RawDocument,
}

/// What a filter is for; some operators have no place in some filters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// A query, a `$match`, the filter of an index.
    Query,
    /// A collection's validator.
    Validator,
    /// The filters of an update's `arrayFilters`.
    ArrayFilters,
    /// An `$elemMatch` in a projection.
    Projection,
}

/// What parsing a filter needs to know.
pub struct Parser<'p> {
    /// For `$expr`: the variables in scope.
    pub expressions: &'p mut expression::Parser,
    /// The collation that strings are compared by.
    pub collator: Option<Arc<Collator>>,
    depth: usize,
    within_elem_match: bool,
    place: Place,
}

impl<'p> Parser<'p> {
    pub(super) fn new(
        expressions: &'p mut expression::Parser,
        collator: Option<Arc<Collator>>,
        place: Place,
    ) -> Parser<'p> {
        Parser { expressions, collator, depth: 0, within_elem_match: false, place }
    }

    /// Parses a whole filter document: the conjunction of its fields.
    ///
    /// # Errors
    /// `BadValue` (2) for an unknown operator, and what the operators refuse.
    pub fn document(&mut self, document: &RawDocument) -> Result<Node> {
        let mut nodes = Vec::new();
        for field in document {
            let (name, value) = field?;
            nodes.push(self.entry(name.as_str(), value)?);
        }
        Ok(Node::and(nodes))
    }

    fn entry(&mut self, name: &str, value: RawBsonRef<'_>) -> Result<Node> {
        if name.starts_with('$') && !matches!(name, "$ref" | "$id" | "$db") {
            self.refuse_by_place(name)?;
            return match find(name).map(|operator| &operator.parse) {
                Some(Parse::Top(parse)) => self.nested(|parser| parse(value, parser)),
                _ => Err(unknown_at_top(name)),
            };
        }
        match value {
            RawBsonRef::RegularExpression(literal) => regex::from_literal(name, literal),
            RawBsonRef::Document(operators) if is_operators(operators)? => self.operators(name, operators),
            value => eq::node(name, value, self),
        }
    }

    /// Parses the operators below a field: their conjunction.
    ///
    /// # Errors
    /// As [`Parser::document`].
    pub fn operators(&mut self, path: &str, operators: &RawDocument) -> Result<Node> {
        let field = Field { path, operators };
        let mut nodes = Vec::new();
        for operator in operators {
            let (name, argument) = operator?;
            self.refuse_by_place(name.as_str())?;
            match find(name.as_str()).map(|operator| &operator.parse) {
                Some(Parse::Field(parse)) => nodes.push(self.nested(|parser| parse(field, argument, parser))?),
                _ => return Err(unknown_below_field(name.as_str())),
            }
        }
        Ok(Node::and(nodes))
    }

    /// Refuses an operator where filters of this kind can't have it.
    fn refuse_by_place(&self, name: &str) -> Result<()> {
        let somewhere_else = self.place != Place::Query;
        match name {
            "$near" | "$nearSphere" | "$geoNear" if somewhere_else => {
                Err(Error::location(5_626_500, format!("{name} is not allowed in this context")))
            }
            "$text" if somewhere_else || self.within_elem_match => {
                Err(Error::bad_value("$text is not allowed in this context"))
            }
            "$expr" if self.place == Place::ArrayFilters => Err(self.not_here(name)),
            "$jsonSchema" if matches!(self.place, Place::ArrayFilters | Place::Projection) => Err(self.not_here(name)),
            _ => Ok(()),
        }
    }

    fn not_here(&self, name: &str) -> Error {
        Error::new(Code::QUERY_FEATURE_NOT_ALLOWED, format!("{name} is not allowed in this context"))
    }

    /// Runs `body` one level deeper.
    ///
    /// # Errors
    /// `BadValue` (2) when the nesting is too deep.
    pub fn nested<T>(&mut self, body: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth >= MAX_FILTER_DEPTH {
            return Err(Error::bad_value(format!(
                "exceeded the query's maximum depth of {MAX_FILTER_DEPTH}: flatten nested $and, $or, $nor, $not and $elemMatch"
            )));
        }
        self.depth += 1;
        let result = body(self);
        self.depth -= 1;
        result
    }

    /// Runs `body` for the condition of an `$elemMatch`, in which some operators have no place.
    ///
    /// # Errors
    /// What `body` returns.
    pub fn elem_match<T>(&mut self, body: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let outer = std::mem::replace(&mut self.within_elem_match, true);
        let result = body(self);
        self.within_elem_match = outer;
        result
    }

    /// Refuses an operator that only the whole document can have.
    ///
    /// # Errors
    /// `BadValue` (2) within an `$elemMatch`.
    pub fn whole_document_only(&self, name: &str) -> Result<()> {
        if self.within_elem_match {
            return Err(Error::bad_value(format!("{name} can only be applied to the top-level document")));
        }
        Ok(())
    }
}

/// Whether a field's value is a set of operators rather than a document to be equal to: its first name has a `$`, and
/// it is no DBRef.
///
/// # Errors
/// `InvalidBSON` (22) when the bytes are malformed.
pub(super) fn is_operators(document: &RawDocument) -> Result<bool> {
    let Some(first) = document.iter().next() else { return Ok(false) };
    Ok(first?.0.as_str().starts_with('$') && !is_db_ref(document)?)
}

fn is_db_ref(document: &RawDocument) -> Result<bool> {
    let (mut reference, mut id) = (false, false);
    for field in document {
        match field?.0.as_str() {
            "$ref" => reference = true,
            "$id" => id = true,
            _ => {}
        }
    }
    Ok(reference && id)
}

fn unsupported(name: &str) -> Option<Error> {
    let (_, code) = UNSUPPORTED.iter().find(|(known, _)| *known == name)?;
    Some(Error::new(*code, format!("the query operator {name} is not supported by Sheaf: see COMPAT.md")))
}

fn unknown_at_top(name: &str) -> Error {
    unsupported(name).unwrap_or_else(|| {
        Error::bad_value(format!(
            "unknown top level operator: {name}. If you have a field name that starts with a '$' symbol, consider using $getField or $setField."
        ))
    })
}

fn unknown_below_field(name: &str) -> Error {
    if name == "$where" {
        return Error::bad_value("$where cannot be applied to a field");
    }
    unsupported(name).unwrap_or_else(|| Error::bad_value(format!("unknown operator: {name}")))
}
