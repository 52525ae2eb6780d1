//! `{$strLenCP: string}`: how many code points a string has.
//!
//! Null is refused. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/aggregation/strLenCP/>.

use super::operand::{count, function};
use super::{Environment, Operator};
use crate::document::Value;
use crate::error::{Error, Result};
use bson::RawBsonRef;

pub(super) const OPERATOR: Operator =
    Operator { name: "$strLenCP", parse: |argument, parser| function("$strLenCP", argument, parser, str_len_cp) };

fn str_len_cp<'v>([value]: [Value<'v>; 1], _: &Environment) -> Result<Value<'v>> {
    match value.get() {
        Some(RawBsonRef::String(text)) => Ok(count(text.chars().count())),
        _ => Err(Error::location(34471, format!("$strLenCP takes a string, not {}", value.type_name()))),
    }
}
