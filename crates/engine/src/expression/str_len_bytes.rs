//! `{$strLenBytes: string}`: how many bytes a string has.
//!
//! Null is refused. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/aggregation/strLenBytes/>.

use super::operand::{count, function};
use super::{Environment, Operator};
use crate::document::Value;
use crate::error::{Error, Result};
use bson::RawBsonRef;

pub(super) const OPERATOR: Operator = Operator {
    name: "$strLenBytes",
    parse: |argument, parser| function("$strLenBytes", argument, parser, str_len_bytes),
};

fn str_len_bytes<'v>([value]: [Value<'v>; 1], _: &Environment) -> Result<Value<'v>> {
    match value.get() {
        Some(RawBsonRef::String(text)) => Ok(count(text.len())),
        _ => Err(Error::location(34473, format!("$strLenBytes takes a string, not {}", value.type_name()))),
    }
}
