//! Whether a scan gives its keys in the order that is asked for.

use super::bounds;
use super::node::{IndexScan, Node, ScanField, WILDCARD_PATH};
use super::sort::SortPattern;
use crate::error::Result;
use crate::filter::Intervals;
use std::sync::Arc;

/// The most scans that one scan with lists of points is taken apart into.
const MAX_EXPLODED: usize = 200;

/// The direction in which a scan gives an order; `None` when it does not. `pointwise` takes fields with several points as if
/// they had one: then each combination of points gives the order on its own.
fn direction(scan: &IndexScan, pattern: &SortPattern, pointwise: bool) -> Option<bool> {
    let fixed = |number: usize| {
        let (field, intervals) = (&scan.fields[number], &scan.intervals[number]);
        let points = bounds::is_point(intervals) || (pointwise && bounds::are_points(intervals));
        points && field.arrays == 0 && !field.hashed
    };
    let mut wanted = pattern.fields().iter().filter(|sort| {
        let at = scan.fields.iter().position(|field| field.path == sort.path);
        // One value only: it orders nothing.
        !at.is_some_and(|at| {
            bounds::is_point(&scan.intervals[at]) && scan.fields[at].arrays == 0 && !scan.fields[at].hashed
        })
    });
    let mut next = wanted.next();
    let mut backward = None;
    for (number, field) in scan.fields.iter().enumerate() {
        let Some(sort) = next else { break };
        if field.path == sort.path && orders(scan, number) && !(pointwise && fixed(number)) {
            let turned = sort.kind.is_descending() != field.descending;
            if *backward.get_or_insert(turned) != turned {
                return None;
            }
            next = wanted.next();
        } else if !(fixed(number) || is_one_path(field, &scan.intervals[number]) || is_point_of_array(scan, number)) {
            return None;
        }
    }
    if next.is_some() {
        return None;
    }
    Some(backward.unwrap_or(false))
}

/// Points under an array order what follows too: all keys read have that value.
fn is_point_of_array(scan: &IndexScan, number: usize) -> bool {
    bounds::is_point(&scan.intervals[number]) && !scan.fields[number].hashed
}

fn is_one_path(field: &ScanField, intervals: &Intervals) -> bool {
    field.path == WILDCARD_PATH && bounds::is_point(intervals)
}

/// Whether a field's keys come in the order that a sort on it wants. Over arrays a document is placed by its least (or
/// greatest) element, which is its first key only if all its keys are read.
fn orders(scan: &IndexScan, number: usize) -> bool {
    let field = &scan.fields[number];
    if field.hashed {
        return false;
    }
    if field.arrays == 0 {
        return true;
    }
    let all_read =
        scan.intervals.iter().zip(&scan.fields).all(|(intervals, other)| other.arrays == 0 || intervals.is_all());
    all_read && scan.intervals[number].is_all() && scan.index.spec.wildcard().is_none()
}

/// Turns a scan so that it gives an order; false when it can't.
pub(super) fn give_order(scan: &mut IndexScan, pattern: &SortPattern) -> bool {
    let Some(backward) = direction(scan, pattern, false) else { return false };
    scan.backward = backward;
    true
}

/// Takes a scan apart into one scan for each combination of points, each of which gives the order: what `SORT_MERGE` merges.
pub(super) fn explode(scan: &IndexScan, pattern: &SortPattern) -> Result<Option<Vec<Node>>> {
    let Some(backward) = direction(scan, pattern, true) else { return Ok(None) };
    if merge_fields(scan, pattern).is_none() {
        return Ok(None);
    }
    let sorted = scan.fields.iter().position(|field| pattern.fields().iter().any(|sort| sort.path == field.path));
    let prefix = sorted.unwrap_or(scan.fields.len());
    let count: usize = scan.intervals[..prefix].iter().map(|intervals| intervals.0.len()).product();
    if !(2..=MAX_EXPLODED).contains(&count) {
        return Ok(None);
    }
    let mut combinations: Vec<Vec<Intervals>> = vec![Vec::new()];
    for intervals in &scan.intervals[..prefix] {
        let mut longer = Vec::with_capacity(combinations.len() * intervals.0.len());
        for combination in &combinations {
            for interval in &intervals.0 {
                let mut next = combination.clone();
                next.push(Intervals(vec![interval.clone()]));
                longer.push(next);
            }
        }
        combinations = longer;
    }
    let mut scans = Vec::with_capacity(combinations.len());
    for mut intervals in combinations {
        intervals.extend_from_slice(&scan.intervals[prefix..]);
        let mut one = IndexScan::new(scan.index.clone(), scan.fields.clone(), intervals)?;
        one.backward = backward;
        one.filter = scan.filter.clone();
        one.covers = scan.covers;
        scans.push(Node::IndexScan(Box::new(one)));
    }
    Ok(Some(scans))
}

/// For each field of a sort, the field of the scan's keys that holds it, and whether its bytes must be inverted to order as
/// the sort does; `None` when a field is not in the keys.
pub(super) fn merge_fields(scan: &IndexScan, pattern: &SortPattern) -> Option<Vec<(usize, bool)>> {
    let place = |sort: &crate::index::KeyField| {
        let at = scan.fields.iter().position(|field| field.path == sort.path && !field.hashed)?;
        Some((at, scan.fields[at].descending != sort.kind.is_descending()))
    };
    pattern.fields().iter().map(place).collect()
}

/// The scans below a merge, if every child is one and holds the sort's fields.
pub(super) fn can_merge(children: &[Node], pattern: &Arc<SortPattern>) -> bool {
    children.iter().all(|child| match scan_below(child) {
        Some(scan) => merge_fields(scan, pattern).is_some(),
        None => false,
    })
}

/// The index scan at the bottom of a chain of fetches.
pub(super) fn scan_below(node: &Node) -> Option<&IndexScan> {
    match node {
        Node::IndexScan(scan) => Some(scan),
        Node::Fetch { child, .. } => scan_below(child),
        _ => None,
    }
}
