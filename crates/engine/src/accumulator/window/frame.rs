//! Which rows a row sees: bounds by position (`documents`) or by the sort key's value (`range`).

use super::Rows;
use crate::document::number::Number;
use crate::document::{Value, type_name};
use crate::error::{Error, Result};
use bson::RawBsonRef;
use jiff::{Span, Timestamp, tz::TimeZone};
use std::cmp::Ordering;
use std::ops::Range;

/// A unit of time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// A thousandth of a second.
    Millisecond,
    /// A second.
    Second,
    /// 60 seconds.
    Minute,
    /// 60 minutes.
    Hour,
    /// 24 hours.
    Day,
    /// 7 days.
    Week,
    /// A calendar month.
    Month,
    /// 3 months.
    Quarter,
    /// 12 months.
    Year,
}

impl Unit {
    /// The unit of that name.
    pub fn named(name: &str) -> Option<Unit> {
        Some(match name {
            "millisecond" => Unit::Millisecond,
            "second" => Unit::Second,
            "minute" => Unit::Minute,
            "hour" => Unit::Hour,
            "day" => Unit::Day,
            "week" => Unit::Week,
            "month" => Unit::Month,
            "quarter" => Unit::Quarter,
            "year" => Unit::Year,
            _ => return None,
        })
    }

    /// Its length, where that is always the same.
    pub fn millis(self) -> Option<i64> {
        Some(match self {
            Unit::Millisecond => 1,
            Unit::Second => 1000,
            Unit::Minute => 60_000,
            Unit::Hour => 3_600_000,
            Unit::Day => 86_400_000,
            Unit::Week => 7 * 86_400_000,
            Unit::Month | Unit::Quarter | Unit::Year => return None,
        })
    }

    fn months(self) -> i64 {
        match self {
            Unit::Month => 1,
            Unit::Quarter => 3,
            _ => 12,
        }
    }

    /// A moment that many units later; `None` when out of range.
    pub fn after(self, millis: i64, count: i64) -> Option<i64> {
        if let Some(unit) = self.millis() {
            return millis.checked_add(unit.checked_mul(count)?);
        }
        let moment = Timestamp::from_millisecond(millis).ok()?;
        let civil = TimeZone::UTC.to_datetime(moment);
        let span = Span::new().try_months(count.checked_mul(self.months())?).ok()?;
        TimeZone::UTC.to_timestamp(civil.checked_add(span).ok()?).ok().map(Timestamp::as_millisecond)
    }
}

/// One end of a frame.
#[derive(Clone, Copy, Debug)]
pub enum Bound<T> {
    /// The partition's end.
    Unbounded,
    /// The row itself; for ranges all rows with an equal key.
    Current,
    /// So much away from the row, before it when negative.
    Offset(T),
}

/// The bounds of all frames.
#[derive(Clone, Debug)]
pub enum Bounds {
    /// By position.
    Documents(Bound<i64>, Bound<i64>),
    /// By the value of the (single, ascending) sort key; with a unit it is a date.
    Range(Bound<Number>, Bound<Number>, Option<Unit>),
}

impl Bounds {
    /// The whole partition.
    pub const WHOLE: Bounds = Bounds::Documents(Bound::Unbounded, Bound::Unbounded);

    /// Whether rows leave the frame.
    pub fn slides(&self) -> bool {
        !matches!(self, Bounds::Documents(Bound::Unbounded, _) | Bounds::Range(Bound::Unbounded, _, _))
    }

    /// The frame of each row.
    ///
    /// # Errors
    /// For ranges, when a sort key is no number, or with a unit no date.
    pub fn frames(&self, rows: &Rows<'_>) -> Result<Vec<Range<usize>>> {
        match self {
            Bounds::Documents(lower, upper) => Ok(by_position(*lower, *upper, rows.len())),
            Bounds::Range(lower, upper, unit) => by_value(*lower, *upper, *unit, rows),
        }
    }
}

fn by_position(lower: Bound<i64>, upper: Bound<i64>, length: usize) -> Vec<Range<usize>> {
    let at = |row: usize, offset: i64| (row as i64).saturating_add(offset).clamp(0, length as i64) as usize;
    (0..length)
        .map(|row| {
            let start = match lower {
                Bound::Unbounded => 0,
                Bound::Current => row,
                Bound::Offset(offset) => at(row, offset),
            };
            let end = match upper {
                Bound::Unbounded => length,
                Bound::Current => row + 1,
                Bound::Offset(offset) => at(row, offset.saturating_add(1)),
            };
            start..end.max(start)
        })
        .collect()
}

fn by_value(
    lower: Bound<Number>,
    upper: Bound<Number>,
    unit: Option<Unit>,
    rows: &Rows<'_>,
) -> Result<Vec<Range<usize>>> {
    let times = (0..rows.len()).map(|row| time(rows.time(row), unit)).collect::<Result<Vec<_>>>()?;
    let (mut start, mut end) = (0, 0);
    let mut frames = Vec::with_capacity(times.len());
    for current in &times {
        if let Some(limit) = limit(*current, lower, unit)? {
            while start < times.len() && times[start].compare(limit) == Ordering::Less {
                start += 1;
            }
        }
        match limit(*current, upper, unit)? {
            Some(limit) => {
                while end < times.len() && times[end].compare(limit) != Ordering::Greater {
                    end += 1;
                }
            }
            None => end = times.len(),
        }
        frames.push(start..end.max(start));
    }
    Ok(frames)
}

/// The sort key's value as a number: of milliseconds when there is a unit.
fn time(value: &Value<'_>, unit: Option<Unit>) -> Result<Number> {
    match (value.or_null(), unit) {
        (RawBsonRef::DateTime(date), Some(_)) => Ok(Number::Int64(date.timestamp_millis())),
        (other, Some(_)) => Err(Error::location(
            5_429_513,
            format!("a range with a unit needs a sortBy field that is a date, not {}", type_name(other)),
        )),
        (RawBsonRef::DateTime(_), None) => {
            Err(Error::location(5_429_413, "a range over a sortBy field that is a date needs a unit"))
        }
        (other, None) => Number::of(other).ok_or_else(|| {
            Error::location(
                5_429_414,
                format!("a range needs a sortBy field that is a number, not {}", type_name(other)),
            )
        }),
    }
}

/// The value at a bound; `None` where the partition's end is the bound.
fn limit(current: Number, bound: Bound<Number>, unit: Option<Unit>) -> Result<Option<Number>> {
    Ok(match (bound, unit) {
        (Bound::Unbounded, _) => None,
        (Bound::Current, _) => Some(current),
        (Bound::Offset(offset), None) => Some(current.add(offset)),
        (Bound::Offset(offset), Some(unit)) => {
            let moved = unit.after(current.to_i64_truncated(), offset.to_i64_truncated());
            Some(Number::Int64(
                moved.ok_or_else(|| Error::location(5_429_415, "a bound of the range is out of the range of dates"))?,
            ))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_by_position_stay_within_the_partition() {
        let frames = by_position(Bound::Offset(-1), Bound::Offset(1), 3);
        assert_eq!(frames, [0..2, 0..3, 1..3]);
        let frames = by_position(Bound::Offset(2), Bound::Offset(3), 3);
        assert_eq!(frames, [2..3, 3..3, 3..3]);
        let frames = by_position(Bound::Unbounded, Bound::Current, 2);
        assert_eq!(frames, [0..1, 0..2]);
    }

    #[test]
    fn frames_by_value_hold_all_rows_within_the_distance() {
        let keys: Vec<Vec<Value<'static>>> = [1, 2, 2, 5, 6].map(|key| vec![Value::from(key)]).to_vec();
        let operands = vec![Value::NULL; 5];
        let rows = Rows { operands: &operands, keys: &keys, descending: &[false], collator: None };
        let bounds = Bounds::Range(Bound::Offset(Number::Int32(-1)), Bound::Current, None);
        assert_eq!(bounds.frames(&rows).unwrap(), [0..1, 0..3, 0..3, 3..4, 3..5]);
    }

    #[test]
    fn months_end_at_the_last_day_that_there_is() {
        let january_31 = 1_706_659_200_000; // 2024-01-31
        assert_eq!(Unit::Month.after(january_31, 1), Some(1_709_164_800_000)); // 2024-02-29
    }
}
