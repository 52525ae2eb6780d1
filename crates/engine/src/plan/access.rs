//! Which keys of one index can hold the matches of a conjunction.
//!
//! Each condition says between which values of its path a match must have a key. The bounds of several conditions on a
//! field are intersected where a document has one key only; where it may have several, different keys may satisfy
//! different conditions, and the narrowest bounds alone are taken. The same holds across fields that lie in one array:
//! `{"a.b": 1, "a.c": 2}` may be met by two elements, unless `$elemMatch` binds the conditions to one.

use super::bounds;
use super::eligible::needs_existence;
use super::node::{IndexScan, ScanField, WILDCARD_PATH, has_position, text};
use super::{IndexInfo, IndexKind, Query};
use crate::document::collation::Collator;
use crate::error::Result;
use crate::filter::{Bounds, Filter, IndexTraits, Interval, Intervals, Node as Condition};
use crate::index::hash;
use bson::RawBson;
use std::ops::Bound;

/// A scan of one index for a conjunction.
#[derive(Clone, Debug)]
pub(super) struct Access {
    /// The scan.
    pub(super) scan: IndexScan,
    /// What documents must still be checked for.
    pub(super) residual: Vec<Condition>,
    /// Whether a condition bounds the first field.
    pub(super) is_bounded: bool,
}

/// What one condition says about a field.
#[derive(Clone, Debug)]
struct Candidate {
    /// Which condition.
    part: usize,
    bounds: Bounds,
    /// The path of the `$elemMatch` that it stands in.
    element: Option<String>,
}

/// What was chosen for a field.
#[derive(Clone, Debug)]
struct Chosen {
    intervals: Intervals,
    /// The conditions that need no further check.
    settled: Vec<usize>,
    /// The condition that gave the bounds of a multikey field, with its `$elemMatch`.
    element: Option<(usize, String)>,
}

/// The conditions of a conjunction.
pub(super) fn parts(root: &Condition) -> Vec<&Condition> {
    match root {
        Condition::And(parts) => parts.iter().collect(),
        Condition::Always(true) => Vec::new(),
        other => vec![other],
    }
}

/// The scans of an index that can hold the matches of a conjunction; for a wildcard index, one for each path. Scans without a
/// bounded first field are among them: they still may give an order, or be hinted.
pub(super) fn accesses(index: &IndexInfo, parts: &[&Condition], query: &Query) -> Result<Vec<Access>> {
    if index.spec.wildcard().is_some() {
        return wildcard_accesses(index, parts, query);
    }
    let fields = index.scan_fields(None);
    Ok(vec![access(index, fields, parts, query, None)?])
}

fn access(
    index: &IndexInfo,
    fields: Vec<ScanField>,
    parts: &[&Condition],
    query: &Query,
    paths: Option<Intervals>,
) -> Result<Access> {
    let mut chosen: Vec<Option<Chosen>> = Vec::with_capacity(fields.len());
    for (number, field) in fields.iter().enumerate() {
        if field.path == WILDCARD_PATH {
            let intervals = paths.clone().unwrap_or_else(Intervals::all);
            chosen.push(Some(Chosen { intervals, settled: Vec::new(), element: None }));
            continue;
        }
        let candidates = candidates(index, field, parts, query)?;
        chosen.push(choose(index, field, candidates, &fields[..number], &chosen)?);
    }
    let is_bounded = chosen.first().is_some_and(Option::is_some);
    let mut settled: Vec<usize> = Vec::new();
    for (field, choice) in fields.iter().zip(&chosen) {
        if let (Some(choice), false) = (choice, field.hashed) {
            settled.extend(&choice.settled);
        }
    }
    let mut residual = Vec::new();
    for (number, part) in parts.iter().enumerate() {
        if !settled.contains(&number) {
            residual.push((*part).clone());
        }
    }
    let intervals =
        chosen.into_iter().map(|choice| choice.map_or_else(Intervals::all, |choice| choice.intervals)).collect();
    let mut scan = IndexScan::new(index.clone(), fields, intervals)?;
    let on_keys = take_decidable(&scan, &mut residual);
    if !on_keys.is_empty() {
        scan.filter = Some(Filter::from_node(Condition::and(on_keys), query.filter.collator().cloned()));
    }
    Ok(Access { scan, residual, is_bounded })
}

/// All that conditions say about one field.
fn candidates(index: &IndexInfo, field: &ScanField, parts: &[&Condition], query: &Query) -> Result<Vec<Candidate>> {
    let collated = index.spec.collator().is_some();
    let same_collation = crate::document::collation::same(index.collator(), query.filter.collator().map(|one| &**one));
    let by_position = has_position(&field.path);
    let mut found = Vec::new();
    let mut add = |part: usize, bounds: Option<Bounds>, element: Option<String>| {
        let Some(mut bounds) = bounds else { return };
        if by_position {
            // An array at a position is indexed by its elements, but matched as a whole; and a document at a position is
            // matched as if it lacked a field of that name too.
            if !matches!(parts[part], Condition::Path { .. }) || !parts[part].needs_existence_of(&field.path) {
                return;
            }
            bounds.exact = false;
        }
        if !same_collation && bounds::depend_on_collation(&bounds.intervals) {
            return;
        }
        let bounds = if field.hashed { hashed(&bounds, index.collator()) } else { Some(bounds) };
        if let Some(bounds) = bounds {
            found.push(Candidate { part, bounds, element });
        }
    };
    for (number, part) in parts.iter().enumerate() {
        let traits = IndexTraits { multikey: field.arrays != 0, collated };
        add(number, part.bounds_on(&field.path, traits, index.collator(), &query.environment)?, None);
        if let Condition::Path { path, test } = part
            && let Some((inner, true)) = test.elements()
            && let Some(rest) = field.path.strip_prefix(path.as_str()).and_then(|rest| rest.strip_prefix('.'))
        {
            let depth = path.parts().count();
            let traits = IndexTraits { multikey: depth < 64 && field.arrays >> depth != 0, collated };
            let bounds = inner.bounds_on(rest, traits, index.collator(), &query.environment)?;
            let bounds = bounds.map(|bounds| Bounds { exact: false, ..bounds });
            add(number, bounds, Some(path.as_str().to_owned()));
        }
    }
    Ok(found)
}

/// Points become their hashes; nothing else can be looked up.
fn hashed(bounds: &Bounds, collator: Option<&Collator>) -> Option<Bounds> {
    if !bounds::are_points(&bounds.intervals) {
        return None;
    }
    let mut hashes = Vec::with_capacity(bounds.intervals.0.len());
    for interval in &bounds.intervals.0 {
        let point = interval.as_point()?;
        hashes.push(RawBson::Int64(hash(point.as_raw_bson_ref(), collator).ok()?));
    }
    let intervals = bounds::intervals_of_points(hashes, None).ok()?;
    Some(Bounds { intervals, exact: false })
}

/// Picks or joins what conditions say about a field, given what was picked for the fields before it.
fn choose(
    index: &IndexInfo,
    field: &ScanField,
    mut candidates: Vec<Candidate>,
    before: &[ScanField],
    chosen: &[Option<Chosen>],
) -> Result<Option<Chosen>> {
    for (other, choice) in before.iter().zip(chosen) {
        let Some(choice) = choice.as_ref().filter(|choice| !choice.intervals.is_all()) else { continue };
        let shared = shared_parts(&other.path, &field.path);
        let arrays = (other.arrays | field.arrays) & mask(shared);
        if arrays == 0 || other.path == WILDCARD_PATH {
            continue;
        }
        // Both fields lie in one array: only conditions of the same `$elemMatch`, at that array, meet in one element.
        let same_element = |candidate: &Candidate| {
            let Some((part, path)) = &choice.element else { return false };
            candidate.part == *part
                && candidate.element.as_deref() == Some(path)
                && arrays & !mask(path.split('.').count()) == 0
        };
        candidates.retain(same_element);
    }
    if candidates.is_empty() {
        return Ok(None);
    }
    let collator = index.collator().filter(|_| !field.hashed);
    if field.arrays == 0 {
        let settled =
            candidates.iter().filter(|one| one.bounds.exact && one.element.is_none()).map(|one| one.part).collect();
        let mut all = candidates.into_iter();
        let mut bounds = all.next().expect("there is one").bounds;
        for next in all {
            bounds = bounds.intersect(&next.bounds, collator)?;
        }
        return Ok(Some(Chosen { intervals: bounds.intervals, settled, element: None }));
    }
    candidates.sort_by_key(|candidate| width(&candidate.bounds.intervals));
    let mut all = candidates.into_iter();
    let best = all.next().expect("there is one");
    let mut bounds = best.bounds.clone();
    // Conditions of the same `$elemMatch` were intersected where that is allowed already.
    let settled = if best.bounds.exact && best.element.is_none() { vec![best.part] } else { Vec::new() };
    if best.element.is_some() {
        bounds.exact = false;
    }
    Ok(Some(Chosen { intervals: bounds.intervals, settled, element: best.element.map(|path| (best.part, path)) }))
}

/// How wide intervals look: points are narrow, half-open ranges wide, everything widest.
fn width(intervals: &Intervals) -> usize {
    let one = |interval: &Interval| if interval.as_point().is_some() { 1 } else { 1000 };
    if intervals.is_all() { usize::MAX } else { intervals.0.iter().map(one).sum() }
}

fn shared_parts(a: &str, b: &str) -> usize {
    a.split('.').zip(b.split('.')).take_while(|(a, b)| a == b).count()
}

fn mask(parts: usize) -> u64 {
    if parts >= 64 { u64::MAX } else { (1 << parts) - 1 }
}

/// Takes the conditions out that a scan can check on its own keys.
fn take_decidable(scan: &IndexScan, residual: &mut Vec<Condition>) -> Vec<Condition> {
    if !scan.index.can_cover() || scan.index.kind != IndexKind::Regular {
        return Vec::new();
    }
    let mut taken = Vec::new();
    residual.retain(|condition| {
        let decidable = is_decidable(condition, scan);
        if decidable {
            taken.push(condition.clone());
        }
        !decidable
    });
    taken
}

/// Whether a key says as much as the document: the path is indexed without arrays, and missing is not told from null.
fn is_decidable(condition: &Condition, scan: &IndexScan) -> bool {
    const PLAIN: &[&str] = &["$eq", "$in", "$gt", "$gte", "$lt", "$lte", "$regex", "$mod"];
    match condition {
        Condition::And(parts) | Condition::Or(parts) => parts.iter().all(|part| is_decidable(part, scan)),
        Condition::Not { node, .. } => is_decidable(node, scan),
        Condition::Path { path, test } => {
            let field = scan.fields.iter().find(|field| field.path == path.as_str());
            field.is_some_and(|field| field.arrays == 0 && !field.hashed)
                && PLAIN.contains(&test.name())
                && test.needs_existence()
        }
        _ => false,
    }
}

/// The scans of a wildcard index: one for each path that conditions name and the index covers, and one of all paths where
/// another field comes first.
fn wildcard_accesses(index: &IndexInfo, parts: &[&Condition], query: &Query) -> Result<Vec<Access>> {
    let mut paths = Vec::new();
    for part in parts {
        gather_paths(part, "", &mut paths);
    }
    let mut found = Vec::new();
    for path in &paths {
        found.extend(wildcard_access(index, path, parts, query)?);
    }
    if index.spec.fields().first().is_some_and(|field| !field.kind.is_wildcard()) {
        found.push(access(index, index.scan_fields(None), parts, query, None)?);
    }
    Ok(found)
}

/// The scan of a wildcard index for one path, if every match must have a key under it.
fn wildcard_access(index: &IndexInfo, path: &str, parts: &[&Condition], query: &Query) -> Result<Option<Access>> {
    let scope = index.spec.wildcard().expect("it is a wildcard index");
    let exists = parts.iter().any(|part| needs_existence(part, path) || element_needs(part, path));
    if !scope.covers(path) || !exists {
        return Ok(None);
    }
    let mut fields = index.scan_fields(Some(path));
    let at = fields.iter().position(|field| field.path == WILDCARD_PATH).expect("a wildcard's path is stored") + 1;
    let candidates = candidates(index, &fields[at], parts, query)?;
    let narrow = |one: &Candidate| !one.bounds.intervals.is_all() && !holds_objects(&one.bounds.intervals);
    let over_arrays = fields[at].arrays != 0;
    let spellings = spellings(path, over_arrays);
    let mut intervals: Vec<Interval> = spellings.iter().map(|path| Interval::point(text(path))).collect();
    // At a position may lie an array, which is stored as one value.
    let nested = over_arrays && has_position(path);
    if nested || candidates.is_empty() || !candidates.iter().all(narrow) {
        // Whatever lies below the path makes it exist as well; then the values say nothing.
        for path in &spellings {
            if !scope.covers_below(path) {
                return Ok(None);
            }
            intervals.push(Interval {
                low: Bound::Included(text(&format!("{path}."))),
                high: Bound::Excluded(text(&format!("{path}/"))),
            });
        }
        fields[at].path = format!("{path}.*");
    } else if !spellings.iter().all(|path| scope.covers(path)) {
        return Ok(None);
    }
    let paths = Intervals::from_unsorted(intervals, None)?;
    let mut access = access(index, fields, parts, query, Some(paths))?;
    access.scan.fields[at].path = path.to_owned();
    access.is_bounded = true;
    Ok(Some(access))
}

/// The paths under which a value may be stored: over arrays, numbers in a path may be positions, which are not stored.
fn spellings(path: &str, over_arrays: bool) -> Vec<String> {
    let mut paths: Vec<String> = vec![String::new()];
    for part in path.split('.') {
        let join = |start: &String| if start.is_empty() { part.to_owned() } else { format!("{start}.{part}") };
        let longer: Vec<String> = paths.iter().map(join).collect();
        if over_arrays && has_position(part) {
            paths.extend(longer);
        } else {
            paths = longer;
        }
    }
    paths
}

/// Whether a condition on an array's elements needs the path in one of them.
fn element_needs(condition: &Condition, path: &str) -> bool {
    let Condition::Path { path: own, test } = condition else { return false };
    let rest = path.strip_prefix(own.as_str()).and_then(|rest| rest.strip_prefix('.'));
    match (test.elements(), rest) {
        (Some((inner, true)), Some(rest)) => needs_existence(inner, rest) || element_needs(inner, rest),
        _ => false,
    }
}

fn gather_paths(condition: &Condition, prefix: &str, paths: &mut Vec<String>) {
    match condition {
        Condition::Path { path, test } => {
            let path = if prefix.is_empty() { path.as_str().to_owned() } else { format!("{prefix}.{}", path.as_str()) };
            if let Some((inner, true)) = test.elements() {
                gather_paths(inner, &path, paths);
            }
            if !paths.contains(&path) {
                paths.push(path);
            }
        }
        Condition::And(parts) => parts.iter().for_each(|part| gather_paths(part, prefix, paths)),
        Condition::Not { node, .. } => gather_paths(node, prefix, paths),
        _ => {}
    }
}

/// Whether documents or arrays lie within intervals: a wildcard index holds what is in them instead, but for empty ones.
fn holds_objects(intervals: &Intervals) -> bool {
    let object = RawBson::Document(bson::rawdoc! { "a": 1 });
    let array = RawBson::Array(bson::RawArrayBuf::new());
    let starts_there = |bound: &Bound<RawBson>| match bound {
        Bound::Included(value) | Bound::Excluded(value) => matches!(value, RawBson::Document(_) | RawBson::Array(_)),
        Bound::Unbounded => false,
    };
    // An open end at the empty document is where strings end.
    let ends_there = |bound: &Bound<RawBson>| match bound {
        Bound::Excluded(RawBson::Document(document)) => !document.is_empty(),
        Bound::Excluded(RawBson::Array(array)) => !array.is_empty(),
        bound => starts_there(bound),
    };
    let is_empty_value = |one: &Interval| match one.as_point() {
        Some(RawBson::Document(document)) => document.is_empty(),
        Some(RawBson::Array(array)) => array.is_empty(),
        _ => false,
    };
    let holds = |one: &Interval| {
        let alone = Intervals(vec![one.clone()]);
        let within = |value: &RawBson| alone.contains(value.as_raw_bson_ref(), None).unwrap_or(true);
        starts_there(&one.low) || ends_there(&one.high) || within(&object) || within(&array)
    };
    intervals.0.iter().any(|one| !is_empty_value(one) && holds(one))
}
