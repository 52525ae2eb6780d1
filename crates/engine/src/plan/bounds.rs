//! Bounds of an index scan: intervals of values for each field of the key, and the same as ranges of bytes.
//!
//! ```text
//!   {a: [1, 3), b: {"x", "y"}}            forward over {a: 1, b: -1}
//!
//!   a: ranges of bytes [enc 1, enc 3)     b: [!enc "y", after !enc "y"), [!enc "x", after !enc "x")
//! ```
//!
//! Encoded values are prefix-free, so that "all keys from this value on" and "all keys beyond this value" are both plain
//! byte strings. A scan whose fields are points, then one interval, then anything is one range of bytes as a whole;
//! every other scan looks at each key and seeks over what lies between its intervals.

use crate::document::collation::Collator;
use crate::error::Result;
use crate::filter::{Interval, Intervals};
use crate::key;
use crate::keyspace::after_prefix;
use bson::{RawBson, RawBsonRef};
use std::ops::Bound;

/// Half-open range of one field's bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ByteRange {
    /// The first bytes within.
    pub(super) start: Vec<u8>,
    /// The first bytes beyond.
    pub(super) end: Vec<u8>,
    /// Whether `start` is a whole value, so that the next field's bytes may follow it.
    pub(super) starts_at_value: bool,
    /// Whether it holds one value only.
    pub(super) is_point: bool,
}

/// One field's ranges in the order of bytes.
pub(crate) type FieldRanges = Vec<ByteRange>;

/// The ranges of one field of a key.
pub(super) fn ranges_of(intervals: &Intervals, descending: bool, collator: Option<&Collator>) -> Result<FieldRanges> {
    let mut ranges = Vec::with_capacity(intervals.0.len());
    for interval in &intervals.0 {
        ranges.push(range_of(interval, descending, collator)?);
    }
    if descending {
        ranges.reverse();
    }
    Ok(ranges)
}

fn range_of(interval: &Interval, descending: bool, collator: Option<&Collator>) -> Result<ByteRange> {
    let (first, last) = if descending { (&interval.high, &interval.low) } else { (&interval.low, &interval.high) };
    let (start, starts_at_value) = match first {
        Bound::Included(value) => (encoded(value, descending, collator)?, true),
        Bound::Excluded(value) => (beyond(&encoded(value, descending, collator)?), false),
        Bound::Unbounded => (key::LOWEST.to_vec(), false),
    };
    let end = match last {
        Bound::Included(value) => beyond(&encoded(value, descending, collator)?),
        Bound::Excluded(value) => encoded(value, descending, collator)?,
        Bound::Unbounded => key::HIGHEST.to_vec(),
    };
    let is_point = starts_at_value && end == beyond(&start);
    Ok(ByteRange { start, end, starts_at_value, is_point })
}

fn encoded(value: &RawBson, descending: bool, collator: Option<&Collator>) -> Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(16);
    key::encode(value.as_raw_bson_ref(), collator, &mut bytes)?;
    if descending {
        key::invert(&mut bytes);
    }
    Ok(bytes)
}

/// The least bytes above all that begin with an encoded value.
fn beyond(value: &[u8]) -> Vec<u8> {
    after_prefix(value).expect("no encoded value begins with FF")
}

/// Whether intervals hold one value only.
pub(super) fn is_point(intervals: &Intervals) -> bool {
    matches!(&intervals.0[..], [only] if only.as_point().is_some())
}

/// Whether all intervals hold one value each.
pub(super) fn are_points(intervals: &Intervals) -> bool {
    !intervals.0.is_empty() && intervals.0.iter().all(|interval| interval.as_point().is_some())
}

/// Whether intervals end at values that a collation orders: strings and what may hold them.
pub(super) fn depend_on_collation(intervals: &Intervals) -> bool {
    let depends = |bound: &Bound<RawBson>| match bound {
        Bound::Included(value) | Bound::Excluded(value) => matches!(
            value,
            RawBson::String(_)
                | RawBson::Symbol(_)
                | RawBson::Document(_)
                | RawBson::Array(_)
                | RawBson::JavaScriptCodeWithScope(_)
        ),
        Bound::Unbounded => false,
    };
    intervals.0.iter().any(|interval| depends(&interval.low) || depends(&interval.high))
}

/// The range of bytes that a scan reads when it is one, from all fields' ranges.
pub(super) fn single_range(fields: &[FieldRanges]) -> Option<(Vec<u8>, Vec<u8>)> {
    let mut prefix = Vec::new();
    let mut fields = fields.iter();
    let whole = loop {
        let Some(field) = fields.next() else { return Some((prefix.clone(), beyond(&prefix))) };
        let [range] = &field[..] else { return None };
        if !range.is_point {
            let with = |end: &[u8]| [&prefix[..], end].concat();
            break (with(&range.start), with(&range.end));
        }
        prefix.extend_from_slice(&range.start);
    };
    let is_all = |field: &FieldRanges| matches!(&field[..], [range] if range_is_all(range));
    fields.all(is_all).then_some(whole)
}

/// Into how many ranges of keys a scan falls; nothing if it passes over keys within them.
pub(super) fn places(fields: &[FieldRanges]) -> Option<usize> {
    let is_all = |field: &FieldRanges| matches!(&field[..], [range] if range_is_all(range));
    let mut count = 1_usize;
    let mut fields = fields.iter();
    for field in fields.by_ref() {
        count = count.saturating_mul(field.len());
        if !field.iter().all(|range| range.is_point) {
            break;
        }
    }
    fields.all(is_all).then_some(count)
}

/// Whether a range holds all values.
pub(super) fn range_is_all(range: &ByteRange) -> bool {
    let lowest = encoded(&RawBson::MinKey, false, None);
    let highest = encoded(&RawBson::MaxKey, false, None);
    let (Ok(lowest), Ok(highest)) = (lowest, highest) else { return false };
    if range.start == lowest || range.start == key::LOWEST {
        return range.end == beyond(&highest) || range.end == key::HIGHEST;
    }
    let inverted = |bytes: &[u8]| bytes.iter().map(|byte| !byte).collect::<Vec<u8>>();
    range.start == inverted(&highest) && range.end == beyond(&inverted(&lowest))
}

/// What a key of several fields says about where to go on.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Check {
    /// It is within all fields' ranges.
    Within,
    /// The next key that may be within begins at these bytes (going forward) or lies below them (going backward).
    Seek(Vec<u8>),
    /// There is none any more.
    Done,
}

/// Looks where a key's fields lie, going forward or backward.
pub(super) fn check(key: &[u8], fields: &[FieldRanges], descending: &[bool], backward: bool) -> Result<Check> {
    let mut at = 0;
    for (number, (ranges, descending)) in fields.iter().zip(descending).enumerate() {
        let length = key::skip(&key[at..], *descending)?;
        let value = &key[at..at + length];
        // The first range that ends beyond the value.
        let next = ranges.partition_point(|range| &range.end[..] <= value);
        let within = ranges.get(next).is_some_and(|range| &range.start[..] <= value);
        if within {
            at += length;
            continue;
        }
        let gone_through = if backward { next == 0 } else { next == ranges.len() };
        if gone_through {
            // Nothing of this field is left under the fields before it.
            if at == 0 {
                return Ok(Check::Done);
            }
            let prefix = &key[..at];
            return Ok(Check::Seek(if backward { prefix.to_vec() } else { beyond(prefix) }));
        }
        let mut target = key[..at].to_vec();
        if backward {
            target.extend_from_slice(&ranges[next - 1].end);
        } else {
            append_start(&mut target, &ranges[next], &fields[number + 1..]);
        }
        return Ok(Check::Seek(target));
    }
    Ok(Check::Within)
}

/// Appends where a range starts, and where the fields behind it do as long as that is known.
fn append_start(target: &mut Vec<u8>, range: &ByteRange, rest: &[FieldRanges]) {
    target.extend_from_slice(&range.start);
    let mut known = range.starts_at_value;
    for field in rest {
        let (true, Some(first)) = (known, field.first()) else { return };
        target.extend_from_slice(&first.start);
        known = first.starts_at_value;
    }
}

/// Where a scan starts and ends as a whole.
pub(super) fn envelope(fields: &[FieldRanges]) -> Option<(Vec<u8>, Vec<u8>)> {
    if let Some(whole) = single_range(fields) {
        return Some(whole);
    }
    if fields.iter().any(Vec::is_empty) {
        return None;
    }
    let (first, last) = (fields.first()?.first()?, fields.first()?.last()?);
    let mut start = Vec::new();
    append_start(&mut start, first, &fields[1..]);
    Some((start, last.end.clone()))
}

/// Intervals as `explain` shows them, in the direction in which they are read.
pub(super) fn describe(intervals: &Intervals, reversed: bool) -> Vec<String> {
    let mut shown: Vec<String> = intervals.0.iter().map(|interval| describe_interval(interval, reversed)).collect();
    if reversed {
        shown.reverse();
    }
    shown
}

fn describe_interval(interval: &Interval, reversed: bool) -> String {
    let (first, last) = if reversed { (&interval.high, &interval.low) } else { (&interval.low, &interval.high) };
    let (low, high) = if reversed { ("MaxKey", "MinKey") } else { ("MinKey", "MaxKey") };
    let open = match first {
        Bound::Included(value) => format!("[{}", show(value.as_raw_bson_ref())),
        Bound::Excluded(value) => format!("({}", show(value.as_raw_bson_ref())),
        Bound::Unbounded => format!("[{low}"),
    };
    let close = match last {
        Bound::Included(value) => format!("{}]", show(value.as_raw_bson_ref())),
        Bound::Excluded(value) => format!("{})", show(value.as_raw_bson_ref())),
        Bound::Unbounded => format!("{high}]"),
    };
    format!("{open}, {close}")
}

/// A value as `explain` writes it within bounds.
pub(super) fn show(value: RawBsonRef<'_>) -> String {
    use RawBsonRef as B;
    match value {
        B::MinKey => "MinKey".to_owned(),
        B::MaxKey => "MaxKey".to_owned(),
        B::Null => "null".to_owned(),
        B::Undefined => "undefined".to_owned(),
        B::Int32(number) => number.to_string(),
        B::Int64(number) => number.to_string(),
        B::Double(number) if number.is_nan() => "nan".to_owned(),
        B::Double(number) if number.is_infinite() => if number > 0.0 { "inf" } else { "-inf" }.to_owned(),
        B::Double(number) if number.fract() == 0.0 && number.abs() < 1e15 => format!("{number:.1}"),
        B::Double(number) => number.to_string(),
        B::Decimal128(number) => format!("NumberDecimal(\"{number}\")"),
        B::String(text) | B::Symbol(text) => format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")),
        B::Boolean(value) => value.to_string(),
        B::ObjectId(id) => format!("ObjectId('{id}')"),
        B::DateTime(date) => format!("new Date({})", date.timestamp_millis()),
        B::Timestamp(stamp) => format!("Timestamp({}, {})", stamp.time, stamp.increment),
        B::RegularExpression(regex) => format!("/{}/{}", regex.pattern.as_str(), regex.options.as_str()),
        B::Document(document) => {
            let fields = document.iter().filter_map(|field| field.ok());
            let fields: Vec<String> =
                fields.map(|(name, value)| format!("{}: {}", name.as_str(), show(value))).collect();
            if fields.is_empty() { "{}".to_owned() } else { format!("{{ {} }}", fields.join(", ")) }
        }
        B::Array(array) => {
            let elements: Vec<String> = array.into_iter().filter_map(|element| element.ok()).map(show).collect();
            if elements.is_empty() { "[]".to_owned() } else { format!("[ {} ]", elements.join(", ")) }
        }
        B::Binary(binary) => {
            let hex: String = binary.bytes.iter().map(|byte| format!("{byte:02X}")).collect();
            format!("BinData({}, {hex})", u8::from(binary.subtype))
        }
        B::JavaScriptCode(code) => format!("Code(\"{code}\")"),
        B::JavaScriptCodeWithScope(code) => format!("CodeWScope( {}, {})", code.code, show(B::Document(code.scope))),
        B::DbPointer(_) => "DBRef".to_owned(),
    }
}

/// All of a list of intervals as one value.
pub(super) fn intervals_of_points(points: Vec<RawBson>, collator: Option<&Collator>) -> Result<Intervals> {
    Intervals::from_unsorted(points.into_iter().map(Interval::point).collect(), collator)
}
