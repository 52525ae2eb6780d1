//! The value of a parent after one of its children changed: sums, extremes, and the newest few.
//!
//! Each function changes the parent's image and says whether the value has to be looked up among the children: only when
//! a child that held it went away.

use super::effect::Newest;
use super::others;
use bson::{Bson, Document, RawBson, RawBsonRef};
use engine::document::{Number, compare_values};
use engine::{Error, Result};
use std::cmp::Ordering;

/// Adds to a count or sum.
pub(super) fn add(parent: &mut Document, field: &str, amount: Number) -> Result<()> {
    let sum = others::add(number(parent.get(field))?, amount, field)?;
    parent.insert(field, super::value::tree(sum.into())?);
    Ok(())
}

/// A stored count or sum; 0 where there is none.
pub(crate) fn number(value: Option<&Bson>) -> Result<Number> {
    Ok(number_in(value.map(raw).transpose()?.as_ref()))
}

/// The same for a value in bytes.
pub(super) fn number_in(value: Option<&RawBson>) -> Number {
    number_of(value.map(RawBson::as_raw_bson_ref))
}

/// The same for a value where it stands.
pub(super) fn number_of(value: Option<RawBsonRef<'_>>) -> Number {
    match value.and_then(Number::of) {
        Some(Number::Int32(number)) => Number::Int64(i64::from(number)),
        Some(number) => number,
        None => Number::Int64(0),
    }
}

/// A tree as bytes.
pub(super) fn raw(value: &Bson) -> Result<RawBson> {
    RawBson::try_from(value.clone()).map_err(|error| Error::internal(format!("a value cannot be encoded: {error}")))
}

fn order(a: &Bson, b: &Bson) -> Result<Ordering> {
    compare_values(raw(a)?.as_raw_bson_ref(), raw(b)?.as_raw_bson_ref(), None)
}

/// A child's value left or came; true if the extreme has to be looked up.
pub(super) fn extreme(
    parent: &mut Document,
    field: &str,
    largest: bool,
    gone: Option<&RawBson>,
    came: Option<&RawBson>,
) -> Result<bool> {
    let better = |a: &Bson, b: &Bson| -> Result<bool> {
        Ok(order(a, b)? == if largest { Ordering::Greater } else { Ordering::Less })
    };
    let (gone, came) =
        (gone.cloned().map(super::value::tree).transpose()?, came.cloned().map(super::value::tree).transpose()?);
    let current = parent.get(field).cloned();
    if let Some(came) = &came
        && match &current {
            Some(current) => !better(current, came)?,
            None => gone.is_none(),
        }
    {
        parent.insert(field, came.clone());
        return Ok(false);
    }
    // What came is worse than what stands: look only if what stood was this child's.
    match (&gone, &current) {
        (Some(gone), Some(current)) => Ok(!better(current, gone)?),
        (Some(_), None) => Ok(true),
        (None, _) => Ok(false),
    }
}

/// A child left, came or changed; true if the next ones have to be looked up.
pub(super) fn newest(parent: &mut Document, rule: &Newest, child: &RawBson, came: Option<&Document>) -> Result<bool> {
    let keep = rule.keep.unwrap_or(1);
    let mut list = list(parent, rule);
    let was_full = list.len() >= keep;
    let child = super::value::tree(child.clone())?;
    let held = list.len();
    let mut left = Vec::with_capacity(held);
    for element in list.drain(..) {
        if order(element.get("_id").unwrap_or(&Bson::Null), &child)? != Ordering::Equal {
            left.push(element);
        }
    }
    let removed = left.len() < held;
    let mut last = false;
    if let Some(came) = came {
        let mut position = left.len();
        for (index, element) in left.iter().enumerate() {
            if newer(rule, came, element)? {
                position = index;
                break;
            }
        }
        last = position == left.len();
        left.insert(position, came.clone());
    }
    left.truncate(keep);
    put(parent, rule, left);
    Ok(removed && was_full && (came.is_none() || last))
}

/// Whether one child comes before another: by the order, then by the larger `_id`.
fn newer(rule: &Newest, a: &Document, b: &Document) -> Result<bool> {
    let of = |document: &Document, name: &str| document.get(name).cloned().unwrap_or(Bson::Null);
    let by_order = order(&of(a, &rule.order_name), &of(b, &rule.order_name))?;
    let by_order = if rule.descending { by_order.reverse() } else { by_order };
    Ok(by_order.then(order(&of(a, "_id"), &of(b, "_id"))?) == Ordering::Greater)
}

fn list(parent: &Document, rule: &Newest) -> Vec<Document> {
    match (parent.get(&rule.field), rule.keep) {
        (Some(Bson::Document(one)), None) => vec![one.clone()],
        (Some(Bson::Array(array)), Some(_)) => {
            array.iter().filter_map(|element| element.as_document().cloned()).collect()
        }
        _ => Vec::new(),
    }
}

/// Stores the newest ones, the newest first.
pub(super) fn put(parent: &mut Document, rule: &Newest, mut list: Vec<Document>) {
    match rule.keep {
        Some(_) => {
            parent.insert(rule.field.clone(), list);
        }
        None if list.is_empty() => {
            parent.remove(&rule.field);
        }
        None => {
            parent.insert(rule.field.clone(), list.swap_remove(0));
        }
    }
}
