//! `{$anyElementTrue: [array]}`: whether an element of an array is true; none is in an empty one.
//!
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/aggregation/anyElementTrue/>.

use super::operand::{as_array, function};
use super::{Environment, Operator};
use crate::document::Value;
use crate::error::{Error, Result};

pub(super) const OPERATOR: Operator = Operator {
    name: "$anyElementTrue",
    parse: |argument, parser| function("$anyElementTrue", argument, parser, any_element_true),
};

fn any_element_true<'v>([array]: [Value<'v>; 1], _: &Environment) -> Result<Value<'v>> {
    let Some(whole) = as_array(&array) else {
        return Err(Error::location(17041, format!("$anyElementTrue takes an array, not {}", array.type_name())));
    };
    for element in whole {
        let value = Value::Borrowed(element?);
        if value.is_true() {
            return Ok(Value::from(true));
        }
    }
    Ok(Value::from(false))
}
