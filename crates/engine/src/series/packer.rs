//! Packing: which groups have enough loose measurements, and making buckets of them.
//!
//! Inserts count what they leave loose, in memory. The housekeeping thread looks each second: a group is due when a bucket's
//! worth is loose, or when nothing came for a while and its window is over. What one round packs is read from a snapshot,
//! under the collection's lock, and written in one commit: the bucket comes and the loose measurements go.

use super::group::{Group, Stored, group_of_key, window_of_group};
use super::{Series, bucket};
use crate::context::Context;
use crate::database::Inner;
use crate::error::Result;
use crate::keyspace;
use crate::statement::{Delta, Statement};
use crate::storage::{Direction, View};
use bson::RawDocument;
use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How long a group must be quiet before it is packed without having a bucket's worth.
const QUIET: Duration = Duration::from_secs(30);
/// The most groups that are counted; beyond, they are found by reading the loose measurements.
const MAX_COUNTED: usize = 200_000;
/// How long one look packs at most.
const LOOK_TIME: Duration = Duration::from_millis(700);
/// The loose measurements that one commit packs at most.
const STEP_ROWS: usize = 8 * bucket::MAX_ROWS;

/// What is loose, and the locks of collections.
#[derive(Default)]
pub(crate) struct Packer {
    next_number: AtomicU64,
    locks: Mutex<HashMap<u32, Arc<Mutex<()>>>>,
    loose: Mutex<HashMap<(u32, Bytes), Loose>>,
    /// Held while groups are counted and packed.
    packing: Mutex<()>,
    /// Whether groups may be loose that are not counted.
    is_incomplete: AtomicBool,
}

/// What a group has loose.
#[derive(Clone, Copy)]
struct Loose {
    rows: usize,
    bytes: usize,
    window_ms: i64,
    last: Instant,
}

impl Packer {
    /// A packer that begins with looking for what an earlier run left loose.
    pub(crate) fn new(time_ms: u64) -> Packer {
        let packer = Packer::default();
        // Later than every number that an earlier run gave: those began at its time, and a millisecond has a million.
        packer.next_number.store(time_ms << 20, Ordering::Relaxed);
        packer.is_incomplete.store(true, Ordering::Relaxed);
        packer
    }

    /// A number that no measurement or bucket had before.
    pub(crate) fn next_number(&self) -> u64 {
        self.next_number.fetch_add(1, Ordering::Relaxed)
    }

    /// The lock that keeps measurements of a collection where they are.
    pub(crate) fn lock(&self, collection: u32) -> Arc<Mutex<()>> {
        self.locks.lock().entry(collection).or_default().clone()
    }

    /// Forgets a collection that was dropped.
    pub(crate) fn forget(&self, collection: u32) {
        self.locks.lock().remove(&collection);
        self.loose.lock().retain(|key, _| key.0 != collection);
    }

    /// Counts a measurement that was left loose.
    pub(crate) fn count(&self, collection: u32, group: &Bytes, window_ms: i64, bytes: usize) {
        let mut loose = self.loose.lock();
        if let Some(known) = loose.get_mut(&(collection, group.clone())) {
            known.rows += 1;
            known.bytes += bytes;
            known.last = Instant::now();
        } else if loose.len() < MAX_COUNTED {
            let first = Loose { rows: 1, bytes, window_ms, last: Instant::now() };
            loose.insert((collection, group.clone()), first);
        } else {
            self.is_incomplete.store(true, Ordering::Relaxed);
        }
    }

    /// Takes the groups that are due.
    fn take_due(&self, now_ms: i64, all: bool, span_of: &dyn Fn(u32) -> Option<i64>) -> Vec<(u32, Bytes)> {
        let mut loose = self.loose.lock();
        let is_due = |collection: u32, group: &Loose| {
            let is_full = group.rows >= bucket::MAX_ROWS || group.bytes >= bucket::MAX_BYTES;
            let is_over = || {
                let end = group.window_ms.saturating_add(span_of(collection).unwrap_or(0));
                end < now_ms && group.last.elapsed() >= QUIET
            };
            all || is_full || is_over()
        };
        let due: Vec<_> =
            loose.iter().filter(|(key, group)| is_due(key.0, group)).map(|(key, _)| key.clone()).collect();
        for key in &due {
            loose.remove(key);
        }
        due
    }
}

impl Inner {
    /// Packs what is due; with `all`, everything that is loose. Gives the number of buckets made.
    pub(crate) fn pack_due(self: &Arc<Inner>, all: bool) -> Result<usize> {
        let _packing = self.series.packing.lock();
        if self.series.is_incomplete.swap(false, Ordering::Relaxed) {
            self.count_loose()?;
        }
        let catalog = self.state().catalog;
        let series_of = |collection: u32| catalog.by_id(collection)?.settings.series.clone();
        let span_of = |collection| Some(series_of(collection)?.span_ms);
        let due = self.series.take_due((self.options.clock)(), all, &span_of);
        let (mut made, begun) = (0, Instant::now());
        for (number, (collection, group)) in due.iter().enumerate() {
            let Some(series) = series_of(*collection) else { continue };
            if !all && begun.elapsed() > LOOK_TIME {
                self.series.is_incomplete.store(number < due.len(), Ordering::Relaxed);
                break;
            }
            made += self.pack_group(*collection, &series, group, all)?;
        }
        Ok(made)
    }

    /// Counts what is loose by reading it.
    fn count_loose(&self) -> Result<()> {
        let catalog = self.state().catalog;
        for collection in catalog.all() {
            if collection.settings.series.is_none() {
                continue;
            }
            // In this order: what is inserted meanwhile is counted by whoever inserts it, or seen here.
            self.series.loose.lock().retain(|key, _| key.0 != collection.id);
            let view = self.with_writer(|writer, _| Ok(writer.executed()))?;
            let prefix = keyspace::prefix(keyspace::RECORDS, collection.id);
            let mut end = None;
            let (from, to) = keyspace::bounds(&prefix, &mut end);
            for entry in view.range(from, to, Direction::Forward)? {
                let (key, document) = entry?;
                let group = group_of_key(&key);
                self.series.count(collection.id, &group, window_of_group(&group), document.len());
            }
        }
        Ok(())
    }

    /// Packs the loose measurements of a group: whole buckets of them, and what is left too when the window is over.
    fn pack_group(&self, collection: u32, series: &Series, group: &Bytes, all: bool) -> Result<usize> {
        let lock = self.series.lock(collection);
        let Some(_held) = lock.try_lock() else {
            self.series.is_incomplete.store(true, Ordering::Relaxed);
            return Ok(0);
        };
        // What was executed, not only what is flushed: a delete that gave the lock up may not be.
        let view = self.with_writer(|writer, _| Ok(writer.executed()))?;
        let read = Group::read(&view, collection, group.clone())?;
        let (buckets, loose) = read.into_stored();
        let window = window_of_group(group);
        let is_over = all || window.saturating_add(series.span_ms) < (self.options.clock)();
        let (mut made, mut left) = (0, &loose[..]);
        while !left.is_empty() {
            let (step, rest) = left.split_at(left.len().min(STEP_ROWS));
            let joined = if rest.is_empty() && is_over { small_buckets(&buckets, step.len())? } else { Vec::new() };
            let plan = Packing::of(series, step, joined, is_over || !rest.is_empty())?;
            made += plan.buckets.len();
            if !plan.buckets.is_empty() {
                drop(self.write(&Context::default(), |statement| plan.write(statement, collection, group))?);
            }
            plan.kept.iter().for_each(|bytes| self.series.count(collection, group, window, *bytes));
            left = rest;
        }
        Ok(made)
    }
}

/// The buckets that are worth joining with so many loose measurements: not much larger than they are together.
fn small_buckets(buckets: &[Stored], rows: usize) -> Result<Vec<Stored>> {
    let mut small = Vec::new();
    for bucket in buckets {
        let header = bucket::header(&bucket.1)?;
        if header.count <= rows.saturating_mul(2) && header.count < bucket::MAX_ROWS / 2 {
            small.push(bucket.clone());
        }
    }
    Ok(small)
}

/// What one commit packs.
struct Packing {
    buckets: Vec<Vec<u8>>,
    /// Keys and sizes of what goes.
    gone: Vec<(u8, [u8; 8], usize)>,
    /// The bytes of each measurement that stays loose.
    kept: Vec<usize>,
}

impl Packing {
    /// Sorts measurements into buckets. Unless `whole`, those that fill no bucket stay loose.
    fn of(series: &Series, loose: &[Stored], joined: Vec<Stored>, whole: bool) -> Result<Packing> {
        let mut rows = Vec::with_capacity(loose.len());
        let mut gone = Vec::new();
        for (number, bucket) in &joined {
            gone.push((keyspace::BUCKETS, *number, bucket.len()));
            for document in bucket::unpack(bucket, None)? {
                rows.push((series.time_of(RawDocument::from_bytes(&document)?)?, None, document));
            }
        }
        for (number, document) in loose {
            rows.push((series.time_of(RawDocument::from_bytes(document)?)?, Some(*number), document.clone()));
        }
        rows.sort_by_key(|row| row.0);
        let (mut buckets, mut kept) = (Vec::new(), Vec::new());
        for chunk in chunks(rows) {
            let is_full = chunk.len() >= bucket::MAX_ROWS
                || chunk.iter().map(|row| row.2.len()).sum::<usize>() >= bucket::MAX_BYTES;
            if !whole && !is_full {
                kept.extend(chunk.iter().map(|row| row.2.len()));
                continue;
            }
            let timed: Vec<(i64, Bytes)> = chunk.iter().map(|row| (row.0, row.2.clone())).collect();
            buckets.push(bucket::pack(&timed)?);
            let numbers = chunk.iter().filter_map(|row| Some((keyspace::RECORDS, row.1?, row.2.len())));
            gone.extend(numbers);
        }
        Ok(Packing { buckets, gone, kept })
    }

    fn write(&self, statement: &mut Statement<'_>, collection: u32, group: &Bytes) -> Result<()> {
        if statement.catalog.by_id(collection).is_none() {
            return Ok(());
        }
        let key = |kind, number: &[u8; 8]| keyspace::key(kind, collection, &[&group[..], number].concat());
        let mut delta = Delta::default();
        for (kind, number, size) in &self.gone {
            statement.remove(key(*kind, number));
            delta.size_bytes -= *size as i64;
            delta.buckets -= i64::from(*kind == keyspace::BUCKETS);
        }
        for bucket in &self.buckets {
            let number = statement.engine.series.next_number().to_be_bytes();
            statement.put(key(keyspace::BUCKETS, &number), Bytes::copy_from_slice(bucket));
            delta.size_bytes += bucket.len() as i64;
            delta.buckets += 1;
        }
        statement.add_delta(collection, delta);
        Ok(())
    }
}

/// A measurement to be packed: its time, its number if it is loose, its document.
type Packed = (i64, Option<[u8; 8]>, Bytes);

/// Takes measurements that are ordered by time apart, into what one bucket may hold each.
fn chunks(rows: Vec<Packed>) -> Vec<Vec<Packed>> {
    let mut chunks: Vec<Vec<Packed>> = Vec::new();
    let mut bytes = 0;
    for row in rows {
        match chunks.last_mut() {
            Some(last) if last.len() < bucket::MAX_ROWS && bytes + row.2.len() <= bucket::MAX_BYTES => {
                bytes += row.2.len();
                last.push(row);
            }
            _ => {
                bytes = row.2.len();
                chunks.push(vec![row]);
            }
        }
    }
    chunks
}
