//! What only `find` projections know: `{$slice: n}`, `{$slice: [skip, n]}` and `{$elemMatch: condition}`.
//!
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/projection/>.

use crate::document::append;
use crate::document::collation::Collator;
use crate::document::number::Number;
use crate::error::{Error, Result};
use crate::expression::{self, Environment};
use crate::filter::{Filter, Node, Place};
use bson::{RawArray, RawArrayBuf, RawBsonRef, RawDocumentBuf};
use std::sync::Arc;

/// A part of an array.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slice {
    /// How many to skip from the start, or, negative, from how far before the end to start.
    skip: Option<i64>,
    /// How many to take; without `skip`, negative counts from the end.
    limit: i64,
}

impl Slice {
    /// Parses the argument; `None` when it is an aggregation's `$slice` instead.
    pub(super) fn parse(argument: RawBsonRef<'_>) -> Result<Option<Slice>> {
        if let Some(number) = Number::of(argument) {
            return Ok(Some(Slice { skip: None, limit: clamped(number) }));
        }
        let RawBsonRef::Array(array) = argument else { return Ok(None) };
        let numbers = array.into_iter().map(|element| Ok(Number::of(element?))).collect::<Result<Vec<_>>>()?;
        let [Some(skip), Some(limit)] = numbers[..] else { return Ok(None) };
        let limit = clamped(limit);
        if limit <= 0 {
            return Err(Error::location(28724, format!("$slice limit must be positive, got {limit}")));
        }
        Ok(Some(Slice { skip: Some(clamped(skip)), limit }))
    }

    /// The part of an array.
    pub(super) fn of(self, array: &RawArray) -> Result<RawArrayBuf> {
        let length = i64::try_from(array.iter_elements().count()).expect("an array is far below 2^63 elements");
        let (start, limit) = match self.skip {
            None if self.limit < 0 => (length.saturating_add(self.limit).max(0), length),
            None => (0, self.limit),
            Some(skip) if skip < 0 => (length.saturating_add(skip).max(0), self.limit),
            Some(skip) => (skip.min(length), self.limit),
        };
        let (start, limit) =
            (usize::try_from(start).unwrap_or(usize::MAX), usize::try_from(limit).unwrap_or(usize::MAX));
        let mut part = RawArrayBuf::new();
        for element in array.into_iter().skip(start).take(limit) {
            part.push(element?);
        }
        Ok(part)
    }
}

/// A number cut to a whole one and to 32 bits, as MongoDB does; NaN is zero.
fn clamped(number: Number) -> i64 {
    number.to_i64_truncated().clamp(i32::MIN.into(), i32::MAX.into())
}

/// The first element of an array that meets a condition.
#[derive(Debug)]
pub(super) struct ElemMatch {
    /// `{"": {$elemMatch: condition}}`
    filter: Filter,
}

impl ElemMatch {
    pub(super) fn parse(
        condition: RawBsonRef<'_>,
        parser: &mut expression::Parser,
        collator: Option<Arc<Collator>>,
    ) -> Result<ElemMatch> {
        let mut operator = RawDocumentBuf::new();
        append(&mut operator, "$elemMatch", condition)?;
        let mut filter = RawDocumentBuf::new();
        append(&mut filter, "", RawBsonRef::Document(&operator))?;
        let filter = Filter::parse_for(Place::Projection, &filter, parser, collator)?;
        Ok(ElemMatch { filter })
    }

    /// The array of the one element, or `None` when there is none or the value is no array.
    pub(super) fn of(&self, value: RawBsonRef<'_>, environment: &Environment) -> Result<Option<RawArrayBuf>> {
        let (RawBsonRef::Array(array), Node::Path { test, .. }) = (value, self.filter.root()) else { return Ok(None) };
        let Some(position) = test.position(value, environment)? else { return Ok(None) };
        let mut found = RawArrayBuf::new();
        if let Some(element) = array.into_iter().nth(position) {
            found.push(element?);
        }
        Ok(Some(found))
    }
}
