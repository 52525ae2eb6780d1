//! Choosing a plan: by trying all of them for a while.
//!
//! Every plan does one step after the other in turn, until one has given 101 rows or has ended, or the time for trials is
//! over. The plan with the most rows for its steps wins; among equals the one that reads no documents, and the one that
//! does not sort. What the winner gave is kept. A lone plan is not tried.

use super::cache::{PlanCache, REPLAN_FACTOR};
use super::execution::{Execution, Settings, State};
use super::node::Node;
use super::shape::shape;
use super::solve::{Solution, solve};
use super::{Purpose, Query, Target};
use crate::error::Result;
use crate::storage::View;
use std::sync::Arc;

/// The rows after which a trial ends.
const TRIAL_ROWS: u64 = 101;
/// The steps after which a trial ends.
const TRIAL_WORKS: u64 = 10_000;

/// A chosen plan.
pub struct Plan {
    pub(super) target: Target,
    pub(super) query: Query,
    pub(super) shape: String,
    pub(super) winner: Candidate,
    pub(super) rejected: Vec<Candidate>,
    pub(super) from_cache: bool,
    pub(super) is_filtered: bool,
}

/// A plan on trial.
pub(super) struct Candidate {
    pub(super) node: Arc<Node>,
    pub(super) execution: Execution,
    pub(super) score: f64,
    /// Why it failed, if it did.
    failure: Option<crate::Error>,
}

/// Finds the plan of a query. Trials read from `view`; so must the first rows, unless [`Execution::release`] is called.
///
/// # Errors
/// What the query's hint or bounds are refused for, a failing storage.
pub fn plan(target: &Target, query: &Query, view: &dyn View, cache: &PlanCache) -> Result<Plan> {
    match cache.filter_of(target, query) {
        None => choose(target, query, view, cache),
        Some(filter) => {
            let unhinted = Query { hint: None, ..query.clone() };
            Ok(Plan { is_filtered: true, ..choose(&target.restricted(&filter.indexes), &unhinted, view, cache)? })
        }
    }
}

fn choose(target: &Target, query: &Query, view: &dyn View, cache: &PlanCache) -> Result<Plan> {
    let mut solutions = solve(target, query)?;
    let settings = settings(target, query);
    let make = |solution: Solution| {
        let node = Arc::new(solution.node);
        let execution = Execution::new(node.clone(), &settings, query.environment.clone());
        Candidate { node, execution, score: 0.0, failure: None }
    };
    let shape = shape(query);
    let done = |winner, rejected, from_cache| Plan {
        target: target.clone(),
        query: query.clone(),
        shape: shape.clone(),
        winner,
        rejected,
        from_cache,
        is_filtered: false,
    };
    if solutions.len() == 1 {
        return Ok(done(make(solutions.remove(0)), Vec::new(), false));
    }
    if query.hint.is_none()
        && let Some(remembered) = cache.get(target, &shape)
    {
        if let Some(found) = solutions.iter().position(|one| signature(&one.node) == remembered.signature) {
            let mut candidate = make(solutions[found].clone());
            let bound = remembered.works.saturating_mul(REPLAN_FACTOR).max(TRIAL_ROWS);
            if run_alone(&mut candidate, view, bound)? {
                return Ok(done(candidate, Vec::new(), true));
            }
        }
        cache.remove(target, &shape);
    }
    let mut candidates: Vec<Candidate> = solutions.into_iter().map(make).collect();
    run_all(&mut candidates, view)?;
    let best = pick(&mut candidates)?;
    let winner = candidates.remove(best);
    let (remembers, works) =
        (query.hint.is_none() && winner.execution.root.counters.advanced > 0, winner.execution.root.counters.works);
    let plan = done(winner, candidates, false);
    if remembers {
        cache.put(target, &shape, plan.summary(), works, plan.describe_remembered()?);
    }
    Ok(plan)
}

pub(super) fn settings(target: &Target, query: &Query) -> Settings {
    Settings {
        collection: target.collection,
        clustered: target.clustered || target.series.is_some(),
        capped: target.capped,
        filter: query.filter.clone(),
        allow_disk_use: query.allow_disk_use,
        makes_documents: query.purpose != Purpose::Count,
        sort_values: query.pattern().filter(|_| query.wants_sort_key).cloned(),
    }
}

impl Plan {
    /// The plan at work, with the rows that its trial gave.
    pub fn into_execution(self) -> Execution {
        self.winner.execution
    }

    /// The names of the indexes that the plan reads.
    pub fn indexes(&self) -> Vec<String> {
        self.winner.node.indexes()
    }

    /// The plan in one line, stages from the top: `LIMIT(FETCH(IXSCAN a_1))`.
    pub fn summary(&self) -> String {
        signature(&self.winner.node)
    }
}

/// What tells plans of one query apart.
fn signature(node: &Node) -> String {
    let name = match node {
        Node::IndexScan(scan) => {
            let direction = if scan.backward { " backward" } else { "" };
            let bounded = scan.intervals.iter().filter(|intervals| !intervals.is_all()).count();
            format!("{} {}{direction} {bounded}", node.name(), scan.index.spec.name())
        }
        node => node.name().to_owned(),
    };
    let children: Vec<String> = node.children().into_iter().map(signature).collect();
    if children.is_empty() { name } else { format!("{name}({})", children.join(", ")) }
}

/// Runs a remembered plan for a while; false when it takes too long.
fn run_alone(candidate: &mut Candidate, view: &dyn View, bound: u64) -> Result<bool> {
    for _ in 0..bound {
        match candidate.execution.step(view)? {
            State::Row(member) => {
                candidate.execution.keep(*member)?;
                if candidate.execution.root.counters.advanced >= TRIAL_ROWS {
                    return Ok(true);
                }
            }
            State::NeedTime => {}
            State::End => return Ok(true),
        }
    }
    Ok(false)
}

fn run_all(candidates: &mut [Candidate], view: &dyn View) -> Result<()> {
    for _ in 0..TRIAL_WORKS {
        let mut is_over = false;
        for candidate in candidates.iter_mut().filter(|candidate| candidate.failure.is_none()) {
            match candidate.execution.step(view) {
                Ok(State::Row(member)) => {
                    candidate.execution.keep(*member)?;
                    is_over |= candidate.execution.root.counters.advanced >= TRIAL_ROWS;
                }
                Ok(State::NeedTime) => {}
                Ok(State::End) => is_over = true,
                Err(error) => candidate.failure = Some(error),
            }
        }
        if is_over || candidates.iter().all(|candidate| candidate.failure.is_some()) {
            break;
        }
    }
    Ok(())
}

/// The number of the best candidate.
fn pick(candidates: &mut [Candidate]) -> Result<usize> {
    for candidate in candidates.iter_mut() {
        candidate.score = score(candidate);
    }
    let alive = candidates.iter().enumerate().filter(|(_, candidate)| candidate.failure.is_none());
    let best = alive.fold(None, |best: Option<(usize, f64)>, (number, candidate)| match best {
        Some((_, score)) if score >= candidate.score => best,
        _ => Some((number, candidate.score)),
    });
    match best {
        Some((number, _)) => Ok(number),
        None => Err(candidates[0].failure.take().expect("all candidates failed")),
    }
}

/// Rows for steps, and a little more for what is better among equals.
fn score(candidate: &Candidate) -> f64 {
    let counters = &candidate.execution.root.counters;
    let productivity = counters.advanced as f64 / counters.works.max(1) as f64;
    let bonus = (1.0 / (10.0 * counters.works.max(1) as f64)).min(1e-4);
    let has = |holds: fn(&Node) -> bool| candidate.node.any(&holds);
    let mut score = 1.0 + productivity;
    if !has(|node| matches!(node, Node::Fetch { .. } | Node::CollScan(_) | Node::Series(_) | Node::SeriesFetch { .. }))
    {
        score += bonus;
    }
    if !has(|node| matches!(node, Node::Sort { .. })) {
        score += bonus;
    }
    if counters.is_eof {
        score += 1.0;
    }
    score
}
