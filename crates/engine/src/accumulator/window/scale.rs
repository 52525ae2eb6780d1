//! `$minMaxScaler`: a number scaled so that the frame's lowest becomes `min` (0) and its highest `max` (1).
//!
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/aggregation/minMaxScaler/>.

use super::Rows;
use crate::document::number::Number;
use crate::document::{Value, type_name};
use crate::error::{Error, Result};
use std::ops::Range;

pub(super) fn min_max(
    rows: &Rows<'_>,
    frames: &[Range<usize>],
    low: &Value<'static>,
    high: &Value<'static>,
) -> Result<Vec<Value<'static>>> {
    let low = number(low)?;
    let span = number(high)?.subtract(low);
    let mut results = Vec::with_capacity(frames.len());
    let mut known: Option<(Range<usize>, Number, Number)> = None;
    for (row, frame) in frames.iter().enumerate() {
        let current = number(&rows.operands[row])?;
        if known.as_ref().is_none_or(|(range, ..)| range != frame) {
            let (mut least, mut most) = (current, current);
            for value in &rows.operands[frame.clone()] {
                let value = number(value)?;
                if value.compare(least).is_lt() {
                    least = value;
                }
                if value.compare(most).is_gt() {
                    most = value;
                }
            }
            known = Some((frame.clone(), least, most));
        }
        let (_, least, most) = known.as_ref().expect("just set");
        let range = most.subtract(*least);
        results.push(if range.is_zero() {
            low.into()
        } else {
            current.subtract(*least).divide(range).multiply(span).add(low).into()
        });
    }
    Ok(results)
}

fn number(value: &Value<'_>) -> Result<Number> {
    Number::of(value.or_null()).ok_or_else(|| {
        Error::location(10_487_001, format!("$minMaxScaler takes numbers, not {}", type_name(value.or_null())))
    })
}
