//! What may be seen of a running operation from outside, and by which it is stopped.
//!
//! One thread at a time works for an operation, so its counters are added to without read-modify-write; whoever looks from
//! outside may see them a moment late.

use crate::error::Code;
use crate::plan::Node;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The most statements of one batch that are told apart.
const MAX_STATEMENTS: usize = 1000;

/// An operation's counters, its plan, and the way to stop it (`killOp`, a closed connection, shutdown).
#[derive(Debug, Default)]
pub struct Monitor {
    raised: AtomicI32,
    keys_examined: AtomicU64,
    docs_examined: AtomicU64,
    sorts: AtomicBool,
    done: AtomicU64,
    total: AtomicU64,
    plan: Mutex<Option<Seen>>,
    tells_statements: AtomicBool,
    statements: Mutex<Vec<StatementObserved>>,
}

/// How documents were found.
#[derive(Debug)]
enum Seen {
    /// One point read by `_id`, without a plan.
    PointRead,
    /// A plan.
    Plan(Arc<Node>),
}

/// What an operation has looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Observed {
    /// The index keys.
    pub keys_examined: u64,
    /// The documents.
    pub docs_examined: u64,
    /// Whether it sorted in memory.
    pub has_sort_stage: bool,
    /// Its first plan in short, e.g. `IXSCAN { a: 1 }`.
    pub plan_summary: Option<String>,
}

/// What one statement of a batch has looked at and done.
#[derive(Clone, Debug)]
pub struct StatementObserved {
    /// Which one.
    pub index: usize,
    /// What it looked at.
    pub observed: Observed,
    /// How long it took.
    pub elapsed: Duration,
    /// How many documents matched.
    pub matched: usize,
    /// How many changed.
    pub modified: usize,
}

/// The beginning of a statement that is told apart.
pub(crate) struct StatementBegun {
    at: Instant,
    keys_examined: u64,
    docs_examined: u64,
}

impl Monitor {
    /// Makes the operation fail at its next check.
    pub fn raise(&self, code: Code) {
        self.raised.store(code.0, Ordering::Relaxed);
    }

    /// The code it was stopped with.
    pub fn raised(&self) -> Option<Code> {
        match self.raised.load(Ordering::Relaxed) {
            0 => None,
            code => Some(Code(code)),
        }
    }

    /// What it has looked at so far.
    pub fn observed(&self) -> Observed {
        Observed {
            keys_examined: self.keys_examined.load(Ordering::Relaxed),
            docs_examined: self.docs_examined.load(Ordering::Relaxed),
            has_sort_stage: self.sorts.load(Ordering::Relaxed),
            plan_summary: self.plan.lock().as_ref().map(Seen::summary),
        }
    }

    /// How much of a long work is done, and of how much; for index builds, in documents.
    pub fn progress(&self) -> Option<(u64, u64)> {
        let total = self.total.load(Ordering::Relaxed);
        (total > 0).then(|| (self.done.load(Ordering::Relaxed), total))
    }

    pub(crate) fn set_progress(&self, done: u64, total: u64) {
        self.done.store(done, Ordering::Relaxed);
        self.total.store(total, Ordering::Relaxed);
    }

    /// Tells the statements of a batch apart from now on.
    pub fn tell_statements(&self) {
        self.tells_statements.store(true, Ordering::Relaxed);
    }

    /// The statements that were told apart.
    pub fn statements(&self) -> Vec<StatementObserved> {
        std::mem::take(&mut *self.statements.lock())
    }

    pub(crate) fn add_keys(&self, count: u64) {
        self.keys_examined.store(self.keys_examined.load(Ordering::Relaxed) + count, Ordering::Relaxed);
    }

    pub(crate) fn add_docs(&self, count: u64) {
        self.docs_examined.store(self.docs_examined.load(Ordering::Relaxed) + count, Ordering::Relaxed);
    }

    /// Notes a point read by `_id` and what it looked at.
    pub(crate) fn note_point_read(&self, found: bool) {
        self.add_keys(u64::from(found));
        self.add_docs(u64::from(found));
        self.plan.lock().get_or_insert(Seen::PointRead);
    }

    /// Notes a plan; the first one is kept.
    pub(crate) fn note_plan(&self, node: &Arc<Node>) {
        if node.any(&|node| matches!(node, Node::Sort { .. })) {
            self.note_sort();
        }
        self.plan.lock().get_or_insert_with(|| Seen::Plan(node.clone()));
    }

    /// Notes a sort in memory.
    pub(crate) fn note_sort(&self) {
        self.sorts.store(true, Ordering::Relaxed);
    }

    /// Takes over what another operation looked at since `before`: that of a cursor's rows is the one that opened it.
    pub(crate) fn add_since(&self, other: &Monitor, (keys, docs): (u64, u64)) {
        let (keys_now, docs_now) = other.examined();
        self.add_keys(keys_now.saturating_sub(keys));
        self.add_docs(docs_now.saturating_sub(docs));
        if other.sorts.load(Ordering::Relaxed) {
            self.note_sort();
        }
        let plan = match &*other.plan.lock() {
            Some(Seen::Plan(node)) => Seen::Plan(node.clone()),
            Some(Seen::PointRead) => Seen::PointRead,
            None => return,
        };
        self.plan.lock().get_or_insert(plan);
    }

    /// The keys and documents looked at so far.
    pub(crate) fn examined(&self) -> (u64, u64) {
        (self.keys_examined.load(Ordering::Relaxed), self.docs_examined.load(Ordering::Relaxed))
    }

    /// A statement of a batch begins; none if statements are not told apart.
    pub(crate) fn begin_statement(&self) -> Option<StatementBegun> {
        if !self.tells_statements.load(Ordering::Relaxed) {
            return None;
        }
        let (keys_examined, docs_examined) = self.examined();
        *self.plan.lock() = None;
        self.sorts.store(false, Ordering::Relaxed);
        Some(StatementBegun { at: Instant::now(), keys_examined, docs_examined })
    }

    /// A statement of a batch has ended.
    pub(crate) fn end_statement(&self, begun: Option<StatementBegun>, index: usize, matched: usize, modified: usize) {
        let Some(begun) = begun else { return };
        let mut observed = self.observed();
        observed.keys_examined -= begun.keys_examined;
        observed.docs_examined -= begun.docs_examined;
        let mut statements = self.statements.lock();
        if statements.len() < MAX_STATEMENTS {
            let elapsed = begun.at.elapsed();
            statements.push(StatementObserved { index, observed, elapsed, matched, modified });
        }
    }
}

impl Seen {
    fn summary(&self) -> String {
        match self {
            Seen::PointRead => "IDHACK".to_owned(),
            Seen::Plan(node) => node.summary(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_of_a_batch_are_told_apart() {
        let monitor = Monitor::default();
        assert!(monitor.begin_statement().is_none());
        monitor.add_docs(5);
        monitor.tell_statements();
        for (index, docs) in [3, 4].into_iter().enumerate() {
            let begun = monitor.begin_statement();
            monitor.add_docs(docs);
            if index == 0 {
                monitor.note_point_read(true);
            }
            monitor.end_statement(begun, index, 1, 0);
        }
        let statements = monitor.statements();
        let docs: Vec<u64> = statements.iter().map(|statement| statement.observed.docs_examined).collect();
        assert_eq!(docs, [4, 4]);
        assert_eq!(statements[0].observed.plan_summary.as_deref(), Some("IDHACK"));
        assert_eq!(statements[1].observed.plan_summary, None);
        assert_eq!(monitor.observed().docs_examined, 13);
    }
}
