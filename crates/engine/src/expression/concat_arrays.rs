//! `{$concatArrays: [array, …]}`: arrays one after another; null when one of them is null or missing.
//!
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/aggregation/concatArrays/>.

use super::operand::{ANY_COUNT, as_array, variadic};
use super::{Environment, Operator};
use crate::document::Value;
use crate::error::{Error, Result};
use bson::RawArrayBuf;

pub(super) const OPERATOR: Operator = Operator {
    name: "$concatArrays",
    parse: |argument, parser| variadic("$concatArrays", argument, ANY_COUNT, parser, concat_arrays),
};

fn concat_arrays<'v>(values: Vec<Value<'v>>, _: &Environment) -> Result<Value<'v>> {
    let mut joined = RawArrayBuf::new();
    for value in &values {
        if value.is_nullish() {
            return Ok(Value::NULL);
        }
        let Some(array) = as_array(value) else {
            return Err(Error::location(28664, format!("$concatArrays only takes arrays, not {}", value.type_name())));
        };
        for element in array {
            joined.push(element?);
        }
    }
    Ok(joined.into())
}
