//! `{$binarySize: value}`: how many bytes a string or a binary value holds; null for null.
//!
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/aggregation/binarySize/>.

use super::operand::{count, function};
use super::{Environment, Operator};
use crate::document::Value;
use crate::error::{Error, Result};
use bson::RawBsonRef;

pub(super) const OPERATOR: Operator =
    Operator { name: "$binarySize", parse: |argument, parser| function("$binarySize", argument, parser, binary_size) };

fn binary_size<'v>([value]: [Value<'v>; 1], _: &Environment) -> Result<Value<'v>> {
    match value.get() {
        None | Some(RawBsonRef::Null | RawBsonRef::Undefined) => Ok(Value::NULL),
        Some(RawBsonRef::String(text)) => Ok(count(text.len())),
        Some(RawBsonRef::Binary(binary)) => Ok(count(binary.bytes.len())),
        Some(_) => Err(Error::location(
            51276,
            format!("$binarySize takes a string or a binary value, not {}", value.type_name()),
        )),
    }
}
