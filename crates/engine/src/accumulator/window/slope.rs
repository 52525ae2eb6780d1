//! `$derivative` and `$integral`: the operand as a curve over the sort key.
//!
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/aggregation/derivative/> and `integral`.

use super::Rows;
use crate::document::number::Number;
use crate::document::{Value, type_name};
use crate::error::{Error, Result};
use bson::RawBsonRef;
use std::ops::Range;

/// The slope between the frame's first and last row; null with one row, or when their times are equal.
pub(super) fn derivative(
    rows: &Rows<'_>,
    frames: &[Range<usize>],
    unit_millis: Option<i64>,
) -> Result<Vec<Value<'static>>> {
    let mut results = Vec::with_capacity(frames.len());
    for frame in frames {
        if frame.len() < 2 {
            results.push(Value::NULL);
            continue;
        }
        let (first, last) = (frame.start, frame.end - 1);
        let run = time("$derivative", rows.time(last), unit_millis)?.subtract(time(
            "$derivative",
            rows.time(first),
            unit_millis,
        )?);
        let (from, to) = (&rows.operands[first], &rows.operands[last]);
        if from.is_nullish() || to.is_nullish() || run.is_zero() {
            results.push(Value::NULL);
            continue;
        }
        let rise = difference(to, from)?;
        let slope = rise.divide(run);
        results.push(unit_millis.map_or(slope, |unit| slope.multiply(Number::Int64(unit))).into());
    }
    Ok(results)
}

fn difference(to: &Value<'_>, from: &Value<'_>) -> Result<Number> {
    let number = |value: &Value<'_>| match value.or_null() {
        RawBsonRef::DateTime(date) => Ok(Number::Int64(date.timestamp_millis())),
        other => Number::of(other)
            .ok_or_else(|| Error::type_mismatch(format!("$derivative takes numbers, not {}", type_name(other)))),
    };
    Ok(number(to)?.subtract(number(from)?))
}

/// A sort key as a number, of milliseconds with a unit.
fn time(name: &str, value: &Value<'_>, unit_millis: Option<i64>) -> Result<Number> {
    match (value.or_null(), unit_millis) {
        (RawBsonRef::DateTime(date), Some(_)) => Ok(Number::Int64(date.timestamp_millis())),
        (other, Some(_)) => Err(Error::location(
            5_624_900,
            format!("{name} with a unit needs a sortBy field that is a date, not {}", type_name(other)),
        )),
        (RawBsonRef::DateTime(_), None) => {
            Err(Error::location(5_624_901, format!("{name} over a sortBy field that is a date needs a unit")))
        }
        (other, None) => Number::of(other).ok_or_else(|| {
            Error::location(
                5_624_902,
                format!("{name} needs a sortBy field that is a number, not {}", type_name(other)),
            )
        }),
    }
}

/// The area under the curve over the frame by trapezoids; rows that are no numbers are passed over.
pub(super) fn integral(
    rows: &Rows<'_>,
    frames: &[Range<usize>],
    unit_millis: Option<i64>,
) -> Result<Vec<Value<'static>>> {
    let mut results = Vec::with_capacity(frames.len());
    let mut points = Vec::with_capacity(rows.len());
    for row in 0..rows.len() {
        let at = time("$integral", rows.time(row), unit_millis)?;
        points.push(rows.operands[row].get().and_then(Number::of).map(|height| (at, height)));
    }
    for frame in frames {
        let mut known = points[frame.clone()].iter().flatten();
        let Some(mut left) = known.next() else {
            results.push(Value::NULL);
            continue;
        };
        let mut doubled = Number::Int32(0);
        for right in known {
            doubled = doubled.add(right.0.subtract(left.0).multiply(right.1.add(left.1)));
            left = right;
        }
        let doubled = unit_millis.map_or(doubled, |unit| doubled.divide(Number::Int64(unit)));
        results.push(doubled.divide(Number::Double(2.0)).into());
    }
    Ok(results)
}
