//! When a document gets too large: bytes, days and dates.

use crate::size::{MAX_DOCUMENT_BYTES, array_bytes};
use jiff::ToSpan;
use jiff::civil::Date;
use serde::Serialize;

/// The size at which a document is worth a look.
pub const ONE_MB: u64 = 1_000_000;

/// Dates further away are not told.
const MAX_DAYS: f64 = 365.0 * 200.0;

/// How the largest document grows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Forecast {
    /// Bytes with the declared largest number of children.
    pub largest_bytes: u64,
    /// Bytes that the busiest parent gains in a day.
    pub bytes_per_day: f64,
    /// When a new busiest parent meets 1 MB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub one_mb: Option<Reach>,
    /// When it meets 16 MiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sixteen_mib: Option<Reach>,
}

/// A moment at which a size is met.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Reach {
    /// Days from the start.
    pub days: f64,
    /// The date.
    #[serde(serialize_with = "date_text")]
    pub date: Date,
}

fn date_text<S: serde::Serializer>(date: &Date, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(date)
}

/// The forecast for a parent of `parent_bytes` that gains `per_day` elements of `element_bytes` (their keys included),
/// counted from `today`; `bound` is the most elements it can have.
pub fn forecast(
    parent_bytes: u64,
    element_bytes: u64,
    per_day: f64,
    largest: u64,
    bound: Option<u64>,
    today: Date,
) -> Forecast {
    let bytes_per_day = per_day * element_bytes as f64;
    let ceiling = bound.map(|bound| parent_bytes.saturating_add(bound.saturating_mul(element_bytes)));
    let reach = |size: u64| {
        if bytes_per_day <= 0.0 || ceiling.is_some_and(|ceiling| ceiling < size) {
            return None;
        }
        let days = size.saturating_sub(parent_bytes) as f64 / bytes_per_day;
        if days > MAX_DAYS {
            return None;
        }
        let date = today.checked_add((days.floor() as i64).days()).ok()?;
        Some(Reach { days, date })
    };
    Forecast {
        largest_bytes: parent_bytes.saturating_add(largest.saturating_mul(element_bytes)),
        bytes_per_day,
        one_mb: reach(ONE_MB),
        sixteen_mib: reach(MAX_DOCUMENT_BYTES),
    }
}

/// The bytes that `count` values of `value` bytes take in an array, keys included, per element.
pub fn element_bytes(count: u64, value: u64) -> u64 {
    array_bytes(count.max(1), value).div_ceil(count.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::civil::date;

    #[test]
    fn messages_of_200_bytes_fill_their_channel_in_about_840_and_84_days() {
        let today = date(2026, 1, 1);
        let slow = forecast(60, 200, 100.0, 0, None, today).sixteen_mib.expect("a date");
        assert!((slow.days - 840.0).abs() < 5.0, "{slow:?}");
        assert_eq!(slow.date, date(2028, 4, 18));
        let fast = forecast(60, 200, 1_000.0, 0, None, today).sixteen_mib.expect("a date");
        assert!((fast.days - 84.0).abs() < 0.5, "{fast:?}");
        assert_eq!(fast.date, date(2026, 3, 25));
    }

    #[test]
    fn what_is_bounded_meets_no_limit() {
        let forecast = forecast(60, 200, 100.0, 500, Some(1_000), date(2026, 1, 1));
        assert_eq!((forecast.one_mb, forecast.sixteen_mib), (None, None));
        assert_eq!(forecast.largest_bytes, 100_060);
    }
}
