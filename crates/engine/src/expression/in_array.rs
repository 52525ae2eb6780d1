//! `{$in: [value, array]}`: whether an array holds a value.
//!
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/aggregation/in/>.

use super::operand::{as_array, comparison};
use super::{Environment, Operator};
use crate::document::{Value, values_equal};
use crate::error::{Error, Result};

pub(super) const OPERATOR: Operator =
    Operator { name: "$in", parse: |argument, parser| comparison("$in", argument, parser, in_array) };

fn in_array<'v>([value, array]: [Value<'v>; 2], environment: &Environment) -> Result<Value<'v>> {
    let Some(whole) = as_array(&array) else {
        return Err(Error::location(
            40081,
            format!("$in takes an array as its second argument, not {}", array.type_name()),
        ));
    };
    let Some(value) = value.get() else { return Ok(Value::from(false)) };
    for element in whole {
        if values_equal(value, element?, environment.collator())? {
            return Ok(Value::from(true));
        }
    }
    Ok(Value::from(false))
}
