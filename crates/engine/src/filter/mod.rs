//! Query filters: parsed once into a tree, matched against raw bytes.
//!
//! One file per operator: module doc, table row, parsed struct, behaviour, and what the planner wants to know about it.
//! [`OPERATORS`] alone drives parsing, the errors for unknown operators and COMPAT.md. A filter knows neither indexes nor
//! collections; a planner walks [`Node`] and asks each [`Predicate`] for its [`Bounds`].
//!
//! ```text
//! {a: {$gt: 1, $ne: 5}, $or: [{b: null}, {"c.d": /^x/}]}
//!
//!            And
//!      ┌──────┼───────────┐
//!  Path a    Not          Or
//!   $gt 1     │        ┌──┴──────┐
//!           Path a   Path b    Path c.d
//!            $eq 5    $eq null  $regex ^x
//! ```

mod all;
mod always_false;
mod always_true;
mod and;
mod bits;
mod bits_all_clear;
mod bits_all_set;
mod bits_any_clear;
mod bits_any_set;
pub mod bounds;
mod comment;
mod describe;
mod elem_match;
mod eq;
mod equalities;
mod exists;
mod explain_failure;
pub mod expr;
mod gt;
mod gte;
mod r#in;
mod inequality;
pub mod json_schema;
mod lt;
mod lte;
mod modulo;
mod ne;
mod nin;
mod node;
mod nor;
mod not;
mod or;
mod parser;
mod predicate;
mod regex;
mod sample_rate;
mod size;
mod r#type;

pub use bounds::{Bounds, Interval, Intervals};
pub use node::{Node, Subject};
pub use parser::{Field, Operator, Parse, Parser, Place};
pub use predicate::{IndexTraits, Predicate};

use crate::document::FieldPath;
use crate::document::collation::Collator;
use crate::error::Result;
use crate::expression::{self, Environment};
use bson::{RawBson, RawBsonRef, RawDocument};
use node::Matching;
use std::collections::BTreeSet;
use std::sync::Arc;

/// All operators, sorted by name.
pub static OPERATORS: &[Operator] = &[
    all::OPERATOR,
    always_false::OPERATOR,
    always_true::OPERATOR,
    and::OPERATOR,
    bits_all_clear::OPERATOR,
    bits_all_set::OPERATOR,
    bits_any_clear::OPERATOR,
    bits_any_set::OPERATOR,
    comment::OPERATOR,
    elem_match::OPERATOR,
    eq::OPERATOR,
    exists::OPERATOR,
    expr::OPERATOR,
    gt::OPERATOR,
    gte::OPERATOR,
    r#in::OPERATOR,
    json_schema::OPERATOR,
    lt::OPERATOR,
    lte::OPERATOR,
    modulo::OPERATOR,
    ne::OPERATOR,
    nin::OPERATOR,
    nor::OPERATOR,
    not::OPERATOR,
    regex::OPTIONS,
    or::OPERATOR,
    regex::OPERATOR,
    sample_rate::OPERATOR,
    size::OPERATOR,
    r#type::OPERATOR,
];

/// Known names that are not our aim, refused by name, with what MongoDB says where it lacks the needed part.
pub static UNSUPPORTED: &[(&str, crate::Code)] = &[
    ("$geoIntersects", crate::Code::BAD_VALUE),
    ("$geoNear", crate::Code::BAD_VALUE),
    ("$geoWithin", crate::Code::BAD_VALUE),
    ("$maxDistance", crate::Code::BAD_VALUE),
    ("$minDistance", crate::Code::BAD_VALUE),
    ("$near", crate::Code::BAD_VALUE),
    ("$nearSphere", crate::Code::BAD_VALUE),
    ("$text", crate::Code::INDEX_NOT_FOUND),
    ("$where", crate::Code::BAD_VALUE),
    ("$within", crate::Code::BAD_VALUE),
];

/// A parsed query filter.
#[derive(Clone, Debug)]
pub struct Filter {
    root: Node,
    collator: Option<Arc<Collator>>,
}

impl Filter {
    /// Parses a filter; all that is invalid whatever the document is refused here.
    ///
    /// # Errors
    /// MongoDB's codes: mostly `BadValue` (2), `FailedToParse` (9) and `TypeMismatch` (14).
    pub fn parse(
        filter: &RawDocument,
        parser: &mut expression::Parser,
        collator: Option<Arc<Collator>>,
    ) -> Result<Filter> {
        Filter::parse_for(Place::Query, filter, parser, collator)
    }

    /// The same for a filter that is no query.
    ///
    /// # Errors
    /// As [`Filter::parse`]; `QueryFeatureNotAllowed` (224) and the like for operators that have no place there.
    pub fn parse_for(
        place: Place,
        filter: &RawDocument,
        parser: &mut expression::Parser,
        collator: Option<Arc<Collator>>,
    ) -> Result<Filter> {
        let root = Parser::new(parser, collator.clone(), place).document(filter)?;
        Ok(Filter { root, collator })
    }

    /// A filter over a tree that was taken out of another filter.
    pub fn from_node(root: Node, collator: Option<Arc<Collator>>) -> Filter {
        Filter { root, collator }
    }

    /// Whether a document matches.
    ///
    /// # Errors
    /// `InvalidBSON` (22) for malformed bytes, and what `$expr` and `$regex` refuse while they run.
    pub fn matches(&self, document: &RawDocument, environment: &Environment) -> Result<bool> {
        self.root.matches(Subject::Document(document), &mut Matching::new(environment, false))
    }

    /// The position in an array through which the document matched, and the path of the condition that found it; `None`
    /// when it does not match, or through no array. What the positional `$` stands for.
    ///
    /// # Errors
    /// As [`Filter::matches`].
    pub fn matched_position(
        &self,
        document: &RawDocument,
        environment: &Environment,
    ) -> Result<Option<(FieldPath, usize)>> {
        let mut matching = Matching::new(environment, true);
        let matches = self.root.matches(Subject::Document(document), &mut matching)?;
        let position = matching.position.filter(|_| matches);
        Ok(position.map(|(path, position)| (path.clone(), position)))
    }

    /// Whether a value matches, standing for the first part of every path: a `$pull` condition parsed as
    /// `{"": condition}`, an array filter `{x: …, "x.y": …}`.
    ///
    /// # Errors
    /// As [`Filter::matches`].
    pub fn matches_value(&self, value: RawBsonRef<'_>, environment: &Environment) -> Result<bool> {
        self.root.matches(Subject::Named(value), &mut Matching::new(environment, false))
    }

    /// The fields that an upsert takes over from the filter: equalities, `$and`, and `$in`, `$or` and `$all` of one element.
    ///
    /// # Errors
    /// `NotSingleValueField` (54) when a path, or a path and its beginning, is given twice.
    pub fn equalities(&self) -> Result<Vec<(FieldPath, RawBson)>> {
        equalities::collect(&self.root)
    }

    /// The normalised tree.
    pub fn root(&self) -> &Node {
        &self.root
    }

    /// The collation that its strings are compared by.
    pub fn collator(&self) -> Option<&Arc<Collator>> {
        self.collator.as_ref()
    }

    /// Whether it matches every document.
    pub fn is_empty(&self) -> bool {
        matches!(self.root, Node::Always(true))
    }

    /// The paths that it reads; `None` when it needs the whole document.
    pub fn paths(&self) -> Option<BTreeSet<String>> {
        let mut paths = BTreeSet::new();
        self.root.collect_paths(&mut paths).then_some(paths)
    }
}

/// The table row of that name.
pub fn find(name: &str) -> Option<&'static Operator> {
    OPERATORS.binary_search_by(|operator| operator.name.cmp(name)).ok().map(|found| &OPERATORS[found])
}

#[cfg(test)]
mod tests;
