//! The stage that reads one series in the order of time, without sorting it.
//!
//! ```text
//!   ascending:   emitted │ buffer: unpacked rows │ pending: buckets by their least time │ groups not read yet
//!                        └ a row goes out once it is not later than the least of what is pending and of the next window
//! ```
//!
//! Groups lie in the order of their windows, buckets know their least and greatest time. So only buckets that overlap are
//! unpacked at the same time, and the newest measurement of a series is found in its last bucket.

use super::series::Entries;
use super::{Counters, Cx, Member, State, Work};
use crate::error::Result;
use crate::filter::Filter;
use crate::keyspace;
use crate::plan::node::{SeriesOrder, SeriesScan};
use crate::series::Series;
use crate::series::bucket;
use crate::series::group::{
    LOOSE, NUMBER_BYTES, Reading, Unit, group_of_key, number_of_key, record_key, window_of_group,
};
use crate::storage::Direction;
use bson::RawDocument;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

/// A bucket that is not unpacked yet.
struct Pending {
    group: Bytes,
    number: [u8; NUMBER_BYTES],
    least_ms: i64,
    greatest_ms: i64,
    bytes: Bytes,
}

/// A scan of one series in the order of time.
pub(super) struct OrderedScan {
    collection: u32,
    series: Arc<Series>,
    reading: Arc<Reading>,
    filter: Option<Filter>,
    descending: bool,
    entries: [Entries; 2],
    /// Where the entries begin or, going backward, end.
    edge: Vec<u8>,
    /// Groups of meta values that are arrays lie elsewhere: they are read first.
    arrays: Option<(Vec<u8>, Vec<u8>)>,
    last: Option<Bytes>,
    pending: Vec<Pending>,
    buffer: BTreeMap<(i64, Bytes), Bytes>,
}

impl OrderedScan {
    pub(super) fn new(collection: u32, scan: &SeriesScan, order: &SeriesOrder) -> OrderedScan {
        let of = |kind| Entries::new(kind, collection, &order.range, order.descending);
        OrderedScan {
            collection,
            series: scan.series.clone(),
            reading: scan.reading.clone(),
            filter: scan.filter.clone(),
            descending: order.descending,
            entries: [keyspace::BUCKETS, keyspace::RECORDS].map(of),
            edge: if order.descending { order.range.1.clone() } else { order.range.0.clone() },
            arrays: order.arrays.clone(),
            last: None,
            pending: Vec::new(),
            buffer: BTreeMap::new(),
        }
    }

    /// Takes an entry: a bucket waits until it is its turn, a loose measurement goes into the buffer.
    fn add(&mut self, kind: u8, key: &Bytes, value: Bytes) -> Result<()> {
        let (group, number) = (group_of_key(key), number_of_key(key));
        if kind == keyspace::RECORDS {
            let time = self.series.time_of(RawDocument::from_bytes(&value)?)?;
            if self.reading.wants(time, time) {
                self.buffer.insert((time, record_key(&group, Unit { number, row: LOOSE })), value);
            }
            return Ok(());
        }
        let header = bucket::header(&value)?;
        if self.reading.wants(header.least_ms, header.greatest_ms) {
            let (least_ms, greatest_ms) = (header.least_ms, header.greatest_ms);
            self.pending.push(Pending { group, number, least_ms, greatest_ms, bytes: value });
        }
        Ok(())
    }

    fn read_arrays(&mut self, cx: &Cx<'_>) -> Result<()> {
        let Some((low, high)) = self.arrays.take() else { return Ok(()) };
        for kind in [keyspace::BUCKETS, keyspace::RECORDS] {
            let (low, high) = (keyspace::key(kind, self.collection, &low), keyspace::key(kind, self.collection, &high));
            for entry in cx.view.range(Bound::Included(&low), Bound::Excluded(&high), Direction::Forward)? {
                let (key, value) = entry?;
                self.add(kind, &key, value)?;
            }
        }
        Ok(())
    }

    /// The group that comes next, with the time that none of its measurements lies before (going backward: after).
    fn next_group(&mut self, cx: &Cx<'_>) -> Result<Option<(Bytes, i64)>> {
        let [buckets, loose] = &mut self.entries;
        let group = match (buckets.group(cx)?, loose.group(cx)?) {
            (Some(a), Some(b)) => Some(if self.descending { a.max(b) } else { a.min(b) }),
            (one, other) => one.or(other),
        };
        let Some(group) = group else { return Ok(None) };
        let window = window_of_group(&group);
        let edge = if self.descending { window.saturating_add(self.series.span_ms - 1) } else { window };
        Ok(Some((group, edge)))
    }

    /// The pending bucket whose turn it is, with its edge.
    fn next_pending(&self) -> Option<(usize, i64)> {
        let edges = self.pending.iter().map(|one| if self.descending { one.greatest_ms } else { one.least_ms });
        if self.descending {
            edges.enumerate().max_by_key(|(_, edge)| *edge)
        } else {
            edges.enumerate().min_by_key(|(_, edge)| *edge)
        }
    }

    fn unpack(&mut self, place: usize) -> Result<()> {
        let Pending { group, number, bytes, .. } = self.pending.swap_remove(place);
        for (row, document) in bucket::unpack(&bytes, self.reading.needed.as_ref())?.into_iter().enumerate() {
            let time = self.series.time_of(RawDocument::from_bytes(&document)?)?;
            self.buffer.insert((time, record_key(&group, Unit { number, row: row as u32 })), document);
        }
        Ok(())
    }

    /// Takes the rows out whose turn has come, given what is still to be read.
    fn ready(&mut self, edge: Option<i64>) -> Option<(Bytes, Bytes)> {
        let entry = if self.descending { self.buffer.last_entry() } else { self.buffer.first_entry() }?;
        let time = entry.key().0;
        let is_ready = edge.is_none_or(|edge| if self.descending { time >= edge } else { time <= edge });
        is_ready.then(|| {
            let ((_, record), document) = entry.remove_entry();
            (record, document)
        })
    }
}

impl Work for OrderedScan {
    fn step(&mut self, cx: &Cx<'_>, counters: &mut Counters) -> Result<State> {
        self.read_arrays(cx)?;
        let group = self.next_group(cx)?;
        let pending = self.next_pending();
        let nearer = |a: i64, b: i64| if self.descending { a.max(b) } else { a.min(b) };
        let edge = match (&group, pending) {
            (Some((_, a)), Some((_, b))) => Some(nearer(*a, b)),
            (Some((_, a)), None) => Some(*a),
            (None, Some((_, b))) => Some(b),
            (None, None) => None,
        };
        if let Some((record, document)) = self.ready(edge) {
            cx.count_document(counters);
            if let Some(filter) = &self.filter
                && !filter.matches(RawDocument::from_bytes(&document)?, cx.environment)?
            {
                return Ok(State::NeedTime);
            }
            let generation = cx.generation;
            let member = Member { record, document: Some(document), key: None, sort_key: None, generation };
            return Ok(State::Row(Box::new(member)));
        }
        match (group, pending) {
            (_, Some((place, own))) if edge == Some(own) => self.unpack(place)?,
            (Some((group, _)), _) => {
                cx.count_key(counters);
                let mut taken = Vec::new();
                for entries in &mut self.entries {
                    while entries.group(cx)?.is_some_and(|next| next == group) {
                        taken.extend(entries.take().map(|(key, value)| (entries.kind(), key, value)));
                    }
                }
                for (kind, key, value) in taken {
                    self.add(kind, &key, value)?;
                }
                self.last = Some(group);
            }
            (None, _) => return Ok(State::End),
        }
        Ok(State::NeedTime)
    }

    fn release(&mut self) {
        let (collection, last, edge, descending) = (self.collection, self.last.clone(), &self.edge, self.descending);
        self.entries.iter_mut().for_each(|one| one.begin_behind(collection, last.as_ref(), edge, descending));
    }
}
