//! One group of a time series: what it holds, read from one view.

use super::{Series, bucket};
use crate::error::{Error, Result};
use crate::keyspace;
use crate::storage::{Direction, View};
use bson::RawDocument;
use bytes::Bytes;
use std::collections::{BTreeSet, VecDeque};

/// The bytes of a number behind a group's key.
pub(crate) const NUMBER_BYTES: usize = 8;
/// The bytes of buckets that are kept while a group is read; what is beyond is read again.
const KEPT_BYTES: usize = 4 << 20;
/// Stands for the row of a measurement that is loose.
pub(crate) const LOOSE: u32 = u32::MAX;

/// Where a measurement of a group is: its bucket's or its own number, and the row.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Unit {
    /// The number.
    pub(crate) number: [u8; NUMBER_BYTES],
    /// The row of the bucket, or [`LOOSE`].
    pub(crate) row: u32,
}

/// A measurement's record key as plans carry it: group, number, row.
pub(crate) fn record_key(group: &[u8], unit: Unit) -> Bytes {
    let mut key = Vec::with_capacity(group.len() + NUMBER_BYTES + 4);
    key.extend_from_slice(group);
    key.extend_from_slice(&unit.number);
    key.extend_from_slice(&unit.row.to_be_bytes());
    key.into()
}

/// Takes apart what [`record_key`] made.
///
/// # Errors
/// `InternalError` (1) when it is too short.
pub(crate) fn split_record_key(key: &Bytes) -> Result<(Bytes, Unit)> {
    let short = || Error::internal("a measurement's record key is too short");
    let at = key.len().checked_sub(NUMBER_BYTES + 4).ok_or_else(short)?;
    let number = key[at..at + NUMBER_BYTES].try_into().map_err(|_| short())?;
    let row = u32::from_be_bytes(key[at + NUMBER_BYTES..].try_into().map_err(|_| short())?);
    Ok((key.slice(..at), Unit { number, row }))
}

/// The group of a storage key of a loose measurement or of a bucket.
pub(crate) fn group_of_key(key: &Bytes) -> Bytes {
    key.slice(keyspace::RECORD_PREFIX_BYTES..key.len().saturating_sub(NUMBER_BYTES).max(keyspace::RECORD_PREFIX_BYTES))
}

/// The number at the end of such a key.
pub(crate) fn number_of_key(key: &[u8]) -> [u8; NUMBER_BYTES] {
    key[key.len() - NUMBER_BYTES..].try_into().expect("a group's keys end with a number")
}

/// The window that a group's key ends with.
pub(crate) fn window_of_group(group: &[u8]) -> i64 {
    let time = group[group.len() - 8..].try_into().expect("a group's key ends with its window");
    (u64::from_be_bytes(time) ^ (1 << 63)) as i64
}

/// The time ranges, both ends within, that a query asks for.
pub(crate) type Times = Vec<(i64, i64)>;

/// What is read of measurements.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reading {
    /// The time ranges; `None` for all times.
    pub(crate) times: Option<Times>,
    /// The fields of the documents; `None` for all.
    pub(crate) needed: Option<BTreeSet<String>>,
}

impl Reading {
    /// Whether something between two times may be asked for.
    pub(crate) fn wants(&self, least_ms: i64, greatest_ms: i64) -> bool {
        self.times.as_ref().is_none_or(|times| times.iter().any(|(from, to)| *from <= greatest_ms && least_ms <= *to))
    }
}

/// A group on its way to rows.
#[derive(Debug, Default)]
pub(crate) struct Group {
    key: Bytes,
    collection: u32,
    /// Buckets not unpacked yet; without bytes where they were too many to keep.
    buckets: VecDeque<([u8; NUMBER_BYTES], Option<Bytes>)>,
    kept_bytes: usize,
    loose: Vec<([u8; NUMBER_BYTES], Bytes)>,
    rows: VecDeque<(Unit, Bytes)>,
}

impl Group {
    /// A group that nothing was read of yet.
    pub(crate) fn new(collection: u32, key: Bytes) -> Group {
        Group { key, collection, ..Group::default() }
    }

    /// All of a group.
    ///
    /// # Errors
    /// A failing storage.
    pub(crate) fn read(view: &dyn View, collection: u32, key: Bytes) -> Result<Group> {
        let mut group = Group::new(collection, key);
        for kind in [keyspace::BUCKETS, keyspace::RECORDS] {
            let prefix = keyspace::key(kind, collection, &group.key);
            let mut end = None;
            let (from, to) = keyspace::bounds(&prefix, &mut end);
            for entry in view.range(from, to, Direction::Forward)? {
                let (key, value) = entry?;
                group.add(kind, &key, value);
            }
        }
        Ok(group)
    }

    /// Takes an entry of the group.
    pub(crate) fn add(&mut self, kind: u8, key: &[u8], value: Bytes) {
        let number = number_of_key(key);
        if kind == keyspace::RECORDS {
            self.loose.push((number, value));
            return;
        }
        self.kept_bytes += value.len();
        self.buckets.push_back((number, (self.kept_bytes <= KEPT_BYTES).then_some(value)));
    }

    /// The group's key.
    pub(crate) fn key(&self) -> &Bytes {
        &self.key
    }

    /// The buckets and loose measurements as they are stored, for packing; nothing must have been unpacked.
    pub(crate) fn into_stored(self) -> (Vec<Stored>, Vec<Stored>) {
        (self.buckets.into_iter().filter_map(|(number, bytes)| Some((number, bytes?))).collect(), self.loose)
    }

    /// The next measurement that may be asked for.
    ///
    /// # Errors
    /// A failing storage, a damaged bucket.
    pub(crate) fn next(
        &mut self,
        view: &dyn View,
        series: &Series,
        reading: &Reading,
    ) -> Result<Option<(Unit, Bytes)>> {
        loop {
            if let Some(row) = self.rows.pop_front() {
                return Ok(Some(row));
            }
            if let Some((number, bytes)) = self.buckets.pop_front() {
                self.unpack(view, number, bytes, reading)?;
                continue;
            }
            if self.loose.is_empty() {
                return Ok(None);
            }
            let mut timed = Vec::with_capacity(self.loose.len());
            for (number, document) in self.loose.drain(..) {
                let time = series.time_of(RawDocument::from_bytes(&document)?)?;
                if reading.wants(time, time) {
                    timed.push((time, number, document));
                }
            }
            timed.sort_by_key(|row| (row.0, row.1));
            self.rows.extend(timed.into_iter().map(|(_, number, document)| (Unit { number, row: LOOSE }, document)));
        }
    }

    fn unpack(
        &mut self,
        view: &dyn View,
        number: [u8; NUMBER_BYTES],
        bytes: Option<Bytes>,
        reading: &Reading,
    ) -> Result<()> {
        let bytes = match bytes {
            Some(bytes) => Some(bytes),
            None => view.get(&keyspace::key(keyspace::BUCKETS, self.collection, &[&self.key[..], &number].concat()))?,
        };
        let Some(bytes) = bytes else { return Ok(()) };
        let header = bucket::header(&bytes)?;
        if !reading.wants(header.least_ms, header.greatest_ms) {
            return Ok(());
        }
        let documents = bucket::unpack(&bytes, reading.needed.as_ref())?;
        let rows = documents.into_iter().enumerate();
        self.rows.extend(rows.map(|(row, document)| (Unit { number, row: row as u32 }, document)));
        Ok(())
    }
}

/// A number with what is stored under it.
pub(crate) type Stored = ([u8; NUMBER_BYTES], Bytes);
