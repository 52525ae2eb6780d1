//! The order of an array's elements, as `$sortArray` and `$push` with `$sort` take it, and sort keys of documents, as
//! `$top` and its like take them.
//!
//! An element is compared whole (`1`, `-1`) or by fields of it (`{a: 1, "b.c": -1}`). Among elements, a path leads
//! through documents and by positions through arrays, nothing is fanned out; where it leads nowhere, null counts. A sort
//! *key* of a document fans out: of an array's elements the lowest counts, or the highest when descending.

use crate::document::collation::Collator;
use crate::document::traverse::{Leaf, array_position, visit};
use crate::document::{Value, compare_values, get, number};
use crate::error::{Error, Result};
use bson::{RawBsonRef, RawDocument};
use std::cmp::Ordering;

/// A field of a sort pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SortField {
    /// Its dotted path.
    pub path: Box<str>,
    /// Whether high values come first.
    pub descending: bool,
}

/// How elements are put in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ElementOrder {
    /// By the whole element.
    Whole {
        /// Whether high values come first.
        descending: bool,
    },
    /// By fields, the first one first.
    ByFields(Vec<SortField>),
}

impl ElementOrder {
    /// Reads `1`, `-1` or a sort pattern.
    ///
    /// # Errors
    /// `BadValue` (2); the caller may put its own code in place.
    pub fn parse(value: RawBsonRef<'_>) -> Result<ElementOrder> {
        match value {
            RawBsonRef::Document(pattern) => Ok(ElementOrder::ByFields(parse_pattern(pattern)?)),
            other => Ok(ElementOrder::Whole { descending: direction(other)? }),
        }
    }

    /// Sorts elements; equal ones keep their order.
    ///
    /// # Errors
    /// `InvalidBSON` (22) when nested bytes are malformed.
    pub fn sort<'a>(&self, elements: Vec<RawBsonRef<'a>>, collator: Option<&Collator>) -> Result<Vec<RawBsonRef<'a>>> {
        let fields = match self {
            ElementOrder::Whole { descending } => {
                let keyed = elements.into_iter().map(|element| (vec![element], element)).collect();
                return sort_by_keys(keyed, &[*descending], collator);
            }
            ElementOrder::ByFields(fields) => fields,
        };
        let directions: Vec<bool> = fields.iter().map(|field| field.descending).collect();
        let mut keyed = Vec::with_capacity(elements.len());
        for element in elements {
            let key = fields.iter().map(|field| along(element, &field.path)).collect::<Result<Vec<_>>>()?;
            keyed.push((key, element));
        }
        sort_by_keys(keyed, &directions, collator)
    }
}

fn sort_by_keys<'a>(
    mut keyed: Vec<(Vec<RawBsonRef<'a>>, RawBsonRef<'a>)>,
    directions: &[bool],
    collator: Option<&Collator>,
) -> Result<Vec<RawBsonRef<'a>>> {
    let mut failure = None;
    keyed.sort_by(|(a, _), (b, _)| {
        compare_keys(a.iter().copied(), b.iter().copied(), directions, collator).unwrap_or_else(|error| {
            failure = Some(error);
            Ordering::Equal
        })
    });
    match failure {
        Some(error) => Err(error),
        None => Ok(keyed.into_iter().map(|(_, element)| element).collect()),
    }
}

/// Compares two keys part by part, each part in its direction.
///
/// # Errors
/// `InvalidBSON` (22) when nested bytes are malformed.
pub fn compare_keys<'a>(
    a: impl Iterator<Item = RawBsonRef<'a>>,
    b: impl Iterator<Item = RawBsonRef<'a>>,
    directions: &[bool],
    collator: Option<&Collator>,
) -> Result<Ordering> {
    for ((a, b), descending) in a.zip(b).zip(directions) {
        match compare_values(a, b, collator)? {
            Ordering::Equal => {}
            order if *descending => return Ok(order.reverse()),
            order => return Ok(order),
        }
    }
    Ok(Ordering::Equal)
}

/// Reads a sort pattern such as `{a: 1, "b.c": -1}`.
///
/// # Errors
/// `BadValue` (2) for an empty pattern, an empty part of a path or a direction other than 1 and -1.
pub fn parse_pattern(pattern: &RawDocument) -> Result<Vec<SortField>> {
    let mut fields: Vec<SortField> = Vec::new();
    for field in pattern {
        let (path, value) = field?;
        let path = path.as_str();
        if path.split('.').any(str::is_empty) {
            return Err(Error::bad_value("a path to sort by may not be empty or have empty parts"));
        }
        fields.push(SortField { path: path.into(), descending: direction(value)? });
    }
    if fields.is_empty() {
        return Err(Error::bad_value("a sort pattern needs at least one field"));
    }
    Ok(fields)
}

fn direction(value: RawBsonRef<'_>) -> Result<bool> {
    match number::exact_i64(value) {
        Some(1) => Ok(false),
        Some(-1) => Ok(true),
        _ => Err(Error::bad_value("a sort direction is 1 (ascending) or -1 (descending)")),
    }
}

/// The value at a path without fanning out over arrays; null where there is none.
fn along<'a>(value: RawBsonRef<'a>, path: &str) -> Result<RawBsonRef<'a>> {
    let (first, rest) = path.split_once('.').map_or((path, None), |(first, rest)| (first, Some(rest)));
    let next = match value {
        RawBsonRef::Document(document) => get(document, first)?,
        RawBsonRef::Array(array) => array_position(first).map_or(Ok(None), |position| array.get(position))?,
        _ => None,
    };
    match (next, rest) {
        (None, _) => Ok(RawBsonRef::Null),
        (Some(value), None) => Ok(value),
        (Some(value), Some(rest)) => along(value, rest),
    }
}

/// A document's sort key: one value for each field of the pattern.
///
/// # Errors
/// `InvalidBSON` (22) when the bytes are malformed.
pub fn sort_key(
    document: &RawDocument,
    fields: &[SortField],
    collator: Option<&Collator>,
) -> Result<Vec<Value<'static>>> {
    fields.iter().map(|field| sort_key_part(document, field, collator)).collect()
}

fn sort_key_part(document: &RawDocument, field: &SortField, collator: Option<&Collator>) -> Result<Value<'static>> {
    let mut best: Option<RawBsonRef<'_>> = None;
    visit(document, &field.path, Leaf::Elements, &mut |value, _| {
        let value = value.unwrap_or(RawBsonRef::Null);
        let better = match best {
            None => true,
            Some(best) => {
                let order = compare_values(value, best, collator)?;
                if field.descending { order == Ordering::Greater } else { order == Ordering::Less }
            }
        };
        if better {
            best = Some(value);
        }
        Ok(false)
    })?;
    let best = match best {
        Some(best) => best,
        None if is_empty_array(document, &field.path)? => RawBsonRef::Undefined,
        None => RawBsonRef::Null,
    };
    Ok(Value::from(best).into_owned())
}

/// An empty array sorts below null.
fn is_empty_array(document: &RawDocument, path: &str) -> Result<bool> {
    visit(document, path, Leaf::Array, &mut |value, _| Ok(matches!(value, Some(RawBsonRef::Array(_)))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::{RawBson, rawdoc};

    fn sorted(elements: RawBson, order: RawBson) -> Vec<RawBson> {
        let array = elements.as_array().unwrap();
        let elements = array.into_iter().map(|element| element.unwrap()).collect();
        let order = ElementOrder::parse(order.as_raw_bson_ref()).unwrap();
        order.sort(elements, None).unwrap().into_iter().map(RawBson::from).collect()
    }

    #[test]
    fn elements_are_sorted_by_fields_and_keep_their_order_when_equal() {
        let document = rawdoc! { "e": [{"a": {"b": 2}, "n": 1}, {"a": {"b": 1}}, 7, {"a": {"b": 2}, "n": 2}] };
        let elements = RawBson::from(document.get("e").unwrap().unwrap());
        let order = RawBson::Document(rawdoc! { "a.b": -1 });
        let order = sorted(elements, order);
        assert_eq!(order[0], RawBson::Document(rawdoc! { "a": {"b": 2}, "n": 1 }));
        assert_eq!(order[1], RawBson::Document(rawdoc! { "a": {"b": 2}, "n": 2 }));
        assert_eq!(order[3], RawBson::Int32(7));
    }

    #[test]
    fn a_sort_key_takes_the_end_of_an_array_that_the_direction_asks_for() {
        let document = rawdoc! { "a": [3, 1, 2] };
        let pattern = parse_pattern(&rawdoc! { "a": 1 }).unwrap();
        assert_eq!(sort_key(&document, &pattern, None).unwrap()[0].get(), Some(RawBsonRef::Int32(1)));
        let pattern = parse_pattern(&rawdoc! { "a": -1 }).unwrap();
        assert_eq!(sort_key(&document, &pattern, None).unwrap()[0].get(), Some(RawBsonRef::Int32(3)));
    }
}
