//! What `$gt`, `$gte`, `$lt` and `$lte` share.
//!
//! A value is compared to values of its own kind only (all numbers are one kind); null is equal to a missing field;
//! `MinKey` and `MaxKey` are below and above everything, a missing field included. NaN is equal to itself and not
//! comparable to other numbers.

use super::bounds::bracket;
use super::eq::{operator, refuse_undefined};
use super::{Bounds, Field, IndexTraits, Interval, Node, Parser, Predicate};
use crate::document::collation::Collator;
use crate::document::compare::canonical_rank;
use crate::document::compare_values;
use crate::document::number::Number;
use crate::error::{Error, Result};
use crate::expression::Environment;
use bson::{RawBson, RawBsonRef, RawDocumentBuf};
use std::cmp::Ordering;
use std::ops::Bound;
use std::sync::Arc;

/// Which inequality.
#[derive(Debug)]
pub(super) struct Kind {
    /// The operator's name.
    pub(super) name: &'static str,
    /// On which side of the constant the matching values lie.
    pub(super) side: Ordering,
    /// Whether equal values match too.
    pub(super) or_equal: bool,
}

#[derive(Debug)]
struct Inequality {
    kind: &'static Kind,
    value: RawBson,
    collator: Option<Arc<Collator>>,
}

/// Parses an inequality.
pub(super) fn parse(
    kind: &'static Kind,
    field: Field<'_>,
    argument: RawBsonRef<'_>,
    parser: &mut Parser<'_>,
) -> Result<Node> {
    refuse_undefined(argument)?;
    if let RawBsonRef::RegularExpression(_) = argument {
        return Err(Error::bad_value(format!("Can't have RegEx as arg to predicate over field '{}'.", field.path)));
    }
    Ok(Node::path(field.path, Inequality { kind, value: argument.into(), collator: parser.collator.clone() }))
}

/// Whether a value is NaN.
pub(super) fn is_nan(value: RawBsonRef<'_>) -> bool {
    Number::of(value).is_some_and(Number::is_nan)
}

impl Predicate for Inequality {
    fn matches(&self, value: Option<RawBsonRef<'_>>, _: &Environment) -> Result<bool> {
        let constant = self.value.as_raw_bson_ref();
        let same_kind = value.filter(|value| canonical_rank(*value) == canonical_rank(constant));
        let Some(value) = same_kind else {
            return Ok(match constant {
                RawBsonRef::Null => value.is_none() && self.kind.or_equal,
                RawBsonRef::MaxKey => self.kind.side == Ordering::Less,
                RawBsonRef::MinKey => self.kind.side == Ordering::Greater,
                _ => false,
            });
        };
        if is_nan(value) || is_nan(constant) {
            return Ok(self.kind.or_equal && is_nan(value) && is_nan(constant));
        }
        let order = compare_values(value, constant, self.collator.as_deref())?;
        Ok(order == self.kind.side || (self.kind.or_equal && order == Ordering::Equal))
    }

    fn name(&self) -> &'static str {
        self.kind.name
    }

    fn describe(&self) -> RawDocumentBuf {
        operator(self.kind.name, self.value.as_raw_bson_ref())
    }

    fn bounds(&self, index: IndexTraits) -> Option<Bounds> {
        let constant = self.value.as_raw_bson_ref();
        let end = if self.kind.or_equal { Bound::Included } else { Bound::Excluded };
        let point = || vec![Interval::point(self.value.clone())];
        match constant {
            RawBsonRef::MinKey | RawBsonRef::MaxKey => return Some(Bounds::inexact(vec![Interval::all()])),
            RawBsonRef::Null => return Some(Bounds::inexact(if self.kind.or_equal { point() } else { Vec::new() })),
            RawBsonRef::Array(_) if index.multikey => return None,
            number if is_nan(number) => {
                return Some(Bounds::exact(if self.kind.or_equal { point() } else { Vec::new() }));
            }
            _ => {}
        }
        let kind = bracket(constant);
        Some(Bounds::exact(vec![match self.kind.side {
            Ordering::Greater => Interval { low: end(self.value.clone()), high: kind.high },
            _ => Interval { low: kind.low, high: end(self.value.clone()) },
        }]))
    }

    fn needs_existence(&self) -> bool {
        !matches!(self.value, RawBson::Null | RawBson::MinKey | RawBson::MaxKey)
    }
}
