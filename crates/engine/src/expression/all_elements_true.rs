//! `{$allElementsTrue: [array]}`: whether all elements of an array are true; so they are for an empty one.
//!
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/aggregation/allElementsTrue/>.

use super::operand::{as_array, function};
use super::{Environment, Operator};
use crate::document::Value;
use crate::error::{Error, Result};

pub(super) const OPERATOR: Operator = Operator {
    name: "$allElementsTrue",
    parse: |argument, parser| function("$allElementsTrue", argument, parser, all_elements_true),
};

fn all_elements_true<'v>([array]: [Value<'v>; 1], _: &Environment) -> Result<Value<'v>> {
    let Some(whole) = as_array(&array) else {
        return Err(Error::location(17040, format!("$allElementsTrue takes an array, not {}", array.type_name())));
    };
    for element in whole {
        let value = Value::Borrowed(element?);
        if !value.is_true() {
            return Ok(Value::from(false));
        }
    }
    Ok(Value::from(true))
}
