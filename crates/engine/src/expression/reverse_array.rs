//! `{$reverseArray: array}`: an array's elements in reverse order.
//!
//! Null when the array is null or missing. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/aggregation/reverseArray/>.

use super::operand::{as_array, elements, function};
use super::{Environment, Operator};
use crate::document::Value;
use crate::error::{Error, Result};
use bson::RawArrayBuf;

pub(super) const OPERATOR: Operator = Operator {
    name: "$reverseArray",
    parse: |argument, parser| function("$reverseArray", argument, parser, reverse_array),
};

fn reverse_array<'v>([array]: [Value<'v>; 1], _: &Environment) -> Result<Value<'v>> {
    if array.is_nullish() {
        return Ok(Value::NULL);
    }
    let Some(whole) = as_array(&array) else {
        return Err(Error::location(34435, format!("$reverseArray takes an array, not {}", array.type_name())));
    };
    let mut reversed = RawArrayBuf::new();
    elements(whole)?.into_iter().rev().for_each(|element| reversed.push(element));
    Ok(reversed.into())
}
