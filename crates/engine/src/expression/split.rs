//! `{$split: [string, delimiter]}`: the parts of a string between the delimiters, as an array.
//!
//! Null when an argument is null or missing. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/aggregation/split/>.

use super::operand::function;
use super::{Environment, Operator};
use crate::document::Value;
use crate::error::{Error, Result};
use bson::{RawArrayBuf, RawBsonRef};

pub(super) const OPERATOR: Operator =
    Operator { name: "$split", parse: |argument, parser| function("$split", argument, parser, split) };

fn split<'v>([text, delimiter]: [Value<'v>; 2], _: &Environment) -> Result<Value<'v>> {
    if text.is_nullish() || delimiter.is_nullish() {
        return Ok(Value::NULL);
    }
    let string_of = |value: &Value<'v>, number: i32, which: &str| match value.get() {
        Some(RawBsonRef::String(text)) => Ok(text.to_owned()),
        _ => Err(Error::location(
            number,
            format!("$split takes a string as its {which} argument, not {}", value.type_name()),
        )),
    };
    let text = string_of(&text, 40085, "first")?;
    let delimiter = string_of(&delimiter, 10_503_900, "second")?;
    if delimiter.is_empty() {
        return Err(Error::location(40087, "$split needs a delimiter that is not empty"));
    }
    let mut parts = RawArrayBuf::new();
    text.split(delimiter.as_str()).for_each(|part| parts.push(part));
    Ok(parts.into())
}
