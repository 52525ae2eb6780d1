//! `{$concat: [string, …]}`: strings one after another; null when one of them is null or missing.
//!
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/aggregation/concat/>.

use super::operand::{ANY_COUNT, string, variadic};
use super::{Environment, Operator};
use crate::document::{Value, type_name};
use crate::error::{Error, Result};
use bson::RawBsonRef;

pub(super) const OPERATOR: Operator =
    Operator { name: "$concat", parse: |argument, parser| variadic("$concat", argument, ANY_COUNT, parser, concat) };

fn concat<'v>(values: Vec<Value<'v>>, _: &Environment) -> Result<Value<'v>> {
    let mut joined = String::new();
    for value in &values {
        match value.get() {
            None | Some(RawBsonRef::Null | RawBsonRef::Undefined) => return Ok(Value::NULL),
            Some(RawBsonRef::String(text)) => joined.push_str(text),
            Some(other) => {
                return Err(Error::location(16702, format!("$concat only takes strings, not {}", type_name(other))));
            }
        }
    }
    string(joined)
}
