//! Plans of time series: groups by the order of meta and time, or by an index that leads to groups.
//!
//! A group holds what lies within one window. So the bounds that a query sets to the time begin one span earlier where they are
//! looked up, whatever the window was when the group came to be; the time ranges themselves decide which buckets are unpacked,
//! and the whole filter is checked on each measurement. Documents are never made of keys, and no scan gives an order.

use super::access::{Access, accesses, parts};
use super::eligible::holds_all_matches;
use super::node::{IndexScan, Node, SeriesOrder, SeriesScan};
use super::solve::{Solution, score};
use super::{Hint, IndexKind, Purpose, Query, Target};
use crate::error::{Error, Result};
use crate::filter::{Filter, Interval, Intervals, Node as Condition};
use crate::series::Series;
use crate::series::group::{Reading, Times};
use bson::spec::BinarySubtype;
use bson::{Binary, DateTime, RawArrayBuf, RawBson};
use std::ops::Bound;
use std::sync::Arc;

/// All plans worth trying.
///
/// # Errors
/// `BadValue` (2) for a hint on an index that is not there, and for `min` and `max`.
pub(super) fn solve(target: &Target, series: &Arc<Series>, query: &Query) -> Result<Vec<Solution>> {
    let hint = target.hint(query)?;
    if query.key_range.is_some() {
        return Err(Error::bad_value("min and max can't be used on a time-series collection"));
    }
    if let Condition::Always(false) = query.filter.root() {
        return Ok(vec![Solution::new(Node::Eof, true, usize::MAX)]);
    }
    let conditions = parts(query.filter.root());
    let reading = Arc::new(reading(series, &conditions, query)?);
    let filter = (!query.filter.is_empty()).then(|| Filter::clone(&query.filter));
    let ordered = query.pattern().is_none();
    let mut solutions = Vec::new();
    let scan_of = |scan: IndexScan, bounded: bool| SeriesScan {
        scan,
        series: series.clone(),
        reading: reading.clone(),
        filter: filter.clone(),
        is_bounded: bounded,
        order: None,
    };
    for index in target.candidates(hint) {
        if hint.is_none() && !holds_all_matches(index, query)? {
            continue;
        }
        for Access { scan, is_bounded, .. } in accesses(index, &conditions, query)? {
            if let (IndexKind::Series, Some(order)) = (index.kind, order_of(series, &scan, query)?) {
                let rank = score(&scan).max(1);
                let mut scan = scan_of(widened(series, scan)?, true);
                scan.order = Some(order);
                solutions.push(Solution::new(Node::Series(Box::new(scan)), true, rank));
                continue;
            }
            let scan = widened(series, scan)?;
            let bounded = is_bounded || scan.intervals.iter().any(|intervals| !intervals.is_all());
            if index.kind == IndexKind::Series {
                let rank = if bounded { score(&scan) } else { 0 };
                solutions.push(Solution::new(Node::Series(Box::new(scan_of(scan, bounded))), ordered, rank));
            } else if is_bounded || hint.is_some() {
                let rank = score(&scan);
                let node = Node::SeriesFetch {
                    within: Box::new(scan_of(scan.clone(), true)),
                    child: Box::new(Node::IndexScan(Box::new(scan))),
                };
                solutions.push(Solution::new(node, ordered, rank));
            }
        }
    }
    let narrow = solutions.iter().any(|solution| solution.rank() > 0);
    solutions.retain(|solution| solution.rank() > 0 || !narrow);
    if solutions.is_empty() || matches!(hint, Some(Hint::Natural { .. })) {
        let order = target.indexes.first().filter(|index| index.kind == IndexKind::Series);
        let order = order.ok_or_else(|| Error::internal("a time series has no order"))?;
        let all = accesses(order, &[], query)?.remove(0).scan;
        solutions = vec![Solution::new(Node::Series(Box::new(scan_of(all, false))), ordered, 0)];
    }
    Ok(solutions)
}

/// How a scan can give the order of time that a query asks for: when it reads one meta value.
fn order_of(series: &Series, scan: &IndexScan, query: &Query) -> Result<Option<SeriesOrder>> {
    let Some([field]) = query.pattern().map(|pattern| pattern.fields()) else { return Ok(None) };
    if *field.path != *series.time_field {
        return Ok(None);
    }
    let Some((time, meta)) = scan.intervals.split_last() else { return Ok(None) };
    let [time] = &time.0[..] else { return Ok(None) };
    if meta.iter().any(|intervals| !super::bounds::is_point(intervals)) {
        return Ok(None);
    }
    let mut intervals = meta.to_vec();
    intervals.push(Intervals(vec![earlier(time, series.span_ms)]));
    let one = IndexScan::new(scan.index.clone(), scan.fields.clone(), intervals)?;
    let Some(range) = super::bounds::single_range(&one.ranges) else { return Ok(None) };
    let arrays = match meta {
        [] => None,
        _ => {
            let ranges = super::bounds::ranges_of(&Intervals(vec![arrays()]), false, None)?;
            ranges.into_iter().next().map(|range| (range.start, range.end))
        }
    };
    Ok(Some(SeriesOrder { descending: field.kind.is_descending(), range, arrays }))
}

/// What is read of the measurements: the time ranges, and the fields that somebody looks at.
fn reading(series: &Series, conditions: &[&Condition], query: &Query) -> Result<Reading> {
    let mut times: Option<Times> = None;
    for condition in conditions {
        let bounds =
            condition.bounds_on(&series.time_field, crate::filter::IndexTraits::default(), None, &query.environment)?;
        if let Some(own) = bounds.and_then(|bounds| times_of(&bounds.intervals)) {
            times = Some(match times {
                None => own,
                Some(known) => {
                    known.iter().flat_map(|a| own.iter().map(move |b| (a.0.max(b.0), a.1.min(b.1)))).collect()
                }
            });
        }
    }
    let tops = |paths: &std::collections::BTreeSet<String>| -> Vec<String> {
        paths.iter().map(|path| path.split('.').next().unwrap_or(path).to_owned()).collect()
    };
    let filter_paths = if query.filter.is_empty() { Some(Default::default()) } else { query.filter.paths() };
    let wanted = match (&query.needed, &query.purpose) {
        (_, Purpose::Count) => Some(Vec::new()),
        (Some(needed), _) => Some(tops(needed)),
        (None, _) => None,
    };
    let needed = match (wanted, filter_paths) {
        (Some(wanted), Some(filter)) => {
            let sorted =
                query.pattern().into_iter().flat_map(|pattern| pattern.fields().iter().map(|field| field.path.clone()));
            let sorted = tops(&sorted.collect());
            Some(wanted.into_iter().chain(tops(&filter)).chain(sorted).chain([series.time_field.to_string()]).collect())
        }
        _ => None,
    };
    Ok(Reading { times, needed })
}

/// Intervals as time ranges, if all of them are of dates.
fn times_of(intervals: &Intervals) -> Option<Times> {
    let time = |bound: &Bound<RawBson>| match bound {
        Bound::Included(RawBson::DateTime(time)) | Bound::Excluded(RawBson::DateTime(time)) => {
            Some(time.timestamp_millis())
        }
        _ => None,
    };
    intervals.0.iter().map(|interval| Some((time(&interval.low)?, time(&interval.high)?))).collect()
}

/// The scan with bounds that hold the groups of all measurements within its own.
fn widened(series: &Series, scan: IndexScan) -> Result<IndexScan> {
    let is_order = scan.index.kind == IndexKind::Series;
    let mut intervals = Vec::with_capacity(scan.fields.len());
    for (field, own) in scan.fields.iter().zip(&scan.intervals) {
        let wide = if *field.path == *series.time_field && !field.hashed {
            own.0.iter().map(|interval| earlier(interval, series.span_ms)).collect()
        } else if is_order && !own.is_all() {
            // A meta value that is an array lies among the arrays, and may match by its elements.
            own.0.iter().cloned().chain([arrays()]).collect()
        } else {
            own.0.clone()
        };
        intervals.push(Intervals::from_unsorted(wide, scan.index.collator().filter(|_| !field.hashed))?);
    }
    IndexScan::new(scan.index, scan.fields, intervals)
}

fn earlier(interval: &Interval, span_ms: i64) -> Interval {
    let low = match &interval.low {
        Bound::Included(RawBson::DateTime(time)) | Bound::Excluded(RawBson::DateTime(time)) => {
            Bound::Included(RawBson::DateTime(DateTime::from_millis(time.timestamp_millis().saturating_sub(span_ms))))
        }
        other => other.clone(),
    };
    Interval { low, high: interval.high.clone() }
}

fn arrays() -> Interval {
    let beyond = Binary { subtype: BinarySubtype::Generic, bytes: Vec::new() };
    Interval {
        low: Bound::Included(RawBson::Array(RawArrayBuf::new())),
        high: Bound::Excluded(RawBson::Binary(beyond)),
    }
}
