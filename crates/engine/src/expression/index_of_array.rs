//! `{$indexOfArray: [array, value, start, end]}`: the position where an array first holds a value, or -1.
//!
//! Null when the array is null or missing. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/aggregation/indexOfArray/>.

use super::operand::{as_array, comparison_over_many, count, whole_i32};
use super::{Environment, Operator, arguments};
use crate::document::{Value, values_equal};
use crate::error::{Error, Result};

pub(super) const OPERATOR: Operator = Operator {
    name: "$indexOfArray",
    parse: |argument, parser| {
        Ok(comparison_over_many(arguments("$indexOfArray", argument, 2..=4, parser)?, index_of_array))
    },
};

fn index_of_array<'v>(values: Vec<Value<'v>>, environment: &Environment) -> Result<Value<'v>> {
    if values[0].is_nullish() {
        return Ok(Value::NULL);
    }
    let Some(array) = as_array(&values[0]) else {
        return Err(Error::location(
            40090,
            format!("$indexOfArray takes an array as its first argument, not {}", values[0].type_name()),
        ));
    };
    let start = bound(values.get(2), 0, "starting")?;
    let end = bound(values.get(3), usize::MAX, "ending")?;
    let Some(value) = values[1].get() else { return Ok(Value::from(-1)) };
    for (position, element) in array.into_iter().enumerate().skip(start) {
        if position >= end {
            break;
        }
        if values_equal(element?, value, environment.collator())? {
            return Ok(count(position));
        }
    }
    Ok(Value::from(-1))
}

fn bound(value: Option<&Value<'_>>, default: usize, which: &str) -> Result<usize> {
    let Some(value) = value else { return Ok(default) };
    let number = whole_i32(value.or_null()).ok_or_else(|| {
        Error::location(
            9_711_600,
            format!("$indexOfArray takes a 32-bit integer as its {which} index, not {}", value.type_name()),
        )
    })?;
    usize::try_from(number).map_err(|_| {
        Error::location(9_711_601, format!("$indexOfArray takes a {which} index of at least 0, not {number}"))
    })
}
