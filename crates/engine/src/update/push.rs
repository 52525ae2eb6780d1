//! `{$push: {path: value | {$each: [value, …], $position, $sort, $slice}, …}}`: adds values to an array.
//!
//! In this order, whatever the order they are given in: the values are inserted at `$position` (the end by default; from the
//! end when negative), the array is sorted, then cut to the first (positive) or last (negative) `$slice` elements. Documented
//! at <https://www.mongodb.com/docs/manual/reference/operator/update/push/>.

use crate::document::collation::Collator;
use crate::document::{FieldPath, RawArrayBuf, RawBsonRef, RawDocument, Value, compare_values, number, type_name};
use crate::error::{Error, Result};
use crate::update::apply::At;
use crate::update::node::Node;
use crate::update::{Change, Entries, Modifier, Operator, ParseContext, show_id};
use std::cmp::Ordering;

pub(super) const OPERATOR: Operator = Operator { name: "$push", parse };

#[derive(Debug)]
struct Push {
    values: RawArrayBuf,
    position: Option<i64>,
    slice: Option<i64>,
    sort: Option<Sort>,
}

/// An order of elements: by the whole value, or by fields of it.
#[derive(Debug)]
enum Sort {
    Whole { descending: bool },
    Fields(Vec<(FieldPath, bool)>),
}

fn parse(path: &str, value: RawBsonRef<'_>, _: &mut ParseContext<'_>) -> Result<Entries> {
    let push = match value {
        RawBsonRef::Document(spec) if crate::document::get(spec, "$each")?.is_some() => parse_modifiers(spec)?,
        value => {
            let mut values = RawArrayBuf::new();
            values.push(value);
            Push { values, position: None, slice: None, sort: None }
        }
    };
    Ok(vec![(path.to_owned(), Box::new(push))])
}

fn parse_modifiers(spec: &RawDocument) -> Result<Push> {
    let mut push = Push { values: RawArrayBuf::new(), position: None, slice: None, sort: None };
    for field in spec {
        let (name, value) = field?;
        match name.as_str() {
            "$each" => {
                let RawBsonRef::Array(values) = value else {
                    return Err(Error::bad_value(format!(
                        "The argument to $each in $push must be an array but it was of type: {}",
                        type_name(value)
                    )));
                };
                push.values = values.to_owned();
            }
            "$position" => push.position = Some(integer("$position", value)?),
            "$slice" => push.slice = Some(integer("$slice", value)?),
            "$sort" => push.sort = Some(Sort::parse(value)?),
            other => {
                return Err(Error::bad_value(format!("Unrecognized clause in $push: {other}")));
            }
        }
    }
    Ok(push)
}

/// A whole number of any numeric type.
fn integer(name: &str, value: RawBsonRef<'_>) -> Result<i64> {
    number::exact_i64(value).ok_or_else(|| {
        Error::bad_value(format!(
            "The value for {name} must be an integer value but was given type: {}",
            type_name(value)
        ))
    })
}

impl Sort {
    fn parse(value: RawBsonRef<'_>) -> Result<Sort> {
        let RawBsonRef::Document(pattern) = value else {
            return Ok(Sort::Whole { descending: direction(value)? });
        };
        let mut fields = Vec::new();
        for field in pattern {
            let (name, value) = field?;
            let name = name.as_str();
            if name.split('.').any(str::is_empty) {
                return Err(Error::bad_value(format!("The $sort field is a dotted field with an empty part: {name}")));
            }
            fields.push((FieldPath::unchecked(name), direction(value)?));
        }
        if fields.is_empty() {
            return Err(Error::bad_value("The $sort pattern is empty when it should be a set of fields."));
        }
        Ok(Sort::Fields(fields))
    }

    fn compare(&self, a: RawBsonRef<'_>, b: RawBsonRef<'_>, collator: Option<&Collator>) -> Result<Ordering> {
        let fields = match self {
            Sort::Whole { descending } => return Ok(turned(compare_values(a, b, collator)?, *descending)),
            Sort::Fields(fields) => fields,
        };
        for (path, descending) in fields {
            let (a, b) = (key(a, path)?, key(b, path)?);
            let order = turned(compare_values(a.or_null(), b.or_null(), collator)?, *descending);
            if order != Ordering::Equal {
                return Ok(order);
            }
        }
        Ok(Ordering::Equal)
    }

    /// Sorts, keeping the order of equal elements; whether the order changed.
    fn sort(&self, elements: &mut Vec<Node<'_>>, collator: Option<&Collator>) -> Result<bool> {
        let values = elements.iter().map(|node| Ok(node.value()?.into_owned())).collect::<Result<Vec<_>>>()?;
        let mut order: Vec<usize> = (0..values.len()).collect();
        let mut failure = None;
        order.sort_by(|a, b| {
            self.compare(values[*a].or_null(), values[*b].or_null(), collator).unwrap_or_else(|error| {
                failure = Some(error);
                Ordering::Equal
            })
        });
        if let Some(error) = failure {
            return Err(error);
        }
        let changed = order.windows(2).any(|pair| pair[0] > pair[1]);
        let mut taken = std::mem::take(elements).into_iter().map(Some).collect::<Vec<_>>();
        elements.extend(order.into_iter().filter_map(|from| taken[from].take()));
        Ok(changed)
    }
}

/// What an element is sorted by: a field of it, or null.
fn key<'a>(element: RawBsonRef<'a>, path: &FieldPath) -> Result<Value<'a>> {
    match element {
        RawBsonRef::Document(_) => path.evaluate(element),
        _ => Ok(Value::Missing),
    }
}

fn turned(order: Ordering, descending: bool) -> Ordering {
    if descending { order.reverse() } else { order }
}

/// Whether a direction is descending.
fn direction(value: RawBsonRef<'_>) -> Result<bool> {
    match number::exact_i64(value) {
        Some(1) => Ok(false),
        Some(-1) => Ok(true),
        _ => Err(Error::bad_value("The $sort element value must be either 1 or -1")),
    }
}

impl Push {
    fn push<'a>(&'a self, elements: &mut Vec<Node<'a>>, collator: Option<&Collator>) -> Result<Change> {
        let values = self.values.into_iter().map(|value| Ok(Node::Raw(value?))).collect::<Result<Vec<_>>>()?;
        let mut changed = !values.is_empty();
        let end = elements.len();
        let at = match self.position {
            None => end,
            Some(position) => match usize::try_from(position) {
                Ok(position) => position.min(end),
                Err(_) => end.saturating_sub(usize::try_from(position.unsigned_abs()).unwrap_or(usize::MAX)),
            },
        };
        elements.splice(at..at, values);
        if let Some(sort) = &self.sort {
            changed |= sort.sort(elements, collator)?;
        }
        if let Some(slice) = self.slice {
            let kept = usize::try_from(slice.unsigned_abs()).unwrap_or(usize::MAX);
            if kept < elements.len() {
                changed = true;
                if slice < 0 {
                    elements.drain(..elements.len() - kept);
                } else {
                    elements.truncate(kept);
                }
            }
        }
        Ok(if changed { Change::Modified } else { Change::None })
    }
}

impl Modifier for Push {
    fn modify<'a>(&'a self, current: &mut Node<'a>, at: &At<'_, 'a>) -> Result<Change> {
        let Some(elements) = current.elements()? else {
            let value = current.value()?;
            return Err(Error::bad_value(format!(
                "The field '{}' must be an array but is of type {} in document {{{}}}",
                at.path(),
                type_name(value.or_null()),
                show_id(at.before)
            )));
        };
        self.push(elements, at.collator)
    }

    fn create<'a>(&'a self, at: &At<'_, 'a>) -> Result<Option<Node<'a>>> {
        let mut elements = Vec::new();
        self.push(&mut elements, at.collator)?;
        Ok(Some(Node::Array(elements)))
    }
}
