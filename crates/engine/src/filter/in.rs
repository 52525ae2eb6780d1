//! `{field: {$in: [value, /regex/, …]}}`: a value at the path is equal to one of the values, or matches one of the regular
//! expressions.
//!
//! The values are sorted once, so that a long list costs a binary search. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/query/in/>.

use super::eq::{equality_bounds, refuse_undefined};
use super::parser::is_operators;
use super::regex::{Pattern, pattern_bounds};
use super::{Bounds, Field, IndexTraits, Intervals, Node, Operator, Parse, Parser, Predicate};
use crate::document::collation::Collator;
use crate::document::compare_values;
use crate::error::{Error, Result};
use crate::expression::Environment;
use bson::{RawArrayBuf, RawBson, RawBsonRef, RawDocumentBuf};
use std::cmp::Ordering;
use std::sync::Arc;

pub(super) const OPERATOR: Operator = Operator { name: "$in", parse: Parse::Field(parse) };

#[derive(Debug)]
struct In {
    /// As written, for [`Predicate::describe`].
    written: RawArrayBuf,
    /// Sorted by the collation, without repetition.
    values: Vec<RawBson>,
    patterns: Vec<Pattern>,
    has_null: bool,
    collator: Option<Arc<Collator>>,
}

fn parse(field: Field<'_>, argument: RawBsonRef<'_>, parser: &mut Parser<'_>) -> Result<Node> {
    node("$in", field, argument, parser)
}

/// The condition of `$in` and, negated, of `$nin`.
pub(super) fn node(name: &str, field: Field<'_>, argument: RawBsonRef<'_>, parser: &mut Parser<'_>) -> Result<Node> {
    let RawBsonRef::Array(array) = argument else {
        return Err(Error::bad_value(format!("{name} needs an array")));
    };
    let (mut values, mut patterns) = (Vec::new(), Vec::new());
    for element in array {
        let element = element?;
        match element {
            RawBsonRef::Document(document) if is_operators(document)? => {
                return Err(Error::bad_value(format!("cannot nest $ under {name}")));
            }
            RawBsonRef::RegularExpression(literal) => patterns.push(Pattern::literal(literal)?),
            value => {
                refuse_undefined(value)?;
                values.push(RawBson::from(value));
            }
        }
    }
    let collator = parser.collator.clone();
    sort(&mut values, collator.as_deref())?;
    let has_null = values.iter().any(|value| matches!(value, RawBson::Null));
    Ok(Node::path(field.path, In { written: array.to_owned(), values, patterns, has_null, collator }))
}

fn sort(values: &mut Vec<RawBson>, collator: Option<&Collator>) -> Result<()> {
    let mut failure = None;
    let mut compare = |a: &RawBson, b: &RawBson| {
        compare_values(a.as_raw_bson_ref(), b.as_raw_bson_ref(), collator).unwrap_or_else(|error| {
            failure = Some(error);
            Ordering::Equal
        })
    };
    values.sort_by(&mut compare);
    values.dedup_by(|b, a| compare(a, b) == Ordering::Equal);
    failure.map_or(Ok(()), Err)
}

impl In {
    fn holds(&self, value: RawBsonRef<'_>) -> Result<bool> {
        let (mut low, mut high) = (0, self.values.len());
        while low < high {
            let middle = (low + high) / 2;
            match compare_values(self.values[middle].as_raw_bson_ref(), value, self.collator.as_deref())? {
                Ordering::Equal => return Ok(true),
                Ordering::Less => low = middle + 1,
                Ordering::Greater => high = middle,
            }
        }
        Ok(false)
    }
}

impl Predicate for In {
    fn matches(&self, value: Option<RawBsonRef<'_>>, _: &Environment) -> Result<bool> {
        let Some(value) = value else { return Ok(self.has_null) };
        if self.holds(value)? {
            return Ok(true);
        }
        for pattern in &self.patterns {
            if pattern.matches(value)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn name(&self) -> &'static str {
        "$in"
    }

    fn describe(&self) -> RawDocumentBuf {
        super::eq::operator("$in", RawBsonRef::Array(&self.written))
    }

    fn bounds(&self, index: IndexTraits) -> Option<Bounds> {
        let (mut intervals, mut exact) = (Vec::with_capacity(self.values.len()), true);
        let values = self.values.iter().map(|value| equality_bounds(value.as_raw_bson_ref(), index));
        let patterns = self.patterns.iter().map(|pattern| Some(pattern_bounds(pattern, index)));
        for bounds in values.chain(patterns) {
            let bounds = bounds?;
            exact &= bounds.exact;
            intervals.extend(bounds.intervals.0);
        }
        let intervals = Intervals::from_unsorted(intervals, self.collator.as_deref()).ok()?;
        Some(Bounds { intervals, exact })
    }

    fn equality(&self) -> Option<RawBsonRef<'_>> {
        match &self.values[..] {
            [only] if self.patterns.is_empty() => Some(only.as_raw_bson_ref()),
            _ => None,
        }
    }

    fn needs_existence(&self) -> bool {
        !self.has_null
    }
}
