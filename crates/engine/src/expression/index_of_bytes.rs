//! `{$indexOfBytes: [string, part, start, end]}`: the byte position where a string first holds another one, or -1.
//!
//! The part must lie within `[start, end)`. Null when the string is null or missing. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/aggregation/indexOfBytes/>.

use super::operand::{count, variadic, whole_i32};
use super::{Environment, Operator};
use crate::document::{Value, type_name};
use crate::error::{Error, Result};
use bson::RawBsonRef;

pub(super) const OPERATOR: Operator = Operator {
    name: "$indexOfBytes",
    parse: |argument, parser| variadic("$indexOfBytes", argument, 2..=4, parser, index_of_bytes),
};

/// The operands of `$indexOfBytes` and `$indexOfCP`.
pub(super) struct Search<'v> {
    pub(super) text: &'v str,
    pub(super) part: &'v str,
    pub(super) start: usize,
    /// `usize::MAX` when it is not given.
    pub(super) end: usize,
}

/// Reads the operands; `None` when the string is null.
pub(super) fn search<'v>(
    name: &str,
    values: &'v [Value<'_>],
    not_string: i32,
    not_part: i32,
) -> Result<Option<Search<'v>>> {
    if values[0].is_nullish() {
        return Ok(None);
    }
    let text_of = |value: &'v Value<'_>, number, which| match value.get() {
        Some(RawBsonRef::String(text)) => Ok(text),
        _ => Err(Error::location(
            number,
            format!("{name} takes a string as its {which} argument, not {}", value.type_name()),
        )),
    };
    let text = text_of(&values[0], not_string, "first")?;
    let part = text_of(&values[1], not_part, "second")?;
    let bound = |position: usize, default, which| {
        values.get(position).map_or(Ok(default), |value| index(name, value.or_null(), which))
    };
    Ok(Some(Search { text, part, start: bound(2, 0, "starting")?, end: bound(3, usize::MAX, "ending")? }))
}

fn index(name: &str, value: RawBsonRef<'_>, which: &str) -> Result<usize> {
    let number = whole_i32(value).ok_or_else(|| {
        Error::location(
            40096,
            format!("{name} takes a whole number as its {which} index, not a value of type {}", type_name(value)),
        )
    })?;
    usize::try_from(number)
        .map_err(|_| Error::location(40097, format!("{name} takes a {which} index of at least 0, not {number}")))
}

fn index_of_bytes<'v>(values: Vec<Value<'v>>, _: &Environment) -> Result<Value<'v>> {
    let Some(Search { text, part, start, end }) = search("$indexOfBytes", &values, 40091, 40092)? else {
        return Ok(Value::NULL);
    };
    let end = end.min(text.len());
    if start > end {
        return Ok(Value::from(-1));
    }
    let (window, part) = (&text.as_bytes()[start..end], part.as_bytes());
    let found = if part.is_empty() { Some(0) } else { window.windows(part.len()).position(|bytes| bytes == part) };
    Ok(found.map_or(Value::from(-1), |position| count(start + position)))
}
