//! Writing measurements: inserts leave them loose; deletes and updates find them, rewrite their buckets and insert again.

use super::group::{Group, LOOSE, Reading, Unit, split_record_key, window_of_group};
use super::{Series, bucket};
use crate::catalog::Collection;
use crate::context::Context;
use crate::database::{Inner, Written};
use crate::error::{Code, Error, Result};
use crate::keyspace;
use crate::operation::Query;
use crate::statement::{Delta, Statement};
use crate::storage::Ticket;
use bson::{DateTime, RawBsonRef, RawDocument, RawDocumentBuf};
use bytes::Bytes;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

/// The buckets that one commit rewrites at most.
const STEP_BUCKETS: usize = 64;
/// The measurements that one commit touches at most.
const STEP_ROWS: usize = 4000;

/// What is done to the measurements that match.
pub(crate) enum Change<'c> {
    /// They go.
    Delete,
    /// Others take their place; `None` where nothing changes.
    Update(&'c dyn Fn(&RawDocument) -> Result<Option<RawDocumentBuf>>),
}

/// What was done.
#[derive(Default)]
pub(crate) struct Done {
    /// How many matched.
    pub(crate) matched: usize,
    /// How many changed or went.
    pub(crate) changed: usize,
    /// The first of them.
    pub(crate) first: Option<RawDocumentBuf>,
}

/// Called in the statement that changes a measurement, for what must be committed with it.
pub(crate) type Beside<'b> = &'b dyn Fn(&mut Statement<'_>, &RawDocument);

impl Statement<'_> {
    /// Inserts a measurement, loose.
    ///
    /// # Errors
    /// `BadValue` (2) where it has no time; parallel arrays in an index.
    pub(crate) fn insert_measurement(
        &mut self,
        collection: &Arc<Collection>,
        series: &Series,
        document: &RawDocument,
    ) -> Result<()> {
        let (group, window) = series.group_of(document)?;
        let number = self.engine.series.next_number().to_be_bytes();
        let size = document.as_bytes().len();
        self.put(
            keyspace::key(keyspace::RECORDS, collection.id, &[&group[..], &number].concat()),
            Bytes::copy_from_slice(document.as_bytes()),
        );
        self.enter_measurement(collection, series, None, &group, window, document)?;
        self.add_delta(
            collection.id,
            Delta { count: 1, size_bytes: size as i64, largest_bytes: size as i64, ..Delta::default() },
        );
        self.engine.series.count(collection.id, &group, window, size);
        Ok(())
    }

    /// Enters a measurement's group into the indexes, or into some of them.
    pub(crate) fn enter_measurement(
        &mut self,
        collection: &Arc<Collection>,
        series: &Series,
        only: Option<&[u32]>,
        group: &Bytes,
        window_ms: i64,
        document: &RawDocument,
    ) -> Result<()> {
        for (place, index) in collection.indexes.iter().enumerate() {
            if series.is_order(&index.spec) || only.is_some_and(|only| !only.contains(&index.id)) {
                continue;
            }
            let keys = group_keys(series, &index.spec, window_ms, document)?;
            self.note_multikey(collection, place, &keys)?;
            for entry in keys.entries {
                let key = keyspace::index(index.id, &entry.key, group);
                if self.view().get(&key)?.is_none() {
                    self.put(key, entry.bits);
                }
            }
        }
        Ok(())
    }

    /// Enters all of a group into indexes that are being built.
    ///
    /// # Errors
    /// As [`Statement::insert_measurement`].
    pub(crate) fn enter_group(
        &mut self,
        collection: &Arc<Collection>,
        series: &Series,
        indexes: &[u32],
        group: &Bytes,
    ) -> Result<()> {
        let mut read = Group::read(self.view(), collection.id, group.clone())?;
        while let Some((_, document)) = read.next(self.view(), series, &Reading::default())? {
            let document = RawDocument::from_bytes(&document)?;
            let window = window_of_group(group);
            self.enter_measurement(collection, series, Some(indexes), group, window, document)?;
        }
        Ok(())
    }

    /// Takes the index entries of measurements that went out of a group, unless others in it have the same.
    fn leave_indexes(
        &mut self,
        collection: &Arc<Collection>,
        series: &Series,
        group: &Bytes,
        gone: &[Bytes],
    ) -> Result<()> {
        let indexes: Vec<_> =
            collection.indexes.iter().filter(|index| !series.is_order(&index.spec)).cloned().collect();
        if gone.is_empty() || indexes.is_empty() {
            return Ok(());
        }
        let window = window_of_group(group);
        let mut left = Vec::new();
        let mut rest = Group::read(self.view(), collection.id, group.clone())?;
        while let Some((_, document)) = rest.next(self.view(), series, &Reading::default())? {
            left.push(document);
        }
        for index in indexes {
            let keys_of = |documents: &[Bytes]| -> Result<HashSet<Bytes>> {
                let mut all = HashSet::new();
                for document in documents {
                    let keys = group_keys(series, &index.spec, window, RawDocument::from_bytes(document)?)?;
                    all.extend(keys.entries.into_iter().map(|entry| entry.key));
                }
                Ok(all)
            };
            let kept = keys_of(&left)?;
            for key in keys_of(gone)?.difference(&kept) {
                self.remove(keyspace::index(index.id, key, group));
            }
        }
        Ok(())
    }

    /// Takes rows out of a bucket, or a loose measurement away; gives what went.
    fn take_out(&mut self, collection: u32, group: &Bytes, number: [u8; 8], rows: &[u32]) -> Result<Vec<Bytes>> {
        let place = [&group[..], &number].concat();
        if rows.contains(&LOOSE) {
            let key = keyspace::record(collection, &place);
            let Some(document) = self.view().get(&key)? else { return Ok(Vec::new()) };
            self.remove(key);
            self.add_delta(collection, Delta { count: -1, size_bytes: -(document.len() as i64), ..Delta::default() });
            return Ok(vec![document]);
        }
        let key = keyspace::key(keyspace::BUCKETS, collection, &place);
        let Some(bytes) = self.view().get(&key)? else { return Ok(Vec::new()) };
        let series = self.series_of(collection)?;
        let (mut gone, mut left) = (Vec::with_capacity(rows.len()), Vec::new());
        let rows: HashSet<u32> = rows.iter().copied().collect();
        for (row, document) in bucket::unpack(&bytes, None)?.into_iter().enumerate() {
            if rows.contains(&(row as u32)) {
                gone.push(document);
            } else {
                left.push((series.time_of(RawDocument::from_bytes(&document)?)?, document));
            }
        }
        let mut delta = Delta { count: -(gone.len() as i64), size_bytes: -(bytes.len() as i64), ..Delta::default() };
        if left.is_empty() {
            self.remove(key);
            delta.buckets = -1;
        } else {
            let packed = bucket::pack(&left)?;
            delta.size_bytes += packed.len() as i64;
            self.put(key, packed.into());
        }
        self.add_delta(collection, delta);
        Ok(gone)
    }

    fn series_of(&self, collection: u32) -> Result<Arc<Series>> {
        let found = self.catalog.by_id(collection).and_then(|collection| collection.settings.series.clone());
        found.ok_or_else(|| Error::new(Code::NAMESPACE_NOT_FOUND, "the time series was dropped meanwhile"))
    }

    /// Changes the measurements of a group that a plan found.
    fn change_group(
        &mut self,
        collection: &Arc<Collection>,
        step: &Step,
        change: &Change<'_>,
        beside: Option<Beside<'_>>,
    ) -> Result<Done> {
        let series = self.series_of(collection.id)?;
        let mut done = Done::default();
        let (mut gone, mut instead) = (Vec::new(), Vec::new());
        for (number, rows) in &step.rows {
            for before in self.take_out(collection.id, &step.group, *number, rows)? {
                let document = RawDocument::from_bytes(&before)?;
                let after = match change {
                    Change::Delete => None,
                    Change::Update(after) => after(document)?,
                };
                let changed = after.is_some() || matches!(change, Change::Delete);
                done.matched += 1;
                done.changed += usize::from(changed);
                if let (Some(beside), true) = (beside, done.first.is_none()) {
                    beside(self, document);
                }
                done.first.get_or_insert_with(|| document.to_owned());
                if changed {
                    let after = self.run_hooks(&collection.namespace, Some(document), after)?;
                    instead.extend(after);
                } else {
                    instead.push(document.to_owned());
                }
                gone.push(before);
            }
        }
        self.leave_indexes(collection, &series, &step.group, &gone)?;
        for document in instead {
            crate::statement::check_size(&document)?;
            self.insert_measurement(collection, &series, &document)?;
        }
        Ok(done)
    }
}

/// The keys under which a measurement's group is entered: its time is the window's beginning.
pub(super) fn group_keys(
    series: &Series,
    spec: &crate::index::IndexSpec,
    window_ms: i64,
    document: &RawDocument,
) -> Result<crate::index::Keys> {
    let keys = spec.keys(document)?;
    let is_timed = spec.wildcard().is_some() || spec.fields().iter().any(|field| *field.path == *series.time_field);
    if keys.entries.is_empty() || !is_timed {
        return Ok(keys);
    }
    let window = RawBsonRef::DateTime(DateTime::from_millis(window_ms));
    let rounded = spec.keys(&crate::document::edit::set(document, &series.time_field, Some(window))?)?;
    // A partial index may leave the rounded time out: the exact one lies within every range that is read for it.
    Ok(if rounded.entries.is_empty() { keys } else { rounded })
}

/// Measurements of one group that one commit changes.
struct Step {
    group: Bytes,
    rows: BTreeMap<[u8; 8], Vec<u32>>,
}

impl Inner {
    /// Deletes or changes the measurements that match, all or the first.
    ///
    /// # Errors
    /// `OperationNotSupportedInTransaction` (263), an invalid query, what hooks refuse.
    pub(crate) fn change_measurements(
        self: &Arc<Inner>,
        context: &Context,
        collection: &Arc<Collection>,
        query: &Query,
        multi: bool,
        change: &Change<'_>,
        beside: Option<Beside<'_>>,
    ) -> Result<Written<Done>> {
        refuse_transaction(context, collection)?;
        let lock = self.series.lock(collection.id);
        let _held = context.block(|| lock.lock());
        let (reading, mut ticket) = self.reading_for_write(context)?;
        let parsed = self.parse_query(query, Some(collection))?;
        let mut rows = self.candidates(&reading, collection, query, &parsed, context)?;
        let mut done = Done::default();
        let mut step: Option<Step> = None;
        let mut size = 0;
        loop {
            let next = match rows.next()? {
                Some(row) => Some(split_record_key(row.record.as_ref().expect("a measurement has its record key"))?),
                None => None,
            };
            let is_over = match (&step, &next) {
                (Some(step), Some((group, unit))) => {
                    let is_new = !step.rows.contains_key(&unit.number);
                    step.group != group || is_new && (size >= STEP_ROWS || step.rows.len() >= STEP_BUCKETS)
                }
                (Some(_), None) => true,
                (None, _) => false,
            };
            if let (true, Some(step)) = (is_over, step.take_if(|_| is_over)) {
                context.check()?;
                ticket = self.change_step(context, collection, &step, change, beside, &mut done)?;
                size = 0;
            }
            let Some((group, Unit { number, row })) = next else { break };
            let step = step.get_or_insert_with(|| Step { group, rows: BTreeMap::new() });
            step.rows.entry(number).or_default().push(row);
            size += 1;
            if !multi {
                let step = Step { group: step.group.clone(), rows: std::mem::take(&mut step.rows) };
                ticket = self.change_step(context, collection, &step, change, beside, &mut done)?;
                break;
            }
        }
        Ok(Written { reply: done, ticket })
    }

    fn change_step(
        &self,
        context: &Context,
        collection: &Arc<Collection>,
        step: &Step,
        change: &Change<'_>,
        beside: Option<Beside<'_>>,
        done: &mut Done,
    ) -> Result<Ticket> {
        let written = self.write(context, |statement| match statement.catalog.by_id(collection.id).cloned() {
            Some(current) => statement.change_group(&current, step, change, beside),
            None => Ok(Done::default()),
        })?;
        done.matched += written.reply.matched;
        done.changed += written.reply.changed;
        done.first = done.first.take().or(written.reply.first);
        Ok(written.ticket)
    }

    /// The groups of a time series beyond one, for building an index.
    pub(crate) fn next_groups(&self, collection: u32, after: Option<&[u8]>, most: usize) -> Result<Vec<Bytes>> {
        use crate::storage::{Direction, View};
        let view = self.with_writer(|writer, _| Ok(writer.executed()))?;
        let mut groups = std::collections::BTreeSet::new();
        for kind in [keyspace::BUCKETS, keyspace::RECORDS] {
            let prefix = keyspace::prefix(kind, collection);
            let end = keyspace::after_prefix(&prefix).expect("a collection's prefix does not end the key space");
            let mut from = match after {
                Some(group) => keyspace::after_prefix(&keyspace::key(kind, collection, group)).expect("as above"),
                None => prefix.to_vec(),
            };
            for _ in 0..most {
                let (low, high) = (std::ops::Bound::Included(&from[..]), std::ops::Bound::Excluded(&end[..]));
                let Some((key, _)) = view.range(low, high, Direction::Forward)?.next().transpose()? else { break };
                let group = super::group::group_of_key(&key);
                from = keyspace::after_prefix(&keyspace::key(kind, collection, &group)).expect("as above");
                groups.insert(group);
            }
        }
        Ok(groups.into_iter().take(most).collect())
    }
}

/// Refuses writes of time series in transactions.
pub(crate) fn refuse_transaction(context: &Context, collection: &Collection) -> Result<()> {
    match context.transaction() {
        None => Ok(()),
        Some(_) => Err(in_transaction(collection)),
    }
}

/// What a write of a time series in a transaction is refused with.
pub(crate) fn in_transaction(collection: &Collection) -> Error {
    Error::new(
        Code::OPERATION_NOT_SUPPORTED_IN_TRANSACTION,
        format!("Cannot write to a time-series collection in a multi-document transaction: {}", collection.namespace),
    )
}
