//! `{$slice: [array, n]}` or `{$slice: [array, position, n]}`: a part of an array.
//!
//! A negative `n` or position counts from the end. Null when an argument is null or missing. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/aggregation/slice/>.

use super::operand::{as_array, elements, is_number, variadic, whole_i32};
use super::{Environment, Operator};
use crate::document::Value;
use crate::error::{Error, Result};
use bson::RawArrayBuf;

pub(super) const OPERATOR: Operator =
    Operator { name: "$slice", parse: |argument, parser| variadic("$slice", argument, 2..=3, parser, slice) };

fn slice<'v>(values: Vec<Value<'v>>, _: &Environment) -> Result<Value<'v>> {
    if values[0].is_nullish() || values[1].is_nullish() {
        return Ok(Value::NULL);
    }
    let Some(array) = as_array(&values[0]) else {
        return Err(Error::location(
            28724,
            format!("$slice takes an array as its first argument, not {}", values[0].type_name()),
        ));
    };
    let second = whole(&values[1], 28725, 28726, "second")?;
    let all = elements(array)?;
    let length = all.len();
    let from_end = |number: i64| length.saturating_sub(number.unsigned_abs() as usize);
    let (start, end) = match values.get(2) {
        None if second >= 0 => (0, second as usize),
        None => (from_end(second), length),
        Some(count) => {
            if count.is_nullish() {
                return Ok(Value::NULL);
            }
            let start = if second >= 0 { second as usize } else { from_end(second) };
            let count = whole(count, 28727, 28728, "third")?;
            if count <= 0 {
                return Err(Error::location(28729, format!("$slice takes a count greater than 0, not {count}")));
            }
            (start, start.saturating_add(count as usize))
        }
    };
    let mut part = RawArrayBuf::new();
    all.iter().take(end).skip(start).for_each(|element| part.push(*element));
    Ok(part.into())
}

fn whole(value: &Value<'_>, not_number: i32, not_whole: i32, which: &str) -> Result<i64> {
    let given = value.or_null();
    if !is_number(given) {
        return Err(Error::location(
            not_number,
            format!("$slice takes a number as its {which} argument, not {}", value.type_name()),
        ));
    }
    whole_i32(given)
        .map(i64::from)
        .ok_or_else(|| Error::location(not_whole, format!("$slice takes a 32-bit integer as its {which} argument")))
}
