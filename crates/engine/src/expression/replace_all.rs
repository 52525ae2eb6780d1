//! `{$replaceAll: {input, find, replacement}}`: a string with every occurrence of another one replaced.
//!
//! Null when an argument is null or missing. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/aggregation/replaceAll/>.

use super::operand::{named, over, required, string};
use super::{Compiled, Environment, Operator, Parser};
use crate::document::Value;
use crate::error::{Error, Result};
use bson::RawBsonRef;

pub(super) const OPERATOR: Operator = Operator {
    name: "$replaceAll",
    parse: |argument, parser| {
        parse_replace("$replaceAll", argument, parser, |values, _| {
            replace("$replaceAll", values, |text, find, replacement| text.replace(find, replacement))
        })
    },
};

/// Parses the arguments of `$replaceAll` and `$replaceOne`.
pub(super) fn parse_replace(
    name: &str,
    argument: RawBsonRef<'_>,
    parser: &mut Parser,
    compute: for<'v> fn([Value<'v>; 3], &Environment) -> Result<Value<'v>>,
) -> Result<Compiled> {
    let [input, find, replacement] = named(name, argument, ["input", "find", "replacement"], 51751, 51750)?;
    let input = required(name, "input", input, 51749, parser)?;
    let find = required(name, "find", find, 51748, parser)?;
    let replacement = required(name, "replacement", replacement, 51747, parser)?;
    Ok(over([input, find, replacement], compute))
}

/// Checks the values and replaces.
pub(super) fn replace<'v>(
    name: &str,
    values: [Value<'v>; 3],
    body: fn(&str, &str, &str) -> String,
) -> Result<Value<'v>> {
    let text_of = |value: &'_ Value<'v>, number: i32, what: &str| match value.get() {
        None | Some(RawBsonRef::Null | RawBsonRef::Undefined) => Ok(None),
        Some(RawBsonRef::String(text)) => Ok(Some(text.to_owned())),
        Some(_) => {
            Err(Error::location(number, format!("{name} takes a string as '{what}', not {}", value.type_name())))
        }
    };
    let input = text_of(&values[0], 10_503_904, "input")?;
    let find = text_of(&values[1], 10_503_901, "find")?;
    let replacement = text_of(&values[2], 10_503_902, "replacement")?;
    match (input, find, replacement) {
        (Some(input), Some(find), Some(replacement)) => string(body(&input, &find, &replacement)),
        _ => Ok(Value::NULL),
    }
}
