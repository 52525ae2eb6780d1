//! `{$substrCP: [string, start, count]}`: a part of a string, by code points.
//!
//! Other values are read as text, null as the empty string. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/aggregation/substrCP/>.

use super::operand::{function, is_number, whole_i32};
use super::{Environment, Operator, text};
use crate::document::{Value, type_name};
use crate::error::{Error, Result};

pub(super) const OPERATOR: Operator =
    Operator { name: "$substrCP", parse: |argument, parser| function("$substrCP", argument, parser, substr_cp) };

fn substr_cp<'v>([value, start, count]: [Value<'v>; 3], _: &Environment) -> Result<Value<'v>> {
    let text = text::coerce(&value)?;
    let start = bound(&start, 34450, 34451, "starting index")?;
    let count = bound(&count, 34452, 34453, "count")?;
    let negative =
        |number, what, given| Error::location(number, format!("$substrCP takes a {what} of at least 0, not {given}"));
    let count = usize::try_from(count).map_err(|_| negative(34454, "count", count))?;
    let start = usize::try_from(start).map_err(|_| negative(34455, "starting index", start))?;
    Ok(text.chars().skip(start).take(count).collect::<String>().into())
}

fn bound(value: &Value<'_>, not_number: i32, not_whole: i32, what: &str) -> Result<i32> {
    let value = value.or_null();
    if !is_number(value) {
        return Err(Error::location(
            not_number,
            format!("$substrCP takes a number as its {what}, not {}", type_name(value)),
        ));
    }
    whole_i32(value)
        .ok_or_else(|| Error::location(not_whole, format!("$substrCP takes a 32-bit integer as its {what}")))
}
