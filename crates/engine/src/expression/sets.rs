//! Sets of values for the set operators: membership in BSON order, numbers as one kind, strings by the collation.

use crate::document::collation::Collator;
use crate::document::compare_values;
use crate::error::{Error, Result};
use bson::{RawArray, RawBsonRef};
use std::cmp::Ordering;

/// A sorted set of borrowed values.
pub(super) struct ValueSet<'v, 'c> {
    sorted: Vec<RawBsonRef<'v>>,
    collator: Option<&'c Collator>,
}

impl<'v, 'c> ValueSet<'v, 'c> {
    /// The set of an array's elements; of equal elements the first one stays.
    pub(super) fn of(array: &'v RawArray, collator: Option<&'c Collator>) -> Result<ValueSet<'v, 'c>> {
        let mut sorted = super::operand::elements(array)?;
        let mut failure = None;
        let mut order = |a: &RawBsonRef<'v>, b: &RawBsonRef<'v>| {
            compare_values(*a, *b, collator).unwrap_or_else(|error| {
                failure = Some(error);
                Ordering::Equal
            })
        };
        sorted.sort_by(&mut order);
        sorted.dedup_by(|a, b| order(b, a) == Ordering::Equal);
        match failure {
            Some(error) => Err(error),
            None => Ok(ValueSet { sorted, collator }),
        }
    }

    /// The elements in order.
    pub(super) fn elements(&self) -> &[RawBsonRef<'v>] {
        &self.sorted
    }

    /// How many elements it has.
    pub(super) fn len(&self) -> usize {
        self.sorted.len()
    }

    /// Whether the value is in the set.
    pub(super) fn contains(&self, value: RawBsonRef<'_>) -> Result<bool> {
        Ok(self.search(value)?.is_ok())
    }

    /// The place of a value that is in the set.
    pub(super) fn place(&self, value: RawBsonRef<'_>) -> Result<usize> {
        Ok(self.search(value)?.unwrap_or_default())
    }

    fn search(&self, value: RawBsonRef<'_>) -> Result<std::result::Result<usize, usize>> {
        let mut failure: Option<Error> = None;
        let found = self.sorted.binary_search_by(|element| {
            compare_values(*element, value, self.collator).unwrap_or_else(|error| {
                failure = Some(error);
                Ordering::Equal
            })
        });
        failure.map_or(Ok(found), Err)
    }

    /// Whether all elements of the other set are in this one.
    pub(super) fn contains_all(&self, other: &ValueSet<'_, '_>) -> Result<bool> {
        for element in &other.sorted {
            if !self.contains(*element)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
