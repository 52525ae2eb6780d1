//! `{field: {$eq: value}}` or `{field: value}`: a value at the path is equal.
//!
//! Numbers are equal across their types, NaN is equal to itself, documents are equal with the same fields in the same
//! order. Null also matches a missing field, not `undefined`. With an array, the array itself or one of its elements is
//! equal. Documented at <https://www.mongodb.com/docs/manual/reference/operator/query/eq/>.

use super::{Bounds, Field, IndexTraits, Interval, Node, Operator, Parse, Parser, Predicate};
use crate::document::collation::Collator;
use crate::document::{append, values_equal};
use crate::error::{Error, Result};
use crate::expression::Environment;
use bson::{RawBson, RawBsonRef, RawDocumentBuf};
use std::sync::Arc;

pub(super) const OPERATOR: Operator = Operator { name: "$eq", parse: Parse::Field(parse) };

/// Equality with a constant.
#[derive(Debug)]
pub(super) struct Equal {
    value: RawBson,
    collator: Option<Arc<Collator>>,
}

fn parse(field: Field<'_>, argument: RawBsonRef<'_>, parser: &mut Parser<'_>) -> Result<Node> {
    node(field.path, argument, parser)
}

/// The condition that a path's value is equal to one.
pub(super) fn node(path: &str, value: RawBsonRef<'_>, parser: &Parser<'_>) -> Result<Node> {
    refuse_undefined(value)?;
    Ok(Node::path(path, Equal { value: value.into(), collator: parser.collator.clone() }))
}

/// Refuses the one value that nothing can be compared to.
pub(super) fn refuse_undefined(value: RawBsonRef<'_>) -> Result<()> {
    match value {
        RawBsonRef::Undefined => Err(Error::bad_value("cannot compare to undefined")),
        _ => Ok(()),
    }
}

impl Predicate for Equal {
    fn matches(&self, value: Option<RawBsonRef<'_>>, _: &Environment) -> Result<bool> {
        match value {
            Some(value) => values_equal(value, self.value.as_raw_bson_ref(), self.collator.as_deref()),
            None => Ok(matches!(self.value, RawBson::Null)),
        }
    }

    fn name(&self) -> &'static str {
        "$eq"
    }

    fn describe(&self) -> RawDocumentBuf {
        operator("$eq", self.value.as_raw_bson_ref())
    }

    fn bounds(&self, index: IndexTraits) -> Option<Bounds> {
        equality_bounds(self.value.as_raw_bson_ref(), index)
    }

    fn equality(&self) -> Option<RawBsonRef<'_>> {
        Some(self.value.as_raw_bson_ref())
    }

    fn collator(&self) -> Option<&Collator> {
        self.collator.as_deref()
    }

    fn needs_existence(&self) -> bool {
        !matches!(self.value, RawBson::Null)
    }
}

/// A document of one operator.
pub(super) fn operator(name: &str, value: RawBsonRef<'_>) -> RawDocumentBuf {
    let mut document = RawDocumentBuf::new();
    append(&mut document, name, value).expect("operators' names hold no null byte");
    document
}

/// The keys of documents that hold a value: the value; for an array over several keys its first element too, or
/// `undefined` for the empty one.
pub(super) fn equality_bounds(value: RawBsonRef<'_>, index: IndexTraits) -> Option<Bounds> {
    let point = Interval::point(value.into());
    match value {
        RawBsonRef::Null => Some(Bounds::inexact(vec![point])),
        RawBsonRef::Array(array) if index.multikey => {
            let first = match array.into_iter().next() {
                None => RawBson::Undefined,
                Some(element) => element.ok()?.into(),
            };
            let rank = |value: &RawBson| crate::document::compare::canonical_rank(value.as_raw_bson_ref());
            let mut intervals = vec![Interval::point(first.clone()), point];
            if let RawBson::Array(_) = first {
                // Both are arrays: order them by letting the planner's union do it.
                let ordered = super::Intervals::from_unsorted(intervals, None).ok()?;
                return Some(Bounds { intervals: ordered, exact: false });
            }
            if rank(&first) > rank(&RawBson::Array(array.to_owned())) {
                intervals.reverse();
            }
            Some(Bounds::inexact(intervals))
        }
        _ => Some(Bounds::exact(vec![point])),
    }
}
