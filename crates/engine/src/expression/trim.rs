//! `{$trim: {input, chars}}`: a string without the given characters at its beginning and end; white space by default.
//!
//! Null when an argument is null or missing. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/aggregation/trim/>.

use super::operand::{named, over_many, required};
use super::{Compiled, Environment, Operator, Parser, parse};
use crate::document::Value;
use crate::error::{Error, Result};
use bson::RawBsonRef;

pub(super) const OPERATOR: Operator = Operator {
    name: "$trim",
    parse: |argument, parser| parse_trim("$trim", argument, parser, |values, _| trim("$trim", values, true, true)),
};

/// The characters removed when none are given.
const WHITE_SPACE: &[char] = &[
    '\0', '\t', '\n', '\u{b}', '\u{c}', '\r', ' ', '\u{a0}', '\u{1680}', '\u{2000}', '\u{2001}', '\u{2002}',
    '\u{2003}', '\u{2004}', '\u{2005}', '\u{2006}', '\u{2007}', '\u{2008}', '\u{2009}', '\u{200a}',
];

/// Parses the arguments of `$trim`, `$ltrim` and `$rtrim`.
pub(super) fn parse_trim(
    name: &str,
    argument: RawBsonRef<'_>,
    parser: &mut Parser,
    compute: for<'v> fn(Vec<Value<'v>>, &Environment) -> Result<Value<'v>>,
) -> Result<Compiled> {
    let [input, chars] = named(name, argument, ["input", "chars"], 50696, 50694)?;
    let input = required(name, "input", input, 50695, parser)?;
    Ok(match chars {
        None => over_many(vec![input], compute),
        Some(chars) => over_many(vec![input, parse(chars, parser)?], compute),
    })
}

/// Removes the characters from the sides asked for.
pub(super) fn trim<'v>(name: &str, values: Vec<Value<'v>>, left: bool, right: bool) -> Result<Value<'v>> {
    let text_of = |value: &Value<'_>, number: i32, what: &str| match value.get() {
        Some(RawBsonRef::String(text)) => Ok(text.to_owned()),
        _ => Err(Error::location(number, format!("{name} takes a string as '{what}', not {}", value.type_name()))),
    };
    if values[0].is_nullish() {
        return Ok(Value::NULL);
    }
    let text = text_of(&values[0], 50699, "input")?;
    let given: Vec<char> = match values.get(1) {
        None => WHITE_SPACE.to_vec(),
        Some(chars) if chars.is_nullish() => return Ok(Value::NULL),
        Some(chars) => text_of(chars, 50700, "chars")?.chars().collect(),
    };
    let mut rest = text.as_str();
    if left {
        rest = rest.trim_start_matches(given.as_slice());
    }
    if right {
        rest = rest.trim_end_matches(given.as_slice());
    }
    Ok(Value::from(rest.to_owned()))
}
