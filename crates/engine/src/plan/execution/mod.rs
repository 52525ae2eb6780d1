//! Running a plan, by steps.
//!
//! Each stage does a bounded piece of work when asked and says what came of it: a row, nothing yet, or the end. Stages
//! hold positions (the last key), never iterators, and read ahead in chunks that grow. [`Execution::release`] throws away
//! what was read ahead; afterwards the next call may bring another view, and what was in flight is checked again.

mod fetch;
mod index;
mod merge;
mod record;
mod series;
mod series_order;
mod simple;
mod sort;
mod spill;

use super::node::Node;
use super::sort::SortPattern;
use crate::document::Row;
use crate::error::Result;
use crate::expression::Environment;
use crate::filter::Filter;
use crate::monitor::Monitor;
use crate::storage::View;
use bson::{RawDocument, rawdoc};
use bytes::Bytes;
use std::collections::VecDeque;
use std::sync::Arc;

/// A row on its way through the stages.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    /// The record's key.
    pub(crate) record: Bytes,
    /// The document, once it is read.
    pub(crate) document: Option<Bytes>,
    /// The key of the index that led here.
    pub(crate) key: Option<IndexKey>,
    /// The bytes that order it among others.
    pub(crate) sort_key: Option<Bytes>,
    /// Of which view it was read: see [`Execution::release`].
    pub(crate) generation: u64,
}

/// A key of an index, as stored.
#[derive(Clone, Debug)]
pub(crate) struct IndexKey {
    /// The fields' bytes.
    pub(crate) fields: Bytes,
    /// What they can't tell.
    pub(crate) types: Bytes,
}

/// What came of a step.
pub(crate) enum State {
    /// A row.
    Row(Box<Member>),
    /// Nothing yet.
    NeedTime,
    /// The end.
    End,
}

/// Looks at a record's key and its document; false when no more are wanted.
pub(crate) type See<'s> = dyn FnMut(&[u8], &RawDocument) -> Result<bool> + 's;

/// How showing rows ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shown {
    /// There may be more.
    Some,
    /// There are no more, or no more are wanted.
    All,
}

/// What stages see while they work.
pub(crate) struct Cx<'v> {
    pub(crate) view: &'v dyn View,
    pub(crate) environment: &'v Environment,
    pub(crate) generation: u64,
    /// Whom to tell what was looked at.
    pub(crate) monitor: Option<&'v Monitor>,
    /// Whether a step may do as much as showing some rows: not where steps are counted against other plans'.
    pub(crate) in_bulk: bool,
}

impl Cx<'_> {
    /// Counts a key that was looked at.
    pub(crate) fn count_key(&self, counters: &mut Counters) {
        counters.keys_examined += 1;
        if let Some(monitor) = self.monitor {
            monitor.add_keys(1);
        }
    }

    /// Counts a document that was looked at.
    pub(crate) fn count_document(&self, counters: &mut Counters) {
        counters.docs_examined += 1;
        if let Some(monitor) = self.monitor {
            monitor.add_docs(1);
        }
    }
}

/// What a stage has done so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counters {
    pub(crate) works: u64,
    pub(crate) advanced: u64,
    pub(crate) need_time: u64,
    pub(crate) releases: u64,
    pub(crate) is_eof: bool,
    pub(crate) keys_examined: u64,
    pub(crate) docs_examined: u64,
    pub(crate) seeks: u64,
    pub(crate) duplicates_tested: u64,
    pub(crate) duplicates_dropped: u64,
    pub(crate) sorted_bytes: u64,
    pub(crate) spills: u64,
    pub(crate) spilled_bytes: u64,
    pub(crate) counted: u64,
}

/// A stage's own part of the work.
pub(crate) trait Work: Send {
    /// One step.
    fn step(&mut self, cx: &Cx<'_>, counters: &mut Counters) -> Result<State>;

    /// Shows the remaining rows without making them, `most` looked at or until `see` says no; `None` when the stage can't
    /// and must be stepped.
    fn show(&mut self, cx: &Cx<'_>, counters: &mut Counters, most: usize, see: &mut See<'_>) -> Result<Option<Shown>> {
        let _ = (cx, counters, most, see);
        Ok(None)
    }

    /// The stages below.
    fn children(&self) -> Vec<&Running> {
        Vec::new()
    }

    /// Throws away what was read ahead.
    fn release(&mut self) {}
}

/// A stage at work.
pub(crate) struct Running {
    pub(crate) counters: Counters,
    work: Box<dyn Work>,
}

impl Running {
    fn new(work: impl Work + 'static) -> Running {
        Running { counters: Counters::default(), work: Box::new(work) }
    }

    /// One step, counted.
    pub(crate) fn step(&mut self, cx: &Cx<'_>) -> Result<State> {
        if self.counters.is_eof {
            return Ok(State::End);
        }
        self.counters.works += 1;
        let state = self.work.step(cx, &mut self.counters)?;
        match state {
            State::Row(_) => self.counters.advanced += 1,
            State::NeedTime => self.counters.need_time += 1,
            State::End => self.counters.is_eof = true,
        }
        Ok(state)
    }

    /// Shows the remaining rows where the stage can.
    pub(crate) fn show(&mut self, cx: &Cx<'_>, most: usize, see: &mut See<'_>) -> Result<Option<Shown>> {
        if self.counters.is_eof {
            return Ok(Some(Shown::All));
        }
        let shown = self.work.show(cx, &mut self.counters, most, see)?;
        self.counters.is_eof = shown == Some(Shown::All);
        Ok(shown)
    }

    /// The stages below.
    pub(crate) fn children(&self) -> Vec<&Running> {
        self.work.children()
    }

    fn release(&mut self) {
        self.counters.releases += 1;
        // A newer view may have more: a tailing scan goes on where it ended.
        self.counters.is_eof = false;
        self.work.release();
    }

    /// Adds up something over all stages.
    pub(crate) fn total(&self, of: &dyn Fn(&Counters) -> u64) -> u64 {
        of(&self.counters) + self.children().into_iter().map(|child| child.total(of)).sum::<u64>()
    }
}

/// Makes the stages of a plan.
pub(crate) fn start(node: &Node, settings: &Settings) -> Running {
    let below = |child: &Node| Box::new(start(child, settings));
    match node {
        Node::Eof => Running::new(simple::Nothing),
        Node::CollScan(scan) => Running::new(record::RecordScan::new(scan, settings.capped)),
        Node::IdHack(read) => Running::new(record::PointRead::new(read)),
        Node::IndexScan(scan) => Running::new(index::KeyScan::new(scan, settings)),
        Node::Fetch { filter, child } => Running::new(fetch::Fetch::new(settings, filter.clone(), *below(child))),
        Node::Series(scan) => match &scan.order {
            Some(order) => Running::new(series_order::OrderedScan::new(settings.collection, scan, order)),
            None => Running::new(series::GroupScan::new(settings.collection, scan)),
        },
        Node::SeriesFetch { within, child } => {
            Running::new(series::GroupFetch::new(settings.collection, within, *below(child)))
        }
        Node::Or { children } => {
            Running::new(merge::Union::new(children.iter().map(|child| start(child, settings)).collect()))
        }
        Node::SortMerge { pattern, children } => Running::new(merge::Merge::new(pattern, children, settings)),
        Node::Sort { pattern, limit, child } => {
            Running::new(sort::Sort::new(pattern.clone(), *limit, settings, *below(child)))
        }
        Node::Project { child, .. } => Running::new(simple::Through(*below(child))),
        Node::Skip { amount, child } => Running::new(simple::Skip::new(*amount, *below(child))),
        Node::Limit { amount, child } => Running::new(simple::Limit::new(*amount, *below(child))),
        Node::Count { child } => Running::new(simple::Count(*below(child))),
    }
}

/// What stages need to know beside their nodes.
#[derive(Clone)]
pub(crate) struct Settings {
    /// The collection.
    pub(crate) collection: u32,
    /// Whether records lie under their encoded `_id`, and so have keys of any length.
    pub(crate) clustered: bool,
    /// Whether old records make room for new ones.
    pub(crate) capped: bool,
    /// The whole filter, for what must be checked again.
    pub(crate) filter: Arc<Filter>,
    /// Whether a sort may use the disk.
    pub(crate) allow_disk_use: bool,
    /// Whether covered scans make documents.
    pub(crate) makes_documents: bool,
    /// What rows shall carry the values of.
    pub(crate) sort_values: Option<Arc<SortPattern>>,
}

/// What some steps of a plan gave.
#[derive(Debug)]
pub enum Polled {
    /// A row.
    Row(Row),
    /// Nothing yet.
    Pending,
    /// The end.
    End,
}

/// A plan at work: rows, pulled one at a time from whatever view is brought.
pub struct Execution {
    pub(crate) root: Running,
    pub(crate) node: Arc<Node>,
    environment: Arc<Environment>,
    generation: u64,
    /// Rows that a trial gave already.
    ready: VecDeque<Row>,
    /// What rows shall carry the values of.
    sort_values: Option<Arc<SortPattern>>,
    monitor: Option<Arc<Monitor>>,
}

impl Execution {
    pub(crate) fn new(node: Arc<Node>, settings: &Settings, environment: Arc<Environment>) -> Execution {
        let root = start(&node, settings);
        let sort_values = settings.sort_values.clone();
        Execution { root, node, environment, generation: 0, ready: VecDeque::new(), sort_values, monitor: None }
    }

    /// The next row; `None` at the end. The view must be the one of the call before, unless [`Execution::release`] was called.
    ///
    /// # Errors
    /// A failing storage, what the filter refuses, `QueryExceededMemoryLimitNoDiskUseAllowed` (292) for a large sort.
    pub fn next(&mut self, view: &dyn View) -> Result<Option<Row>> {
        loop {
            match self.poll(view, u32::MAX)? {
                Polled::Row(row) => return Ok(Some(row)),
                Polled::Pending => {}
                Polled::End => return Ok(None),
            }
        }
    }

    /// The next row, if some steps are enough to find it: the caller may look at the clock in between.
    ///
    /// # Errors
    /// As [`Execution::next`].
    pub fn poll(&mut self, view: &dyn View, steps: u32) -> Result<Polled> {
        if let Some(row) = self.ready.pop_front() {
            return Ok(Polled::Row(row));
        }
        let monitor = self.monitor.as_deref();
        let cx = Cx { view, environment: &self.environment, generation: self.generation, monitor, in_bulk: true };
        for _ in 0..steps {
            match self.root.step(&cx)? {
                State::Row(member) => return self.row(*member).map(Polled::Row),
                State::NeedTime => {}
                State::End => return Ok(Polled::End),
            }
        }
        Ok(Polled::Pending)
    }

    /// Shows the remaining rows' documents where they lie, some at a time; `None` when this plan gives rows only by
    /// [`Execution::poll`].
    ///
    /// # Errors
    /// As [`Execution::next`], and what `see` returns.
    pub fn show(&mut self, view: &dyn View, see: &mut dyn FnMut(&RawDocument) -> Result<()>) -> Result<Option<Shown>> {
        if !self.ready.is_empty() || self.sort_values.is_some() {
            return Ok(None);
        }
        let monitor = self.monitor.as_deref();
        let cx = Cx { view, environment: &self.environment, generation: self.generation, monitor, in_bulk: true };
        self.root.show(&cx, SHOWN_AT_ONCE, &mut |_, document| see(document).map(|()| true))
    }

    /// Lets go of the view: what was read ahead is thrown away, and the next call may bring a newer one.
    pub fn release(&mut self) {
        self.generation += 1;
        self.root.release();
    }

    /// Tells an operation's monitor of the plan, and of what it looks at from its trial on.
    pub(crate) fn report_to(&mut self, monitor: &Arc<Monitor>) {
        monitor.note_plan(&self.node);
        monitor.add_keys(self.keys_examined());
        monitor.add_docs(self.docs_examined());
        self.monitor = Some(monitor.clone());
    }

    /// How many rows a `COUNT` stage has counted.
    pub fn counted(&self) -> u64 {
        self.root.counters.counted
    }

    /// The names of the indexes that the plan reads.
    pub fn indexes(&self) -> Vec<String> {
        self.node.indexes()
    }

    /// The keys that were looked at so far.
    pub fn keys_examined(&self) -> u64 {
        self.root.total(&|counters| counters.keys_examined)
    }

    /// The documents that were looked at so far.
    pub fn docs_examined(&self) -> u64 {
        self.root.total(&|counters| counters.docs_examined)
    }

    /// Whether the records are read one after the other, in their own order.
    pub(crate) fn is_record_scan(&self) -> bool {
        matches!(*self.node, Node::CollScan(_))
    }

    /// Whether each row takes a bounded number of reads: every key that is read gives one.
    pub(crate) fn is_quick(&self) -> bool {
        self.node.is_quick()
    }

    /// Whether a stage sorts in memory.
    pub fn has_sort(&self) -> bool {
        self.node.any(&|node| matches!(node, Node::Sort { .. }))
    }

    pub(crate) fn step(&mut self, view: &dyn View) -> Result<State> {
        let monitor = self.monitor.as_deref();
        let cx = Cx { view, environment: &self.environment, generation: self.generation, monitor, in_bulk: false };
        self.root.step(&cx)
    }

    /// Keeps a row for later.
    pub(crate) fn keep(&mut self, member: Member) -> Result<()> {
        let row = self.row(member)?;
        self.ready.push_back(row);
        Ok(())
    }

    fn row(&self, member: Member) -> Result<Row> {
        let document = member.document.unwrap_or_else(|| Bytes::from_static(EMPTY_DOCUMENT));
        let mut row = Row::stored(document, member.record)?;
        if let Some(pattern) = &self.sort_values {
            let values = pattern.values(row.document(), self.environment.collator())?;
            row.sort_key = Some(Bytes::from(rawdoc! { "": values }.into_bytes()));
        }
        Ok(row)
    }
}

/// The records that are looked at between two looks at the clock.
pub(crate) const SHOWN_AT_ONCE: usize = 512;

const EMPTY_DOCUMENT: &[u8] = &[5, 0, 0, 0, 0];
