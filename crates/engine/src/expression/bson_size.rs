//! `{$bsonSize: object}`: how many bytes an object takes as BSON; null for null.
//!
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/aggregation/bsonSize/>.

use super::operand::{count, function};
use super::{Environment, Operator};
use crate::document::Value;
use crate::error::{Error, Result};
use bson::RawBsonRef;

pub(super) const OPERATOR: Operator =
    Operator { name: "$bsonSize", parse: |argument, parser| function("$bsonSize", argument, parser, bson_size) };

fn bson_size<'v>([value]: [Value<'v>; 1], _: &Environment) -> Result<Value<'v>> {
    match value.get() {
        None | Some(RawBsonRef::Null | RawBsonRef::Undefined) => Ok(Value::NULL),
        Some(RawBsonRef::Document(document)) => Ok(count(document.as_bytes().len())),
        Some(_) => Err(Error::location(31393, format!("$bsonSize takes an object, not {}", value.type_name()))),
    }
}
