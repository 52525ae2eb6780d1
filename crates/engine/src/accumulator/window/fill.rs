//! `$locf` and `$linearFill`: nulls and missing values filled from the rows around them.
//!
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/aggregation/locf/> and `linearFill`.

use super::Rows;
use crate::document::number::Number;
use crate::document::{Value, type_name};
use crate::error::{Error, Result};
use bson::RawBsonRef;

pub(super) fn last_carried_forward(rows: &Rows<'_>) -> Vec<Value<'static>> {
    let mut last = Value::NULL;
    rows.operands
        .iter()
        .map(|value| {
            if !value.is_nullish() {
                last = value.clone();
            }
            last.clone()
        })
        .collect()
}

pub(super) fn linear(rows: &Rows<'_>) -> Result<Vec<Value<'static>>> {
    let mut filled: Vec<Value<'static>> = Vec::with_capacity(rows.len());
    let mut known: Option<(usize, Number)> = None;
    let mut last_time: Option<Number> = None;
    for row in 0..rows.len() {
        let time = position(rows.time(row))?;
        if last_time.is_some_and(|last| last.compare(time).is_eq()) {
            return Err(Error::location(6_050_106, "$linearFill needs sortBy values that differ from row to row"));
        }
        last_time = Some(time);
        let value = &rows.operands[row];
        if value.is_nullish() {
            filled.push(Value::NULL);
            continue;
        }
        let number = Number::of(value.or_null()).ok_or_else(|| {
            Error::location(
                6_050_201,
                format!("$linearFill takes numbers and nulls, not {}", type_name(value.or_null())),
            )
        })?;
        if let Some((from, first)) = known {
            for (gap, value) in filled.iter_mut().enumerate().skip(from + 1) {
                *value = between(rows, (from, first), (row, number), gap)?.into();
            }
        }
        known = Some((row, number));
        filled.push(value.clone());
    }
    Ok(filled)
}

/// The value at a row on the line between two others.
fn between(rows: &Rows<'_>, left: (usize, Number), right: (usize, Number), row: usize) -> Result<Number> {
    let (start, end) = (position(rows.time(left.0))?, position(rows.time(right.0))?);
    let at = position(rows.time(row))?;
    let rise = right.1.subtract(left.1).multiply(at.subtract(start));
    Ok(left.1.add(rise.divide(end.subtract(start))))
}

/// The sort key as a place on the line.
fn position(value: &Value<'_>) -> Result<Number> {
    match value.or_null() {
        RawBsonRef::DateTime(date) => Ok(Number::Int64(date.timestamp_millis())),
        other => Number::of(other).ok_or_else(|| {
            Error::location(
                6_050_202,
                format!("$linearFill needs a sortBy field that is a number or a date, not {}", type_name(other)),
            )
        }),
    }
}
