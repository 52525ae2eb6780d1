//! Stages that read records: all of them, a range of them, or one.

use super::{Counters, Cx, Member, See, Shown, State, Work};
use crate::error::{Code, Error, Result};
use crate::filter::Filter;
use crate::keyspace;
use crate::plan::node::{CollScan, IdHack};
use crate::storage::{self, Direction};
use bson::RawDocument;
use bytes::Bytes;
use std::ops::Bound;

/// The entries of the first chunk; each later one is four times as large, up to [`MAX_CHUNK`].
pub(super) const FIRST_CHUNK: usize = 4;
/// The entries of the largest chunk.
pub(super) const MAX_CHUNK: usize = 256;
/// The bytes after which a chunk ends early.
pub(super) const MAX_CHUNK_BYTES: usize = 1 << 20;

/// Reads one range of the storage in chunks, and remembers how far it came.
pub(super) struct Chunks {
    low: Bound<Vec<u8>>,
    high: Bound<Vec<u8>>,
    backward: bool,
    size: usize,
    ahead: std::vec::IntoIter<(Bytes, Bytes)>,
    is_exhausted: bool,
}

impl Chunks {
    /// All entries from `low` to below `high`.
    pub(super) fn new(low: Vec<u8>, high: Vec<u8>, backward: bool) -> Chunks {
        Chunks {
            low: Bound::Included(low),
            high: Bound::Excluded(high),
            backward,
            size: FIRST_CHUNK,
            ahead: Vec::new().into_iter(),
            is_exhausted: false,
        }
    }

    /// The next entry.
    pub(super) fn next(&mut self, cx: &Cx<'_>) -> Result<Option<(Bytes, Bytes)>> {
        if let Some(entry) = self.take() {
            return Ok(Some(entry));
        }
        if self.is_exhausted {
            return Ok(None);
        }
        self.read(cx)?;
        Ok(self.take())
    }

    /// The last key that was given, reading forward.
    fn last(&self) -> Option<&[u8]> {
        match &self.low {
            Bound::Excluded(key) => Some(key),
            _ => None,
        }
    }

    fn take(&mut self) -> Option<(Bytes, Bytes)> {
        let entry = self.ahead.next()?;
        self.pass(&entry.0);
        Some(entry)
    }

    /// Remembers the last key that was given.
    fn pass(&mut self, key: &[u8]) {
        let end = if self.backward { &mut self.high } else { &mut self.low };
        match end {
            Bound::Excluded(passed) => {
                passed.clear();
                passed.extend_from_slice(key);
            }
            end => *end = Bound::Excluded(key.to_vec()),
        }
    }

    /// Shows the entries that are left, `most` at most or until `see` says no, where they lie.
    fn show(&mut self, cx: &Cx<'_>, most: usize, see: &mut storage::See<'_>) -> Result<Shown> {
        while let Some((key, value)) = self.take() {
            if !see(&key, &value)? {
                return Ok(Shown::All);
            }
        }
        if self.is_exhausted {
            return Ok(Shown::All);
        }
        let direction = if self.backward { Direction::Backward } else { Direction::Forward };
        let (low, high) = (self.low.as_ref().map(|key| &key[..]), self.high.as_ref().map(|key| &key[..]));
        let (mut seen, mut wanted, mut last) = (0, true, Vec::new());
        cx.view.scan(low, high, direction, &mut |key, value| {
            seen += 1;
            wanted = see(key, value)?;
            if seen == most {
                last.extend_from_slice(key);
            }
            Ok(wanted && seen < most)
        })?;
        self.is_exhausted = seen < most;
        if !last.is_empty() {
            self.pass(&last);
        }
        Ok(if wanted && seen == most { Shown::Some } else { Shown::All })
    }

    fn read(&mut self, cx: &Cx<'_>) -> Result<()> {
        let direction = if self.backward { Direction::Backward } else { Direction::Forward };
        let (low, high) = (self.low.as_ref().map(|key| &key[..]), self.high.as_ref().map(|key| &key[..]));
        let range = cx.view.range(low, high, direction)?;
        let (mut chunk, mut bytes) = (Vec::with_capacity(self.size), 0);
        let mut is_exhausted = true;
        for entry in range {
            let entry = entry?;
            bytes += entry.0.len() + entry.1.len();
            chunk.push(entry);
            if chunk.len() >= self.size || bytes >= MAX_CHUNK_BYTES {
                is_exhausted = false;
                break;
            }
        }
        self.is_exhausted = is_exhausted;
        self.size = (self.size * 4).min(MAX_CHUNK);
        self.ahead = chunk.into_iter();
        Ok(())
    }

    /// Goes on from other bytes: what lies before them in the direction of reading is passed over.
    pub(super) fn seek(&mut self, target: &[u8]) {
        let before = |key: &[u8]| if self.backward { key >= target } else { key < target };
        while let Some((key, _)) = self.ahead.as_slice().first() {
            if !before(key) {
                return;
            }
            self.ahead.next();
        }
        if self.is_exhausted && self.ahead.as_slice().is_empty() {
            return;
        }
        self.size = FIRST_CHUNK;
        if self.backward {
            self.high = Bound::Excluded(target.to_vec());
        } else {
            self.low = Bound::Included(target.to_vec());
        }
    }

    /// Forgets what was read ahead.
    pub(super) fn release(&mut self) {
        if !self.ahead.as_slice().is_empty() {
            self.ahead = Vec::new().into_iter();
        }
        self.is_exhausted = false;
        self.size = FIRST_CHUNK;
    }
}

/// A scan of records.
pub(super) struct RecordScan {
    ranges: std::vec::IntoIter<(Vec<u8>, Vec<u8>)>,
    current: Option<Chunks>,
    backward: bool,
    filter: Option<Filter>,
    /// Whether the record that a forward scan goes on from may have made room for new ones.
    capped: bool,
    /// Whether what was read is to be looked for in another view.
    is_resumed: bool,
}

impl RecordScan {
    pub(super) fn new(scan: &CollScan, capped: bool) -> RecordScan {
        let prefix = keyspace::prefix(keyspace::RECORDS, scan.collection);
        let end = keyspace::after_prefix(&prefix).expect("records are not the last kind of keys");
        let mut ranges: Vec<(Vec<u8>, Vec<u8>)> = match &scan.clustered {
            None => vec![(prefix.to_vec(), end)],
            Some(clustered) => {
                let ranges = clustered.ranges.iter();
                ranges.map(|range| ([&prefix[..], &range.start].concat(), [&prefix[..], &range.end].concat())).collect()
            }
        };
        if scan.backward {
            ranges.reverse();
        }
        RecordScan {
            ranges: ranges.into_iter(),
            current: None,
            backward: scan.backward,
            filter: scan.filter.clone(),
            capped: capped && !scan.backward,
            is_resumed: false,
        }
    }

    /// Fails where documents may have gone between the last one that was read and the next one.
    fn check_position(&mut self, cx: &Cx<'_>) -> Result<()> {
        if !std::mem::take(&mut self.is_resumed) || !self.capped {
            return Ok(());
        }
        let Some(last) = self.current.as_ref().and_then(Chunks::last) else { return Ok(()) };
        if cx.view.get(last)?.is_some() {
            return Ok(());
        }
        Err(Error::new(
            Code::CAPPED_POSITION_LOST,
            "the document that the cursor stood at has made room for newer ones in the capped collection, and perhaps others \
             that it has not read: find again",
        ))
    }
}

impl Work for RecordScan {
    fn step(&mut self, cx: &Cx<'_>, counters: &mut Counters) -> Result<State> {
        self.check_position(cx)?;
        let Some(chunks) = &mut self.current else {
            let Some((low, high)) = self.ranges.next() else { return Ok(State::End) };
            self.current = Some(Chunks::new(low, high, self.backward));
            return Ok(State::NeedTime);
        };
        let Some((key, document)) = chunks.next(cx)? else {
            if self.ranges.as_slice().is_empty() {
                return Ok(State::End);
            }
            self.current = None;
            return Ok(State::NeedTime);
        };
        cx.count_document(counters);
        if let Some(filter) = &self.filter
            && !filter.matches(RawDocument::from_bytes(&document)?, cx.environment)?
        {
            return Ok(State::NeedTime);
        }
        let record = key.slice(keyspace::RECORD_PREFIX_BYTES..);
        let generation = cx.generation;
        Ok(State::Row(Box::new(Member { record, document: Some(document), key: None, sort_key: None, generation })))
    }

    fn show(&mut self, cx: &Cx<'_>, counters: &mut Counters, most: usize, see: &mut See<'_>) -> Result<Option<Shown>> {
        self.check_position(cx)?;
        loop {
            let Some(chunks) = &mut self.current else {
                let Some((low, high)) = self.ranges.next() else { return Ok(Some(Shown::All)) };
                self.current = Some(Chunks::new(low, high, self.backward));
                continue;
            };
            let mut wanted = true;
            let filter = &self.filter;
            let shown = chunks.show(cx, most, &mut |key, value| {
                counters.works += 1;
                cx.count_document(counters);
                let document = RawDocument::from_bytes(value)?;
                if let Some(filter) = filter
                    && !filter.matches(document, cx.environment)?
                {
                    return Ok(true);
                }
                counters.advanced += 1;
                wanted = see(&key[keyspace::RECORD_PREFIX_BYTES..], document)?;
                Ok(wanted)
            })?;
            if shown == Shown::Some || !wanted || self.ranges.as_slice().is_empty() {
                return Ok(Some(shown));
            }
            self.current = None;
        }
    }

    fn release(&mut self) {
        self.is_resumed = true;
        if let Some(chunks) = &mut self.current {
            chunks.release();
        }
    }
}

/// One record by its `_id`.
pub(super) struct PointRead {
    read: IdHack,
    is_done: bool,
}

impl PointRead {
    pub(super) fn new(read: &IdHack) -> PointRead {
        PointRead { read: read.clone(), is_done: false }
    }
}

impl Work for PointRead {
    fn step(&mut self, cx: &Cx<'_>, counters: &mut Counters) -> Result<State> {
        if std::mem::replace(&mut self.is_done, true) {
            return Ok(State::End);
        }
        let record = if self.read.clustered {
            Bytes::from(self.read.encoded.clone())
        } else {
            let Some(record) = cx.view.get(&keyspace::id(self.read.collection, &self.read.encoded))? else {
                return Ok(State::End);
            };
            cx.count_key(counters);
            record
        };
        let Some(document) = cx.view.get(&keyspace::record(self.read.collection, &record))? else {
            return Ok(State::End);
        };
        cx.count_document(counters);
        let generation = cx.generation;
        Ok(State::Row(Box::new(Member { record, document: Some(document), key: None, sort_key: None, generation })))
    }
}
