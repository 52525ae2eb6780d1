//! `{$setUnion: [array, …]}`: the distinct elements of all arrays, in BSON order.
//!
//! Null when an argument is null or missing. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/aggregation/setUnion/>.

use super::operand::{ANY_COUNT, as_array, comparison_over_many, constants_last};
use super::sets::ValueSet;
use super::{Environment, Operator, arguments};
use crate::document::Value;
use crate::error::{Error, Result};
use bson::RawArrayBuf;

pub(super) const OPERATOR: Operator = Operator {
    name: "$setUnion",
    parse: |argument, parser| {
        Ok(comparison_over_many(constants_last(arguments("$setUnion", argument, ANY_COUNT, parser)?), set_union))
    },
};

fn set_union<'v>(values: Vec<Value<'v>>, environment: &Environment) -> Result<Value<'v>> {
    let mut all = RawArrayBuf::new();
    for value in &values {
        if value.is_nullish() {
            return Ok(Value::NULL);
        }
        let Some(array) = as_array(value) else {
            return Err(Error::location(17043, format!("$setUnion only takes arrays, not {}", value.type_name())));
        };
        for element in array {
            all.push(element?);
        }
    }
    let mut union = RawArrayBuf::new();
    ValueSet::of(&all, environment.collator())?.elements().iter().for_each(|element| union.push(*element));
    Ok(union.into())
}
