//! `{$range: [start, end, step]}`: whole numbers from `start` on, before `end`, `step` (1) apart.
//!
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/aggregation/range/>.

use super::operand::{is_number, variadic, whole_i32};
use super::{Environment, Operator};
use crate::document::Value;
use crate::error::{Code, Error, Result};
use bson::RawArrayBuf;

pub(super) const OPERATOR: Operator =
    Operator { name: "$range", parse: |argument, parser| variadic("$range", argument, 2..=3, parser, range) };

/// The most numbers that one `$range` makes: their array stays within 100 MiB.
const MAX_NUMBERS: i64 = 4_000_000;

fn range<'v>(values: Vec<Value<'v>>, _: &Environment) -> Result<Value<'v>> {
    let start = i64::from(bound(&values[0], 34443, 34444, "starting value")?);
    let end = i64::from(bound(&values[1], 34445, 34446, "ending value")?);
    let step = values.get(2).map_or(Ok(1), |step| bound(step, 34447, 34448, "step value"))?;
    let step = i64::from(step);
    if step == 0 {
        return Err(Error::location(34449, "$range takes a step value other than 0"));
    }
    let mut numbers = RawArrayBuf::new();
    let (mut next, mut count) = (start, 0);
    while if step > 0 { next < end } else { next > end } {
        numbers.push(i32::try_from(next).expect("between two 32-bit bounds"));
        next += step;
        count += 1;
        if count > MAX_NUMBERS {
            return Err(Error::new(
                Code(146),
                "$range would make more than 4,000,000 numbers: take a narrower range or a larger step",
            ));
        }
    }
    Ok(numbers.into())
}

fn bound(value: &Value<'_>, not_number: i32, not_whole: i32, what: &str) -> Result<i32> {
    let given = value.or_null();
    if !is_number(given) {
        return Err(Error::location(
            not_number,
            format!("$range takes a number as its {what}, not {}", value.type_name()),
        ));
    }
    whole_i32(given).ok_or_else(|| Error::location(not_whole, format!("$range takes a 32-bit integer as its {what}")))
}
