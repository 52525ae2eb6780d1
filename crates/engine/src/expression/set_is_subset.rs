//! `{$setIsSubset: [a, b]}`: whether all elements of one array are in another one.
//!
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/aggregation/setIsSubset/>.

use super::operand::{as_array, comparison};
use super::sets::ValueSet;
use super::{Environment, Operator};
use crate::document::Value;
use crate::error::{Error, Result};

pub(super) const OPERATOR: Operator = Operator {
    name: "$setIsSubset",
    parse: |argument, parser| comparison("$setIsSubset", argument, parser, set_is_subset),
};

fn set_is_subset<'v>([a, b]: [Value<'v>; 2], environment: &Environment) -> Result<Value<'v>> {
    let refuse = |number, which, value: &Value<'v>| {
        Error::location(
            number,
            format!("$setIsSubset takes an array as its {which} argument, not {}", value.type_name()),
        )
    };
    let first = as_array(&a).ok_or_else(|| refuse(17046, "first", &a))?;
    let second = as_array(&b).ok_or_else(|| refuse(17042, "second", &b))?;
    let whole = ValueSet::of(second, environment.collator())?;
    for element in first {
        if !whole.contains(element?)? {
            return Ok(Value::from(false));
        }
    }
    Ok(Value::from(true))
}
