//! What a planner wants to know of a condition: intervals of values in BSON order.
//!
//! Intervals are closed or open at either end and lie within the whole order, `[MinKey, MaxKey]`. A list of them is sorted
//! and disjoint. An index holds null for a missing value; nothing else about indexes is known here.

use crate::document::collation::Collator;
use crate::document::compare::canonical_rank;
use crate::document::compare_values;
use crate::error::Result;
use bson::oid::ObjectId;
use bson::raw::cstr;
use bson::spec::BinarySubtype;
use bson::{Binary, DateTime, RawArrayBuf, RawBson, RawBsonRef, RawDocumentBuf, Timestamp};
use std::cmp::Ordering;
use std::ops::Bound;

/// One interval of values.
#[derive(Clone, Debug, PartialEq)]
pub struct Interval {
    /// Where it begins.
    pub low: Bound<RawBson>,
    /// Where it ends.
    pub high: Bound<RawBson>,
}

/// Sorted, disjoint intervals; none at all when nothing can match.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Intervals(pub Vec<Interval>);

/// Where the keys of matching documents lie.
#[derive(Clone, Debug, PartialEq)]
pub struct Bounds {
    /// The intervals.
    pub intervals: Intervals,
    /// Whether every document with a key in the intervals matches; else each must be checked again.
    pub exact: bool,
}

impl Interval {
    /// Exactly one value.
    pub fn point(value: RawBson) -> Interval {
        Interval { low: Bound::Included(value.clone()), high: Bound::Included(value) }
    }

    /// Every value.
    pub fn all() -> Interval {
        Interval { low: Bound::Included(RawBson::MinKey), high: Bound::Included(RawBson::MaxKey) }
    }

    /// The one value that it holds, where it is a point.
    pub fn as_point(&self) -> Option<&RawBson> {
        match (&self.low, &self.high) {
            (Bound::Included(low), Bound::Included(high)) if low == high => Some(low),
            _ => None,
        }
    }
}

impl Intervals {
    /// Every value.
    pub fn all() -> Intervals {
        Intervals(vec![Interval::all()])
    }

    /// Whether it holds every value.
    pub fn is_all(&self) -> bool {
        matches!(&self.0[..], [only] if *only == Interval::all())
    }

    /// Sorts and joins intervals of any order.
    ///
    /// # Errors
    /// `InvalidBSON` (22) when nested bytes are malformed.
    pub fn from_unsorted(mut intervals: Vec<Interval>, collator: Option<&Collator>) -> Result<Intervals> {
        let mut failure = None;
        intervals.sort_by(|a, b| {
            compare_lows(&a.low, &b.low, collator).unwrap_or_else(|error| {
                failure = Some(error);
                Ordering::Equal
            })
        });
        if let Some(error) = failure {
            return Err(error);
        }
        let mut joined: Vec<Interval> = Vec::with_capacity(intervals.len());
        for next in intervals {
            match joined.last_mut() {
                Some(last) if touches(&last.high, &next.low, collator)? => {
                    if compare_highs(&last.high, &next.high, collator)? == Ordering::Less {
                        last.high = next.high;
                    }
                }
                _ => joined.push(next),
            }
        }
        Ok(Intervals(joined))
    }

    /// What lies in either.
    ///
    /// # Errors
    /// As [`Intervals::from_unsorted`].
    pub fn union(&self, other: &Intervals, collator: Option<&Collator>) -> Result<Intervals> {
        Intervals::from_unsorted(self.0.iter().chain(&other.0).cloned().collect(), collator)
    }

    /// What lies in both.
    ///
    /// # Errors
    /// As [`Intervals::from_unsorted`].
    pub fn intersect(&self, other: &Intervals, collator: Option<&Collator>) -> Result<Intervals> {
        let (mut common, mut a, mut b) = (Vec::new(), 0, 0);
        while let (Some(left), Some(right)) = (self.0.get(a), other.0.get(b)) {
            let low = match compare_lows(&left.low, &right.low, collator)? {
                Ordering::Less => &right.low,
                _ => &left.low,
            };
            let ends = compare_highs(&left.high, &right.high, collator)?;
            let high = if ends == Ordering::Greater { &right.high } else { &left.high };
            if !is_empty(low, high, collator)? {
                common.push(Interval { low: low.clone(), high: high.clone() });
            }
            if ends == Ordering::Greater { b += 1 } else { a += 1 }
        }
        Ok(Intervals(common))
    }

    /// What lies in none of them.
    ///
    /// # Errors
    /// As [`Intervals::from_unsorted`].
    pub fn complement(&self, collator: Option<&Collator>) -> Result<Intervals> {
        let flip = |bound: &Bound<RawBson>| match bound {
            Bound::Included(value) => Bound::Excluded(value.clone()),
            Bound::Excluded(value) => Bound::Included(value.clone()),
            Bound::Unbounded => Bound::Unbounded,
        };
        let mut gaps = Vec::with_capacity(self.0.len() + 1);
        let mut low = Bound::Included(RawBson::MinKey);
        for interval in &self.0 {
            let high = flip(&interval.low);
            if !is_empty(&low, &high, collator)? {
                gaps.push(Interval { low, high });
            }
            low = flip(&interval.high);
        }
        let high = Bound::Included(RawBson::MaxKey);
        if !is_empty(&low, &high, collator)? {
            gaps.push(Interval { low, high });
        }
        Ok(Intervals(gaps))
    }

    /// Whether a value lies in one of them.
    ///
    /// # Errors
    /// As [`Intervals::from_unsorted`].
    pub fn contains(&self, value: RawBsonRef<'_>, collator: Option<&Collator>) -> Result<bool> {
        for interval in &self.0 {
            let above = match &interval.low {
                Bound::Unbounded => true,
                Bound::Included(low) => compare_values(value, low.as_raw_bson_ref(), collator)? != Ordering::Less,
                Bound::Excluded(low) => compare_values(value, low.as_raw_bson_ref(), collator)? == Ordering::Greater,
            };
            let below = match &interval.high {
                Bound::Unbounded => true,
                Bound::Included(high) => compare_values(value, high.as_raw_bson_ref(), collator)? != Ordering::Greater,
                Bound::Excluded(high) => compare_values(value, high.as_raw_bson_ref(), collator)? == Ordering::Less,
            };
            if above && below {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl Bounds {
    /// Bounds that need no second check.
    pub fn exact(intervals: Vec<Interval>) -> Bounds {
        Bounds { intervals: Intervals(intervals), exact: true }
    }

    /// Bounds whose documents must be checked again.
    pub fn inexact(intervals: Vec<Interval>) -> Bounds {
        Bounds { intervals: Intervals(intervals), exact: false }
    }

    /// The bounds of either condition.
    ///
    /// # Errors
    /// As [`Intervals::from_unsorted`].
    pub fn union(&self, other: &Bounds, collator: Option<&Collator>) -> Result<Bounds> {
        let intervals = self.intervals.union(&other.intervals, collator)?;
        Ok(Bounds { intervals, exact: self.exact && other.exact })
    }

    /// The bounds of both conditions at once; right only where a document has one key.
    ///
    /// # Errors
    /// As [`Intervals::from_unsorted`].
    pub fn intersect(&self, other: &Bounds, collator: Option<&Collator>) -> Result<Bounds> {
        let intervals = self.intervals.intersect(&other.intervals, collator)?;
        Ok(Bounds { intervals, exact: self.exact && other.exact })
    }

    /// The bounds of the negation of an exact condition. Over several keys a document may have a key in them and still not
    /// match.
    ///
    /// # Errors
    /// As [`Intervals::from_unsorted`].
    pub fn complement(&self, collator: Option<&Collator>, multikey: bool) -> Result<Bounds> {
        debug_assert!(self.exact, "the complement of inexact bounds would lose documents");
        Ok(Bounds { intervals: self.intervals.complement(collator)?, exact: !multikey })
    }

    /// Of two conditions that may be met by different keys of a document, the one that looks narrower; it must be checked
    /// again, since the other is left out.
    pub fn narrower(self, other: Bounds) -> Bounds {
        let width = |bounds: &Bounds| {
            bounds.intervals.0.iter().map(|one| if one.as_point().is_some() { 1 } else { 100 }).sum::<usize>()
        };
        let chosen = if width(&other) < width(&self) { other } else { self };
        Bounds { exact: false, ..chosen }
    }
}

fn value_of(bound: &Bound<RawBson>) -> Option<RawBsonRef<'_>> {
    match bound {
        Bound::Included(value) | Bound::Excluded(value) => Some(value.as_raw_bson_ref()),
        Bound::Unbounded => None,
    }
}

fn compare_lows(a: &Bound<RawBson>, b: &Bound<RawBson>, collator: Option<&Collator>) -> Result<Ordering> {
    Ok(match (value_of(a), value_of(b)) {
        (None, None) => Ordering::Equal,
        (None, Some(_)) => Ordering::Less,
        (Some(_), None) => Ordering::Greater,
        (Some(x), Some(y)) => {
            compare_values(x, y, collator)?.then(matches!(a, Bound::Excluded(_)).cmp(&matches!(b, Bound::Excluded(_))))
        }
    })
}

fn compare_highs(a: &Bound<RawBson>, b: &Bound<RawBson>, collator: Option<&Collator>) -> Result<Ordering> {
    Ok(match (value_of(a), value_of(b)) {
        (None, None) => Ordering::Equal,
        (None, Some(_)) => Ordering::Greater,
        (Some(_), None) => Ordering::Less,
        (Some(x), Some(y)) => {
            compare_values(x, y, collator)?.then(matches!(a, Bound::Included(_)).cmp(&matches!(b, Bound::Included(_))))
        }
    })
}

/// Whether an interval that begins at `low` continues one that ends at `high`.
fn touches(high: &Bound<RawBson>, low: &Bound<RawBson>, collator: Option<&Collator>) -> Result<bool> {
    let (Some(end), Some(start)) = (value_of(high), value_of(low)) else { return Ok(true) };
    Ok(match compare_values(start, end, collator)? {
        Ordering::Less => true,
        Ordering::Equal => !matches!((high, low), (Bound::Excluded(_), Bound::Excluded(_))),
        Ordering::Greater => false,
    })
}

fn is_empty(low: &Bound<RawBson>, high: &Bound<RawBson>, collator: Option<&Collator>) -> Result<bool> {
    let (Some(start), Some(end)) = (value_of(low), value_of(high)) else { return Ok(false) };
    Ok(match compare_values(start, end, collator)? {
        Ordering::Less => false,
        Ordering::Equal => !matches!((low, high), (Bound::Included(_), Bound::Included(_))),
        Ordering::Greater => true,
    })
}

/// All values of a value's own kind: what a comparison with it can match.
pub fn bracket(value: RawBsonRef<'_>) -> Interval {
    let (low, high) = bracket_of_rank(canonical_rank(value));
    Interval { low: Bound::Included(low), high }
}

/// The lowest value of the kind at a rank, and where the kind ends.
fn bracket_of_rank(rank: u8) -> (RawBson, Bound<RawBson>) {
    let binary = |bytes| RawBson::Binary(Binary { subtype: BinarySubtype::Generic, bytes });
    let regex = RawBson::RegularExpression(bson::Regex { pattern: cstr!("").into(), options: cstr!("").into() });
    let code = RawBson::JavaScriptCode(String::new());
    let scoped = RawBson::JavaScriptCodeWithScope(bson::RawJavaScriptCodeWithScope {
        code: String::new(),
        scope: RawDocumentBuf::new(),
    });
    match rank {
        0 => (RawBson::MinKey, Bound::Included(RawBson::MinKey)),
        5 => (RawBson::Undefined, Bound::Included(RawBson::Undefined)),
        10 => (RawBson::Null, Bound::Included(RawBson::Null)),
        15 => (RawBson::Double(f64::NEG_INFINITY), Bound::Included(RawBson::Double(f64::INFINITY))),
        20 => (RawBson::String(String::new()), Bound::Excluded(RawBson::Document(RawDocumentBuf::new()))),
        25 => (RawBson::Document(RawDocumentBuf::new()), Bound::Excluded(RawBson::Array(RawArrayBuf::new()))),
        30 => (RawBson::Array(RawArrayBuf::new()), Bound::Excluded(binary(Vec::new()))),
        35 => (binary(Vec::new()), Bound::Excluded(RawBson::ObjectId(ObjectId::from_bytes([0; 12])))),
        40 => (
            RawBson::ObjectId(ObjectId::from_bytes([0; 12])),
            Bound::Included(RawBson::ObjectId(ObjectId::from_bytes([255; 12]))),
        ),
        45 => (RawBson::Boolean(false), Bound::Included(RawBson::Boolean(true))),
        50 => (
            RawBson::DateTime(DateTime::from_millis(i64::MIN)),
            Bound::Included(RawBson::DateTime(DateTime::from_millis(i64::MAX))),
        ),
        55 => (
            RawBson::Timestamp(Timestamp { time: 0, increment: 0 }),
            Bound::Included(RawBson::Timestamp(Timestamp { time: u32::MAX, increment: u32::MAX })),
        ),
        60 | 65 => (regex, Bound::Excluded(code)),
        70 => (code, Bound::Excluded(scoped)),
        75 => (scoped, Bound::Excluded(RawBson::MaxKey)),
        _ => (RawBson::MaxKey, Bound::Included(RawBson::MaxKey)),
    }
}

/// All numbers, NaN included.
pub fn numbers() -> Interval {
    Interval { low: Bound::Included(RawBson::Double(f64::NAN)), high: Bound::Included(RawBson::Double(f64::INFINITY)) }
}
