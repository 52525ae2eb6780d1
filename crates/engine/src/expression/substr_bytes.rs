//! `{$substrBytes: [string, start, length]}`: a part of a string, by bytes; a negative length means to the end.
//!
//! The bounds may not lie within a character. Other values are read as text, null as the empty string. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/aggregation/substrBytes/>.

use super::operand::{function, is_number};
use super::{Environment, Operator, text};
use crate::document::Value;
use crate::document::decimal::{Decimal, Round};
use crate::error::{Error, Result};
use bson::RawBsonRef;

pub(super) const OPERATOR: Operator = Operator {
    name: "$substrBytes",
    parse: |argument, parser| function("$substrBytes", argument, parser, substr_bytes),
};

pub(super) fn substr_bytes<'v>([value, start, length]: [Value<'v>; 3], _: &Environment) -> Result<Value<'v>> {
    let text = text::coerce(&value)?;
    let start = bound(start.or_null(), 16034, "starting index")?;
    let length = bound(length.or_null(), 16035, "length")?;
    let start = usize::try_from(start).map_err(|_| {
        Error::location(50752, format!("$substrBytes takes a starting index of at least 0, not {start}"))
    })?;
    let inside = |position: usize| position < text.len() && !text.is_char_boundary(position);
    if inside(start) {
        return Err(Error::location(28656, "the starting index of $substrBytes lies within a character"));
    }
    let end = usize::try_from(length).map_or(usize::MAX, |length| start.saturating_add(length));
    if inside(end) {
        return Err(Error::location(28657, "the ending index of $substrBytes lies within a character"));
    }
    if start >= text.len() {
        return Ok(String::new().into());
    }
    Ok(text[start..end.min(text.len())].to_owned().into())
}

/// A number as int64: a double is cut, a decimal rounded to even; a decimal out of range is the lowest int64.
fn bound(value: RawBsonRef<'_>, not_number: i32, what: &str) -> Result<i64> {
    match value {
        RawBsonRef::Double(number) => {
            if number >= -(2f64.powi(63)) && number < 2f64.powi(63) {
                return Ok(number as i64);
            }
            Err(Error::location(31109, format!("the {what} {number} of $substrBytes is out of range")))
        }
        RawBsonRef::Decimal128(decimal) => Ok(Decimal::from(decimal)
            .round_to_integer(Round::HalfEven)
            .to_i128_truncated()
            .and_then(|number| i64::try_from(number).ok())
            .unwrap_or(i64::MIN)),
        RawBsonRef::Int32(number) => Ok(number.into()),
        RawBsonRef::Int64(number) => Ok(number),
        other => {
            debug_assert!(!is_number(other));
            Err(Error::location(
                not_number,
                format!("$substrBytes takes a number as its {what}, not {}", crate::document::type_name(other)),
            ))
        }
    }
}
