//! `{$arrayElemAt: [array, index]}`: an element of an array, counted from the end when the index is negative.
//!
//! Missing when there is no such element, null when an argument is null. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/aggregation/arrayElemAt/>.

use super::operand::{as_array, element_at, elements, function, is_number, whole_i32};
use super::{Environment, Operator};
use crate::document::{Value, type_name};
use crate::error::{Error, Result};

pub(super) const OPERATOR: Operator = Operator {
    name: "$arrayElemAt",
    parse: |argument, parser| function("$arrayElemAt", argument, parser, array_elem_at),
};

fn array_elem_at<'v>([array, index]: [Value<'v>; 2], _: &Environment) -> Result<Value<'v>> {
    if array.is_nullish() || index.is_nullish() {
        return Ok(Value::NULL);
    }
    let Some(whole) = as_array(&array) else {
        return Err(Error::location(28689, format!("$arrayElemAt takes an array first, not {}", array.type_name())));
    };
    let index = index.or_null();
    if !is_number(index) {
        return Err(Error::location(28690, format!("$arrayElemAt takes a number as index, not {}", type_name(index))));
    }
    let index = whole_i32(index)
        .ok_or_else(|| Error::location(28691, "$arrayElemAt takes an index that is a 32-bit integer"))?;
    let position = if index < 0 {
        let length = elements(whole)?.len();
        let Some(position) = length.checked_sub(index.unsigned_abs() as usize) else { return Ok(Value::Missing) };
        position
    } else {
        index as usize
    };
    element_at(array, position)
}

/// The first or the last element of an array, for `$first` and `$last`.
pub(super) fn end_of<'v>(name: &str, array: Value<'v>, last: bool) -> Result<Value<'v>> {
    if array.is_nullish() {
        return Ok(Value::NULL);
    }
    let Some(whole) = as_array(&array) else {
        return Err(Error::location(28689, format!("{name} takes an array, not {}", array.type_name())));
    };
    let position = if last { elements(whole)?.len().saturating_sub(1) } else { 0 };
    element_at(array, position)
}
