//! Stages that read measurements of a time series, group by group.
//!
//! A group is taken in one step from one view, and its rows are given from then on; so whatever is packed or written between
//! two views, no measurement that was there all the time is passed over or given twice.

use super::record::Chunks;
use super::{Counters, Cx, Member, Running, State, Work};
use crate::error::Result;
use crate::filter::Filter;
use crate::keyspace;
use crate::plan::bounds::{self, Check, FieldRanges};
use crate::plan::node::SeriesScan;
use crate::series::Series;
use crate::series::group::{Group, Reading, group_of_key, record_key};
use bson::RawDocument;
use bytes::Bytes;
use std::collections::HashSet;
use std::sync::Arc;

/// What becomes of a group once it is found.
struct Rows {
    series: Arc<Series>,
    reading: Arc<Reading>,
    filter: Option<Filter>,
    group: Option<Group>,
}

impl Rows {
    fn new(scan: &SeriesScan) -> Rows {
        Rows { series: scan.series.clone(), reading: scan.reading.clone(), filter: scan.filter.clone(), group: None }
    }

    /// The next row of the current group; `None` when there is none left.
    fn step(&mut self, cx: &Cx<'_>, counters: &mut Counters) -> Result<Option<State>> {
        let Some(group) = &mut self.group else { return Ok(None) };
        let Some((unit, document)) = group.next(cx.view, &self.series, &self.reading)? else {
            self.group = None;
            return Ok(None);
        };
        cx.count_document(counters);
        if let Some(filter) = &self.filter
            && !filter.matches(RawDocument::from_bytes(&document)?, cx.environment)?
        {
            return Ok(Some(State::NeedTime));
        }
        let record = record_key(group.key(), unit);
        let generation = cx.generation;
        let member = Member { record, document: Some(document), key: None, sort_key: None, generation };
        Ok(Some(State::Row(Box::new(member))))
    }
}

/// The entries of one kind, with a look at the next.
pub(super) struct Entries {
    kind: u8,
    chunks: Chunks,
    next: Option<(Bytes, Bytes)>,
}

impl Entries {
    pub(super) fn new(kind: u8, collection: u32, range: &(Vec<u8>, Vec<u8>), backward: bool) -> Entries {
        let prefix = keyspace::prefix(kind, collection);
        let chunks = Chunks::new([&prefix[..], &range.0].concat(), [&prefix[..], &range.1].concat(), backward);
        Entries { kind, chunks, next: None }
    }

    /// Whether they are buckets or loose measurements.
    pub(super) fn kind(&self) -> u8 {
        self.kind
    }

    /// Takes the entry that was looked at.
    pub(super) fn take(&mut self) -> Option<(Bytes, Bytes)> {
        self.next.take()
    }

    /// The group of the next entry.
    pub(super) fn group(&mut self, cx: &Cx<'_>) -> Result<Option<Bytes>> {
        if self.next.is_none() {
            self.next = self.chunks.next(cx)?;
        }
        Ok(self.next.as_ref().map(|(key, _)| group_of_key(key)))
    }

    /// Moves the group's entries into it.
    fn move_into(&mut self, group: &mut Group, cx: &Cx<'_>) -> Result<()> {
        while self.group(cx)?.is_some_and(|next| next == *group.key()) {
            if let Some((key, value)) = self.next.take() {
                group.add(self.kind, &key, value);
            }
        }
        Ok(())
    }

    /// Passes over what lies before a key's end.
    fn seek(&mut self, collection: u32, target: &[u8]) {
        let target = keyspace::key(self.kind, collection, target);
        if self.next.as_ref().is_none_or(|(key, _)| key[..] < target[..]) {
            self.next = None;
            self.chunks.seek(&target);
        }
    }

    /// Begins behind a group in another view, in the direction of reading; without one, at the edge where reading begins.
    pub(super) fn begin_behind(&mut self, collection: u32, group: Option<&Bytes>, edge: &[u8], backward: bool) {
        self.next = None;
        self.chunks.release();
        let key = keyspace::key(self.kind, collection, group.map_or(edge, |group| &group[..]));
        match group {
            Some(_) if !backward => {
                let behind = keyspace::after_prefix(&key).expect("a group's key does not end the key space");
                self.chunks.seek(&behind);
            }
            _ => self.chunks.seek(&key),
        }
    }
}

/// A scan of groups in the order of meta and time.
pub(super) struct GroupScan {
    collection: u32,
    rows: Rows,
    entries: Option<[Entries; 2]>,
    from: Vec<u8>,
    /// The last group that was taken.
    last: Option<Bytes>,
    ranges: Vec<FieldRanges>,
    descending: Vec<bool>,
}

impl GroupScan {
    pub(super) fn new(collection: u32, scan: &SeriesScan) -> GroupScan {
        let range = bounds::envelope(&scan.scan.ranges);
        let of = |range: &(Vec<u8>, Vec<u8>)| {
            [keyspace::BUCKETS, keyspace::RECORDS].map(|kind| Entries::new(kind, collection, range, false))
        };
        GroupScan {
            collection,
            rows: Rows::new(scan),
            entries: range.as_ref().map(of),
            from: range.map(|range| range.0).unwrap_or_default(),
            last: None,
            ranges: scan.scan.ranges.clone(),
            descending: scan.scan.descending(),
        }
    }
}

impl Work for GroupScan {
    fn step(&mut self, cx: &Cx<'_>, counters: &mut Counters) -> Result<State> {
        if let Some(state) = self.rows.step(cx, counters)? {
            return Ok(state);
        }
        let Some([buckets, loose]) = &mut self.entries else { return Ok(State::End) };
        let key = match (buckets.group(cx)?, loose.group(cx)?) {
            (Some(a), Some(b)) => a.min(b),
            (Some(one), None) | (None, Some(one)) => one,
            (None, None) => return Ok(State::End),
        };
        match bounds::check(&key, &self.ranges, &self.descending, false)? {
            Check::Within => {}
            Check::Done => return Ok(State::End),
            Check::Seek(target) => {
                buckets.seek(self.collection, &target);
                loose.seek(self.collection, &target);
                return Ok(State::NeedTime);
            }
        }
        cx.count_key(counters);
        let mut group = Group::new(self.collection, key.clone());
        buckets.move_into(&mut group, cx)?;
        loose.move_into(&mut group, cx)?;
        self.last = Some(key);
        self.rows.group = Some(group);
        Ok(State::NeedTime)
    }

    fn release(&mut self) {
        if let Some(entries) = &mut self.entries {
            entries.iter_mut().for_each(|one| one.begin_behind(self.collection, self.last.as_ref(), &self.from, false));
        }
    }
}

/// Reads the groups that an index leads to, each once.
pub(super) struct GroupFetch {
    collection: u32,
    rows: Rows,
    seen: HashSet<Bytes>,
    child: Running,
}

impl GroupFetch {
    pub(super) fn new(collection: u32, within: &SeriesScan, child: Running) -> GroupFetch {
        GroupFetch { collection, rows: Rows::new(within), seen: HashSet::new(), child }
    }
}

impl Work for GroupFetch {
    fn step(&mut self, cx: &Cx<'_>, counters: &mut Counters) -> Result<State> {
        if let Some(state) = self.rows.step(cx, counters)? {
            return Ok(state);
        }
        let member = match self.child.step(cx)? {
            State::Row(member) => member,
            state => return Ok(state),
        };
        if self.seen.insert(member.record.clone()) {
            self.rows.group = Some(Group::read(cx.view, self.collection, member.record)?);
        }
        Ok(State::NeedTime)
    }

    fn children(&self) -> Vec<&Running> {
        vec![&self.child]
    }

    fn release(&mut self) {
        self.child.release();
    }
}
