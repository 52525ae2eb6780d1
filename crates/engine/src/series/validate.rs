//! `validate` of a time series: whether buckets can be read, measurements lie in their groups, and indexes lead to all groups.

use super::group::{Group, Reading, window_of_group};
use super::write::group_keys;
use crate::catalog::Collection;
use crate::context::Context;
use crate::database::Inner;
use crate::error::Result;
use crate::keyspace;
use crate::operation::{IndexValidation, Validation};
use crate::storage::{Direction, View};
use bson::RawDocument;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The groups that are looked up at once.
const STEP_GROUPS: usize = 64;

impl Inner {
    /// Compares a time series with its indexes and its totals. What is wrong stands in the reply.
    ///
    /// # Errors
    /// A failing storage, an interruption.
    pub(crate) fn validate_series(&self, context: &Context, collection: &Arc<Collection>) -> Result<Validation> {
        let Some(series) = &collection.settings.series else { return Ok(Validation::default()) };
        // Nothing is moved meanwhile; inserts only add.
        let lock = self.series.lock(collection.id);
        let _held = lock.lock();
        let mut found = Validation::default();
        for index in collection.indexes.iter().filter(|index| index.ready) {
            let (name, spec) = (index.spec.name().to_owned(), index.spec.document().to_owned());
            found.indexes.push(IndexValidation { name, spec, keys: 0, errors: Vec::new() });
        }
        let mut after = None;
        loop {
            context.check()?;
            let groups = self.next_groups(collection.id, after.as_deref(), STEP_GROUPS)?;
            let Some(last) = groups.last() else { break };
            after = Some(last.clone());
            let view = self.with_writer(|writer, _| Ok(writer.executed()))?;
            for key in groups {
                let mut group = Group::read(&view, collection.id, key.clone())?;
                let mut rows = Vec::new();
                loop {
                    match group.next(&view, series, &Reading::default()) {
                        Ok(Some((_, document))) => rows.push(document),
                        Ok(None) => break,
                        Err(error) => {
                            found.invalid_documents += 1;
                            found.errors.push(error.to_string());
                        }
                    }
                }
                found.records += rows.len() as u64;
                let mut wanted: BTreeSet<(usize, bytes::Bytes)> = BTreeSet::new();
                for bytes in &rows {
                    let document = RawDocument::from_bytes(bytes)?;
                    let window = window_of_group(&key);
                    if !series.lies_in(window, series.time_of(document).unwrap_or(i64::MIN)) {
                        found.errors.push("a measurement lies in the window of another time".to_owned());
                    }
                    let indexes = collection.indexes.iter().filter(|index| index.ready);
                    for (place, index) in indexes.enumerate().filter(|one| !series.is_order(&one.1.spec)) {
                        let keys = group_keys(series, &index.spec, window, document)?;
                        wanted.extend(keys.entries.into_iter().map(|entry| (place, entry.key)));
                    }
                }
                let ready: Vec<_> = collection.indexes.iter().filter(|index| index.ready).collect();
                for (place, entry) in wanted {
                    found.indexes[place].keys += 1;
                    if view.get(&keyspace::index(ready[place].id, &entry, &key))?.is_none() {
                        let message =
                            format!("Index '{}' does not lead to a group that it should", found.indexes[place].name);
                        found.indexes[place].errors.push(message);
                    }
                }
            }
        }
        self.compare_totals(collection, &mut found)?;
        Ok(found)
    }

    fn compare_totals(&self, collection: &Arc<Collection>, found: &mut Validation) -> Result<()> {
        let view = self.with_writer(|writer, _| Ok(writer.executed()))?;
        let ready = collection.indexes.iter().filter(|index| index.ready);
        for (index, checked) in ready.zip(&mut found.indexes) {
            let prefix = keyspace::prefix(keyspace::INDEXES, index.id);
            let mut end = None;
            let (from, to) = keyspace::bounds(&prefix, &mut end);
            let mut entries = 0;
            for entry in view.range(from, to, Direction::Forward)? {
                entry?;
                entries += 1;
            }
            if entries < checked.keys {
                checked.errors.push(format!("it has {entries} entries where {} are needed", checked.keys));
            }
        }
        let count = self.totals(&view, collection.id)?.count;
        if (count as u64) < found.records {
            found.errors.push(format!("the collection counts {count} measurements and holds {}", found.records));
        }
        Ok(())
    }
}
