//! `createIndexes` and `dropIndexes`: indexes are maintained from the moment their build starts, and used once it is done.
//!
//! A build reads the collection on a snapshot and enters each document again under the writer lock, in bounded steps, so
//! writes go on. After a crash an unfinished build starts again.

use super::{Pace, STEP_BYTES, STEP_TIME, STEP_WRITES};
use crate::catalog::{Collection, Index, MAX_INDEXES};
use crate::context::Context;
use crate::database::{Engine, Inner, State, Written};
use crate::error::{Code, Error, Result};
use crate::index::{IndexSpec, Verdict};
use crate::keyspace;
use crate::namespace::Namespace;
use crate::statement::Statement;
use crate::storage::Direction;
use bson::{RawDocument, RawDocumentBuf, rawdoc};
use bytes::Bytes;
use std::ops::Bound;
use std::sync::Arc;
use std::time::Instant;

/// How many indexes there were and are.
#[derive(Clone, Copy, Default, Debug)]
pub struct CreateIndexesReply {
    /// Before, `_id`'s included.
    pub before: usize,
    /// After.
    pub after: usize,
    /// Whether the collection was created for them.
    pub created_collection: bool,
}

/// Which indexes to drop.
#[derive(Clone, Debug)]
pub enum DropIndexes {
    /// All but `_id`'s.
    All,
    /// Those of these names.
    Names(Vec<String>),
    /// The one with this key pattern.
    Pattern(RawDocumentBuf),
}

impl Engine {
    /// Creates indexes and waits until they can be used.
    ///
    /// # Errors
    /// What a specification refuses, a conflict with an existing index (85, 86), a duplicate key (11000) in the
    /// documents: then none of the new indexes stays.
    pub fn create_indexes(
        &self,
        context: &Context,
        namespace: &Namespace,
        specs: &[RawDocumentBuf],
    ) -> Result<Written<CreateIndexesReply>> {
        self.inner.create_indexes(context, namespace, specs)
    }

    /// Drops indexes. Gives how many there were, `_id`'s included.
    ///
    /// # Errors
    /// `IndexNotFound` (27), `InvalidOptions` (72) for the `_id` index, `NamespaceNotFound` (26).
    pub fn drop_indexes(
        &self,
        context: &Context,
        namespace: &Namespace,
        which: &DropIndexes,
    ) -> Result<Written<usize>> {
        self.inner.drop_indexes(context, namespace, which)
    }

    /// Replaces an index's specification by one with the same key (`collMod` with `index`).
    ///
    /// # Errors
    /// `IndexNotFound` (27), and what `change` and the new specification refuse.
    pub fn modify_index(
        &self,
        context: &Context,
        namespace: &Namespace,
        name: &str,
        change: impl Fn(&RawDocument) -> Result<RawDocumentBuf>,
    ) -> Result<Written<()>> {
        self.inner.write(context, |statement| {
            let collection = statement.catalog.require(namespace)?.clone();
            let number = collection.indexes.iter().position(|index| index.spec.name() == name);
            let number = number.ok_or_else(|| {
                Error::new(Code::INDEX_NOT_FOUND, format!("cannot find index {name} for ns {namespace}"))
            })?;
            let mut index = Index::clone(&collection.indexes[number]);
            let document = change(index.spec.document())?;
            index.spec = Arc::new(IndexSpec::parse(&document, collection.settings.collation.as_ref())?);
            if index.spec.hidden() != collection.indexes[number].spec.hidden() {
                self.inner.index_uses.forget(collection.id, Some(name));
            }
            let mut changed = Collection::clone(&collection);
            changed.indexes[number] = Arc::new(index);
            let detail = rawdoc! { "collMod": namespace.collection.as_str(), "index": document };
            statement.define(namespace, Some(collection.uuid), &detail)?;
            statement.put_collection(changed)
        })
    }
}

impl Inner {
    fn create_indexes(
        self: &Arc<Inner>,
        context: &Context,
        namespace: &Namespace,
        specs: &[RawDocumentBuf],
    ) -> Result<Written<CreateIndexesReply>> {
        let begun = self.write(context, |statement| {
            let begun = begin_builds(statement, namespace, specs)?;
            if begun.0.before != begun.0.after {
                self.refuse_in_transaction(context, namespace)?;
            }
            Ok(begun)
        })?;
        let (reply, collection_id, new) = begun.reply;
        if new.is_empty() {
            return Ok(Written { reply, ticket: begun.ticket });
        }
        let mut ticket = begun.ticket;
        if context.transaction().is_none() {
            let position = ticket.position();
            self.storage.ticket(position).wait()?;
            let built = context.block(|| self.build(context, namespace, collection_id, &new));
            ticket = match built {
                Ok(done) => done.ticket,
                Err(error) => {
                    self.remove_indexes(&Context::default(), namespace, &new)?.wait()?;
                    return Err(error.context("Index build failed"));
                }
            };
        }
        Ok(Written { reply, ticket })
    }

    /// Refuses a new index in a transaction on a collection that is older than the transaction.
    fn refuse_in_transaction(&self, context: &Context, namespace: &Namespace) -> Result<()> {
        if context.transaction().is_none() || self.state().catalog.get(namespace).is_none() {
            return Ok(());
        }
        let message =
            format!("Cannot create new indexes on existing collection {namespace} in a multi-document transaction.");
        Err(Error::new(Code::OPERATION_NOT_SUPPORTED_IN_TRANSACTION, message))
    }

    /// Enters all documents into new indexes, then marks the indexes ready.
    fn build(&self, context: &Context, namespace: &Namespace, collection_id: u32, new: &[u32]) -> Result<Written<()>> {
        let mut after: Option<Bytes> = None;
        let total = self.totals(&self.storage.snapshot(), collection_id)?.count.max(0) as u64;
        let mut done = 0;
        let mut pace = Pace::default();
        loop {
            context.check()?;
            context.monitor.set_progress(done, total.max(done));
            let keys = match self.state().catalog.by_id(collection_id).is_some_and(|c| c.settings.series.is_some()) {
                true => self.next_groups(collection_id, after.as_deref(), STEP_GROUPS)?,
                false => self.next_records(collection_id, after.as_deref())?,
            };
            let Some(last) = keys.last().cloned() else { break };
            let mut next = 0;
            while next < keys.len() {
                let step = self.write_step(&Context::default(), |statement| {
                    build_step(statement, namespace, collection_id, new, &keys[next..])
                })?;
                pace.step(&step.ticket)?;
                next += step.reply;
            }
            done += keys.len() as u64;
            after = Some(last);
        }
        self.write(&Context::default(), |statement| {
            let Some(collection) = statement.catalog.get(namespace).filter(|c| c.id == collection_id).cloned() else {
                return Err(Error::new(
                    Code::INDEX_BUILD_ABORTED,
                    "the collection was dropped while its index was built",
                ));
            };
            let mut changed = Collection::clone(&collection);
            for index in changed.indexes.iter_mut().filter(|index| new.contains(&index.id)) {
                *index = Arc::new(Index { ready: true, ..Index::clone(index) });
                let detail = rawdoc! {
                    "createIndexes": namespace.collection.as_str(), "index": index.spec.document().to_owned(),
                };
                statement.define(namespace, Some(collection.uuid), &detail)?;
            }
            statement.put_collection(changed)
        })
    }

    /// The storage keys' record parts of the next documents of a collection, on a fresh snapshot.
    fn next_records(&self, collection: u32, after: Option<&[u8]>) -> Result<Vec<Bytes>> {
        let snapshot = self.storage.snapshot();
        let prefix = keyspace::prefix(keyspace::RECORDS, collection);
        let from = keyspace::record(collection, after.unwrap_or_default());
        let end = keyspace::after_prefix(&prefix).expect("a collection's prefix does not end the key space");
        let from = if after.is_some() { Bound::Excluded(&from[..]) } else { Bound::Included(&from[..]) };
        let range = crate::storage::View::range(&snapshot, from, Bound::Excluded(&end), Direction::Forward)?;
        let record = |entry: Result<(Bytes, Bytes)>| entry.map(|(key, _)| key.slice(keyspace::RECORD_PREFIX_BYTES..));
        range.take(STEP_WRITES).map(record).collect()
    }

    fn drop_indexes(
        self: &Arc<Inner>,
        context: &Context,
        namespace: &Namespace,
        which: &DropIndexes,
    ) -> Result<Written<usize>> {
        let reading = self.reading(context)?;
        let collection = reading
            .catalog
            .get(namespace)
            .ok_or_else(|| Error::new(Code::NAMESPACE_NOT_FOUND, format!("ns not found {namespace}")))?;
        let ids = match which {
            DropIndexes::All => collection.indexes.iter().map(|index| index.id).collect(),
            DropIndexes::Names(names) => {
                names.iter().map(|name| named(collection, name)).collect::<Result<Vec<_>>>()?
            }
            DropIndexes::Pattern(pattern) => {
                if **pattern == *rawdoc! { "_id": 1 } {
                    return Err(keeps_id_index(collection));
                }
                let found: Vec<&Arc<Index>> =
                    collection.indexes.iter().filter(|index| same_pattern(index.spec.pattern(), pattern)).collect();
                match &found[..] {
                    [index] => vec![index.id],
                    [] => {
                        let pattern = crate::document::text(pattern);
                        return Err(Error::new(Code::INDEX_NOT_FOUND, format!("can't find index with key: {pattern}")));
                    }
                    _ => {
                        return Err(Error::new(
                            Code::AMBIGUOUS_INDEX_KEY_PATTERN,
                            format!(
                                "{} indexes found for key: {}, identify by name instead.",
                                found.len(),
                                crate::document::text(pattern)
                            ),
                        ));
                    }
                }
            }
        };
        let before = collection.indexes.len() + collection.implicit_indexes();
        let removed = self.remove_indexes(context, namespace, &ids)?;
        Ok(Written { reply: before, ticket: removed.ticket })
    }

    fn remove_indexes(&self, context: &Context, namespace: &Namespace, ids: &[u32]) -> Result<Written<()>> {
        let removed = self.write(context, |statement| {
            let Some(collection) = statement.catalog.get(namespace).cloned() else { return Ok(()) };
            let mut changed = Collection::clone(&collection);
            changed.indexes.retain(|index| !ids.contains(&index.id));
            for index in collection.indexes.iter().filter(|index| ids.contains(&index.id)) {
                let detail = rawdoc! {
                    "dropIndexes": namespace.collection.as_str(), "index": index.spec.document().to_owned(),
                };
                statement.define(namespace, Some(collection.uuid), &detail)?;
                self.index_uses.forget(collection.id, Some(index.spec.name()));
            }
            statement.put_collection(changed)
        })?;
        for id in ids {
            self.delete_prefix(&keyspace::prefix(keyspace::INDEXES, *id))?;
        }
        Ok(removed)
    }

    /// Builds indexes of a collection again that a crash left unfinished; drops those that can't be built.
    pub(crate) fn resume_build(self: &Arc<Inner>, unfinished: &Unfinished) -> Result<()> {
        let Unfinished { namespace, collection, indexes } = unfinished;
        tracing::info!(%namespace, count = indexes.len(), "building indexes again that a stop left unfinished");
        if let Err(error) = self.build(&Context::default(), namespace, *collection, indexes) {
            tracing::warn!(%namespace, %error, "an index can't be built and is dropped");
            self.remove_indexes(&Context::default(), namespace, indexes)?.wait()?;
        }
        Ok(())
    }
}

/// The indexes of a collection whose build has not come to its end.
pub(crate) struct Unfinished {
    namespace: Namespace,
    collection: u32,
    indexes: Vec<u32>,
}

impl Unfinished {
    /// Those of a state.
    pub(crate) fn of(state: &State) -> Vec<Unfinished> {
        let of_collection = |collection: &Arc<Collection>| {
            let unfinished = collection.indexes.iter().filter(|index| !index.ready);
            let indexes: Vec<u32> = unfinished.map(|index| index.id).collect();
            let namespace = collection.namespace.clone();
            (!indexes.is_empty()).then_some(Unfinished { namespace, collection: collection.id, indexes })
        };
        state.catalog.all().filter_map(of_collection).collect()
    }
}

/// The groups of a time series that one step enters into new indexes.
const STEP_GROUPS: usize = 64;

type Begun = (CreateIndexesReply, u32, Vec<u32>);

/// Enters new indexes into the catalogue; they are maintained from here on. On an empty collection they are ready.
fn begin_builds(statement: &mut Statement<'_>, namespace: &Namespace, specs: &[RawDocumentBuf]) -> Result<Begun> {
    let created_collection = statement.catalog.get(namespace).is_none();
    let collection = statement.collection_or_create(namespace)?;
    let default = collection.settings.collation.as_ref();
    let implicit = collection.implicit_indexes();
    let before = collection.indexes.len() + implicit;
    let mut changed = Collection::clone(&collection);
    let mut new = Vec::new();
    let mut empty = true;
    for kind in [keyspace::RECORDS, keyspace::BUCKETS] {
        let prefix = keyspace::prefix(kind, collection.id);
        let mut end = None;
        let (from, to) = keyspace::bounds(&prefix, &mut end);
        empty &= statement.view().range(from, to, Direction::Forward)?.next().is_none();
    }
    let id_spec = IndexSpec::id(default);
    for document in specs {
        if let Some(series) = &collection.settings.series {
            crate::series::check_index(series, document)?;
        }
        let spec = IndexSpec::parse(document, default)?;
        if spec.is_id() {
            id_spec.judge(&spec)?;
            continue;
        }
        let mut known = false;
        for index in &changed.indexes {
            known |= matches!(index.spec.judge(&spec)?, Verdict::Same);
        }
        if known {
            continue;
        }
        if changed.indexes.len() + implicit >= MAX_INDEXES {
            return Err(Error::new(
                Code::CANNOT_CREATE_INDEX,
                format!(
                    "add index fails, too many indexes for {namespace} key:{}: at most {MAX_INDEXES}; drop some",
                    crate::document::text(spec.pattern())
                ),
            ));
        }
        let id = statement.new_id();
        let empty = empty || collection.settings.series.as_ref().is_some_and(|series| series.is_order(&spec));
        if empty {
            let detail =
                rawdoc! { "createIndexes": namespace.collection.as_str(), "index": spec.document().to_owned() };
            statement.define(namespace, Some(collection.uuid), &detail)?;
        } else {
            new.push(id);
        }
        changed.indexes.push(Arc::new(Index { id, spec: Arc::new(spec), ready: empty, multikey: Vec::new() }));
    }
    let after = changed.indexes.len() + implicit;
    if after != before {
        statement.put_collection(changed)?;
    }
    Ok((CreateIndexesReply { before, after, created_collection }, collection.id, new))
}

/// Enters documents into new indexes; gives how many it looked at.
fn build_step(
    statement: &mut Statement<'_>,
    namespace: &Namespace,
    collection_id: u32,
    new: &[u32],
    keys: &[Bytes],
) -> Result<usize> {
    let Some(collection) = statement.catalog.get(namespace).filter(|c| c.id == collection_id).cloned() else {
        return Err(Error::new(Code::INDEX_BUILD_ABORTED, "the collection was dropped while its index was built"));
    };
    let mut seen = 0;
    let began = Instant::now();
    for key in keys {
        if statement.size_bytes() >= STEP_BYTES || (seen > 0 && began.elapsed() >= STEP_TIME) {
            break;
        }
        seen += 1;
        if let Some(series) = &collection.settings.series {
            statement.enter_group(&collection, series, new, key)?;
        } else if let Some(bytes) = statement.read(&collection, key)? {
            statement.enter_into_indexes(&collection, new, key, RawDocument::from_bytes(&bytes)?)?;
        }
    }
    Ok(seen)
}

/// The refusal to drop what finds documents by `_id`.
fn keeps_id_index(collection: &Collection) -> Error {
    match collection.settings.clustered {
        true => Error::location(5_979_800, "cannot drop the clusteredIndex; drop the collection instead"),
        false => Error::new(Code::INVALID_OPTIONS, "cannot drop _id index"),
    }
}

fn named(collection: &Collection, name: &str) -> Result<u32> {
    if name == crate::index::ID_INDEX_NAME {
        return Err(keeps_id_index(collection));
    }
    let found = collection.index(name).map(|index| index.id);
    found.ok_or_else(|| Error::new(Code::INDEX_NOT_FOUND, format!("index not found with name [{name}]")))
}

fn same_pattern(a: &RawDocument, b: &RawDocument) -> bool {
    matches!(crate::document::compare_documents(a, b, None), Ok(std::cmp::Ordering::Equal))
}
