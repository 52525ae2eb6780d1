//! `$rank`, `$denseRank`, `$documentNumber` and `$shift`: places in the partition's order.
//!
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/aggregation/rank/>, `denseRank`, `documentNumber`
//! and `shift`.

use super::Rows;
use crate::document::order::compare_keys;
use crate::document::{Value, number::Number};
use crate::error::Result;
use std::cmp::Ordering;

/// What rows with equal keys get.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Ties {
    /// The same place, and the next row the place that it has without them.
    Gap,
    /// The same place, and the next row the next one.
    NoGap,
    /// Each its own.
    Apart,
}

pub(super) fn rank(rows: &Rows<'_>, ties: Ties) -> Result<Vec<Value<'static>>> {
    let mut place = 0;
    let mut places = Vec::with_capacity(rows.len());
    for row in 0..rows.len() {
        let tied = ties != Ties::Apart && row > 0 && same_key(rows, row - 1, row)?;
        if !tied {
            place = if ties == Ties::NoGap { place + 1 } else { row as i64 + 1 };
        }
        places.push(Number::int_or_long(place).into());
    }
    Ok(places)
}

fn same_key(rows: &Rows<'_>, a: usize, b: usize) -> Result<bool> {
    let order = compare_keys(
        rows.keys[a].iter().map(Value::or_null),
        rows.keys[b].iter().map(Value::or_null),
        rows.descending,
        rows.collator,
    )?;
    Ok(order == Ordering::Equal)
}

pub(super) fn shift(rows: &Rows<'_>, by: i64, default: &Value<'static>) -> Vec<Value<'static>> {
    (0..rows.len() as i64)
        .map(|row| {
            let shifted = row.checked_add(by).and_then(|row| usize::try_from(row).ok());
            let value = shifted.and_then(|row| rows.operands.get(row)).unwrap_or(default);
            if value.is_missing() { Value::NULL } else { value.clone() }
        })
        .collect()
}
