//! Enumerating the plans of a query.

use super::access::{Access, accesses, parts};
use super::eligible::{holds_all_matches, holds_matches_of};
use super::node::{Clustered, CollScan, IdHack, IndexScan, Node, ProjectionKind};
use super::order::{can_merge, explode, give_order, scan_below};
use super::sort::{Order, SortPattern};
use super::{Hint, IndexInfo, IndexKind, Purpose, Query, Target};
use crate::document::collation;
use crate::error::{Code, Error, Result};
use crate::filter::{Filter, IndexTraits, Node as Condition};
use crate::key;
use std::sync::Arc;

/// The most plans that are tried against each other.
const MAX_SOLUTIONS: usize = 64;

/// One way to answer a query.
#[derive(Clone, Debug)]
pub(crate) struct Solution {
    /// The plan.
    pub(crate) node: Node,
    /// Whether it gives the order that was asked for, without a sort at the end.
    pub(crate) is_ordered: bool,
    /// How narrow its bounds look: greater is narrower.
    score: usize,
}

impl Solution {
    pub(super) fn new(node: Node, is_ordered: bool, score: usize) -> Solution {
        Solution { node, is_ordered, score }
    }

    /// How narrow its bounds look.
    pub(super) fn rank(&self) -> usize {
        self.score
    }
}

/// All plans worth trying; the first is the best guess.
///
/// # Errors
/// `BadValue` (2) for a hint on an index that is not there, `NoQueryExecutionPlans` (291) for one that can't answer.
pub(crate) fn solve(target: &Target, query: &Query) -> Result<Vec<Solution>> {
    if let Some(series) = &target.series {
        let mut solutions = super::series::solve(target, series, query)?;
        solutions.sort_by_key(|solution| std::cmp::Reverse(solution.score));
        return Ok(solutions.into_iter().map(|solution| finish(target, query, solution)).collect());
    }
    let hint = target.hint(query)?;
    let mut solutions = match (&query.key_range, hint) {
        (Some(range), _) => vec![super::key_range::solve(target, query, range)?],
        (None, Some(Hint::Natural { backward })) => vec![scan_all(target, query, backward)],
        (None, hint) => match quick(target, query, hint)? {
            Some(quick) => vec![quick],
            None => indexed(target, query, hint)?,
        },
    };
    if solutions.is_empty() {
        if hint.is_some() {
            return Err(Error::new(
                Code::NO_QUERY_EXECUTION_PLANS,
                "error processing query: planner returned error :: caused by :: No query solutions: the hinted index can't answer it",
            ));
        }
        solutions.push(scan_all(target, query, false));
    }
    solutions.sort_by_key(|solution| std::cmp::Reverse((solution.is_ordered, solution.score)));
    solutions.truncate(MAX_SOLUTIONS);
    Ok(solutions.into_iter().map(|solution| finish(target, query, solution)).collect())
}

/// Plans that need no comparison: nothing can match, or one `_id` is asked for.
fn quick(target: &Target, query: &Query, hint: Option<Hint<'_>>) -> Result<Option<Solution>> {
    let solution = |node| Some(Solution { node, is_ordered: true, score: usize::MAX });
    if let Condition::Always(false) = query.filter.root() {
        return Ok(solution(Node::Eof));
    }
    let is_id_hint =
        matches!(hint, None | Some(Hint::Index(IndexInfo { kind: IndexKind::Id | IndexKind::Clustered, .. })));
    let Condition::Path { path, test } = query.filter.root() else { return Ok(None) };
    let same = collation::same(target.collator.as_deref(), query.filter.collator().map(|one| &**one));
    if path.as_str() != "_id" || test.name() != "$eq" || !is_id_hint || target.without_id_index {
        return Ok(None);
    }
    let Some(value) = test.equality() else { return Ok(None) };
    let plain =
        !matches!(value, bson::RawBsonRef::Array(_) | bson::RawBsonRef::Null | bson::RawBsonRef::RegularExpression(_));
    let of_strings =
        matches!(value, bson::RawBsonRef::String(_) | bson::RawBsonRef::Document(_) | bson::RawBsonRef::Symbol(_));
    if !plain || (of_strings && !same) {
        return Ok(None);
    }
    let mut encoded = Vec::new();
    key::encode(value, target.collator.as_deref(), &mut encoded)?;
    Ok(solution(Node::IdHack(IdHack { collection: target.collection, clustered: target.clustered, encoded })))
}

/// All plans that read an index.
fn indexed(target: &Target, query: &Query, hint: Option<Hint<'_>>) -> Result<Vec<Solution>> {
    let mut solutions = Vec::new();
    let conditions = parts(query.filter.root());
    for index in target.candidates(hint) {
        let forced = hint.is_some();
        if index.kind == IndexKind::Clustered {
            solutions.extend(clustered(target, query, index, forced)?);
            continue;
        }
        // A hint is followed even where the index leaves documents out.
        if !forced && !holds_all_matches(index, query)? {
            continue;
        }
        for access in accesses(index, &conditions, query)? {
            solutions.extend(from_access(access, query, forced)?);
        }
    }
    solutions.extend(disjunctions(target, query, hint, &conditions)?);
    let bounded = solutions.iter().any(|solution| solution.score > 0);
    if bounded && hint.is_none() {
        // Reading a whole index is only worth it for its order, or if nothing bounds the search.
        let ordered = solutions.iter().any(|solution| solution.is_ordered && solution.score > 0);
        solutions
            .retain(|solution| solution.score > 0 || (!ordered && query.pattern().is_some() && solution.is_ordered));
    }
    Ok(solutions)
}

/// The plans over one access: as it comes, and taken apart to give an order.
fn from_access(access: Access, query: &Query, forced: bool) -> Result<Vec<Solution>> {
    let Access { mut scan, residual, is_bounded } = access;
    let pattern = query.pattern();
    let same_collation = collation::same(scan.index.collator(), query.filter.collator().map(|one| &**one));
    let covered = residual.is_empty() && covers(&scan, query);
    scan.covers = covered;
    scan.counts = query.purpose == Purpose::Count && covered && scan.is_single_range() && scan.filter.is_none();
    scan.distinct = distinct_fields(&scan, query).filter(|_| covered);
    let score = if is_bounded { score(&scan) } else { 0 };
    let ordered = match pattern {
        None => true,
        Some(pattern) => same_collation && give_order(&mut scan, pattern),
    };
    let useful = is_bounded || forced || (pattern.is_some() && ordered) || (covered && query.needs_little());
    if !useful {
        return Ok(Vec::new());
    }
    let mut solutions = Vec::new();
    let residual =
        (!residual.is_empty()).then(|| Filter::from_node(Condition::and(residual), query.filter.collator().cloned()));
    if let (false, Some(pattern), true) = (ordered, pattern, same_collation)
        && let Some(children) = explode(&scan, pattern)?
    {
        let merge = Node::SortMerge { pattern: pattern.clone(), children };
        let node = fetched(merge, covered, residual.clone());
        solutions.push(Solution { node, is_ordered: true, score });
        return Ok(solutions);
    }
    let node = fetched(Node::IndexScan(Box::new(scan)), covered, residual);
    solutions.push(Solution { node, is_ordered: ordered, score });
    Ok(solutions)
}

/// For a distinct query, the fields of the keys that tell its values apart: all that come after them may be passed over.
fn distinct_fields(scan: &IndexScan, query: &Query) -> Option<usize> {
    let Purpose::Distinct(path) = &query.purpose else { return None };
    let at = scan.fields.iter().position(|field| field.path == *path)?;
    let points = scan.intervals[..at].iter().all(super::bounds::are_points);
    (points && scan.filter.is_none() && !scan.is_multikey()).then_some(at + 1)
}

fn fetched(node: Node, covered: bool, filter: Option<Filter>) -> Node {
    if covered { node } else { Node::Fetch { filter, child: Box::new(node) } }
}

/// Points first, then bounded fields.
pub(super) fn score(scan: &IndexScan) -> usize {
    let mut score = 1;
    for intervals in &scan.intervals {
        if super::bounds::is_point(intervals) {
            score += 100;
        } else if super::bounds::are_points(intervals) {
            score += 50;
        } else if !intervals.is_all() {
            return score + 10;
        } else {
            return score;
        }
    }
    score
}

/// Whether all that a query needs of a document is in the keys.
fn covers(scan: &IndexScan, query: &Query) -> bool {
    if query.purpose == Purpose::Count {
        return true;
    }
    let Some(needed) = &query.needed else { return false };
    if !scan.index.can_cover() {
        return false;
    }
    let has = |path: &str| scan.fields.iter().any(|field| field.path == path && field.arrays == 0);
    let sorted = |pattern: &Arc<SortPattern>| pattern.fields().iter().all(|field| has(&field.path));
    needed.iter().all(|path| has(path)) && !scan.is_multikey() && query.pattern().is_none_or(sorted)
}

/// Plans that read several indexes: one for each branch of a disjunction, the other conditions joined to each branch.
fn disjunctions(
    target: &Target,
    query: &Query,
    hint: Option<Hint<'_>>,
    conditions: &[&Condition],
) -> Result<Vec<Solution>> {
    let mut solutions = Vec::new();
    for (number, condition) in conditions.iter().enumerate() {
        let Condition::Or(branches) = condition else { continue };
        let rest: Vec<Condition> = conditions
            .iter()
            .enumerate()
            .filter(|(other, _)| *other != number)
            .map(|(_, part)| (*part).clone())
            .collect();
        if let Some(solution) = disjunction(target, query, hint, branches, &rest)? {
            solutions.push(solution);
        }
    }
    Ok(solutions)
}

fn disjunction(
    target: &Target,
    query: &Query,
    hint: Option<Hint<'_>>,
    branches: &[Condition],
    rest: &[Condition],
) -> Result<Option<Solution>> {
    let (mut children, mut ordered, mut least) = (Vec::with_capacity(branches.len()), true, usize::MAX);
    for branch in branches {
        let joined = Condition::and(rest.iter().cloned().chain([branch.clone()]).collect());
        let Some(best) = best_of_branch(target, query, hint, &joined)? else { return Ok(None) };
        ordered &= best.is_ordered;
        least = least.min(best.score);
        children.push(best.node);
    }
    let covered = children.iter().all(|child| matches!(child, Node::IndexScan(scan) if scan.covers));
    if !covered {
        children = children.into_iter().map(with_documents).collect();
    }
    let pattern = query.pattern();
    let node = match pattern {
        Some(pattern) if ordered && can_merge(&children, pattern) => {
            Node::SortMerge { pattern: pattern.clone(), children }
        }
        _ => {
            ordered = pattern.is_none();
            Node::Or { children }
        }
    };
    // A branch's scan may be nested in a fetch already; one more would read each document twice.
    Ok(Some(Solution { node, is_ordered: ordered, score: least.max(1) }))
}

/// A branch that gives documents: a covered scan must fetch after all when its neighbours do.
fn with_documents(child: Node) -> Node {
    match child {
        Node::IndexScan(mut scan) => {
            scan.covers = false;
            scan.counts = false;
            Node::Fetch { filter: None, child: Box::new(Node::IndexScan(scan)) }
        }
        other => other,
    }
}

fn best_of_branch(
    target: &Target,
    query: &Query,
    hint: Option<Hint<'_>>,
    condition: &Condition,
) -> Result<Option<Solution>> {
    let conditions = parts(condition);
    let mut best: Option<Solution> = None;
    for index in target.candidates(hint) {
        if index.kind == IndexKind::Clustered || !holds_matches_of(index, condition, query)? {
            continue;
        }
        for access in accesses(index, &conditions, query)? {
            if !access.is_bounded {
                continue;
            }
            for solution in from_access(access, query, false)? {
                let rank = |one: &Solution| (one.is_ordered, one.score);
                let simple = scan_below(&solution.node).is_some();
                if simple && best.as_ref().is_none_or(|known| rank(known) < rank(&solution)) {
                    best = Some(solution);
                }
            }
        }
    }
    Ok(best.map(|mut solution| {
        if let Node::IndexScan(scan) = &mut solution.node {
            scan.counts = false;
        }
        solution
    }))
}

/// A scan of a clustered collection within bounds of `_id`.
fn clustered(target: &Target, query: &Query, index: &IndexInfo, forced: bool) -> Result<Option<Solution>> {
    let collator = target.collator.as_deref();
    let same = collation::same(collator, query.filter.collator().map(|one| &**one));
    let traits = IndexTraits { multikey: false, collated: collator.is_some() };
    let bounds = query.filter.root().bounds_on("_id", traits, collator, &query.environment)?;
    let usable = bounds.filter(|bounds| same || !super::bounds::depend_on_collation(&bounds.intervals));
    let by_id = |pattern: &Arc<SortPattern>| {
        pattern.fields().first().filter(|field| field.path == "_id" && same).map(|field| field.kind.is_descending())
    };
    let order = query.pattern().map(by_id);
    let is_ordered = order.is_none_or(|order| order.is_some());
    if usable.is_none() && !forced && !(query.pattern().is_some() && is_ordered) {
        return Ok(None);
    }
    let score = if usable.is_some() { 10 } else { 0 };
    let intervals = usable.map_or_else(crate::filter::Intervals::all, |bounds| bounds.intervals);
    let ranges = super::bounds::ranges_of(&intervals, false, index.collator())?;
    let scan = CollScan {
        collection: target.collection,
        filter: whole_filter(query),
        backward: order.flatten().unwrap_or(false),
        clustered: Some(Clustered { intervals, ranges }),
    };
    Ok(Some(Solution { node: Node::CollScan(scan), is_ordered, score }))
}

fn whole_filter(query: &Query) -> Option<Filter> {
    (!query.filter.is_empty()).then(|| (*query.filter).clone())
}

/// Every record, in one direction or the other.
fn scan_all(target: &Target, query: &Query, backward: bool) -> Solution {
    let natural = match &query.order {
        Some(Order::Natural { backward }) => Some(*backward),
        _ => None,
    };
    let scan = CollScan {
        collection: target.collection,
        filter: whole_filter(query),
        backward: natural.unwrap_or(backward),
        clustered: None,
    };
    Solution { node: Node::CollScan(scan), is_ordered: query.pattern().is_none(), score: 0 }
}

/// Puts what a query asks for beside its documents on top of a plan.
fn finish(target: &Target, query: &Query, solution: Solution) -> Solution {
    let _ = target;
    let Solution { mut node, is_ordered, score } = solution;
    let single = matches!(node, Node::IdHack(_) | Node::Eof);
    if let (Some(pattern), false, false) = (query.pattern(), is_ordered, single) {
        let limit = if query.limit == 0 { 0 } else { query.limit.saturating_add(query.skip) };
        node = Node::Sort { pattern: pattern.clone(), limit, child: Box::new(node) };
    }
    if query.skip > 0 && query.projection.is_none() {
        node = Node::Skip { amount: query.skip, child: Box::new(node) };
    }
    if let Some(document) = &query.projection {
        let covered = node.any(&|node| matches!(node, Node::IndexScan(scan) if scan.covers))
            && !node.any(&|node| matches!(node, Node::Fetch { .. }));
        let kind = match (covered, query.is_simple_projection) {
            (true, _) => ProjectionKind::Covered,
            (false, true) => ProjectionKind::Simple,
            (false, false) => ProjectionKind::Default,
        };
        if query.skip > 0 {
            node = Node::Skip { amount: query.skip, child: Box::new(node) };
        }
        node = Node::Project { kind, document: document.clone(), child: Box::new(node) };
    }
    let sorts = |node: &Node| matches!(node, Node::Sort { limit, .. } if *limit > 0);
    let sort_limits = node.any(&sorts) && query.skip == 0;
    if query.limit > 0 && !sort_limits {
        node = Node::Limit { amount: query.limit, child: Box::new(node) };
    }
    if query.purpose == Purpose::Count {
        node = Node::Count { child: Box::new(node) };
    }
    Solution { node, is_ordered, score }
}
