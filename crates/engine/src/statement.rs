//! A statement's writes: documents with their index entries, events and hook effects, in a layer that is kept or dropped.
//!
//! ```text
//!   storage writer (latest)        transaction: snapshot + its own writes      latest, to see conflicts
//!            └───── base ──────────────────┴── base ───────────────────────────────┘
//!                     │
//!                 Statement (layer)      insert / update / delete one document at a time
//!                     │   └─ child statement: one document of a batch, or the effects of a hook
//!                  Outcome               what to commit, or to add to the transaction
//! ```
//!
//! A statement never flushes and never waits. Where another transaction has an intent on what it wants to write, it stops with
//! [`BLOCKED`] (outside a transaction; the caller waits and runs it again) or `WriteConflict` (inside one).

mod read;
mod scope;

use crate::catalog::{Catalog, Collection, Index};
use crate::database::Inner;
use crate::document::{MAX_DOCUMENT_BYTES, get};
use crate::duplicate::{duplicate_id, duplicate_key};
use crate::error::{Code, Error, Result};
use crate::event::{DocumentEvent, EventKind, Note};
use crate::hook::{DocumentWrite, MAX_HOOK_DEPTH, MAX_HOOK_WRITES};
use crate::index::Keys;
use crate::keyspace;
use crate::namespace::Namespace;
use crate::storage::{Direction, Layer, View, Writes};
use bson::{RawBsonRef, RawDocument, RawDocumentBuf, rawdoc};
use bytes::Bytes;
use read::LastRead;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The code of an internal stop: another transaction has an intent; wait for it to end and run the statement again.
pub(crate) const BLOCKED: Code = Code(-1);

/// How a collection's count and size change.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Delta {
    pub(crate) count: i64,
    pub(crate) size_bytes: i64,
    /// Of a time series: the packed buckets.
    pub(crate) buckets: i64,
    /// The largest document that was written.
    pub(crate) largest_bytes: i64,
}

impl Delta {
    /// Takes a later change in.
    pub(crate) fn add(&mut self, later: Delta) {
        self.count += later.count;
        self.size_bytes += later.size_bytes;
        self.buckets += later.buckets;
        self.largest_bytes = self.largest_bytes.max(later.largest_bytes);
    }
}

/// What a statement wants committed.
#[derive(Default)]
pub(crate) struct Outcome {
    pub(crate) writes: Writes,
    pub(crate) note: Note,
    pub(crate) deltas: BTreeMap<u32, Delta>,
    pub(crate) catalog: Option<Arc<Catalog>>,
    pub(crate) hook_writes: usize,
}

/// A statement being executed under the writer lock.
pub(crate) struct Statement<'a> {
    pub(crate) engine: &'a Inner,
    layer: Layer<'a>,
    /// Inside a transaction: what others have done meanwhile.
    latest: Option<Latest<'a>>,
    /// The transaction that the statement belongs to.
    owner: Option<u64>,
    pub(crate) catalog: Arc<Catalog>,
    catalog_changed: bool,
    note: Note,
    deltas: BTreeMap<u32, Delta>,
    /// What the statements around this one have counted.
    outer: BTreeMap<u32, Delta>,
    depth: usize,
    hook_writes: usize,
    now_ms: i64,
    /// `bypassDocumentValidation`.
    pub(crate) bypass_validation: bool,
    /// What the same commit has written before this statement.
    earlier: Vec<&'a Writes>,
    /// The document that a hook has read last: what it reads it often writes.
    last_read: RefCell<Option<LastRead>>,
}

/// What a transaction's statement compares to see conflicts.
#[derive(Clone, Copy)]
pub(crate) struct Latest<'a> {
    /// Everything executed so far, whoever did it.
    pub(crate) view: &'a dyn View,
    /// What the transaction reads, without its own writes.
    pub(crate) snapshot: &'a dyn View,
}

/// Which event an update is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum UpdateKind {
    Update,
    Replace,
}

impl<'a> Statement<'a> {
    /// A statement over everything executed so far.
    pub(crate) fn new(engine: &'a Inner, base: &'a dyn View, catalog: Arc<Catalog>, now_ms: i64) -> Statement<'a> {
        Statement {
            engine,
            layer: Layer::new(base),
            latest: None,
            owner: None,
            catalog,
            catalog_changed: false,
            note: Note::default(),
            deltas: BTreeMap::new(),
            outer: BTreeMap::new(),
            depth: 0,
            hook_writes: 0,
            now_ms,
            bypass_validation: false,
            earlier: Vec::new(),
            last_read: RefCell::default(),
        }
    }

    /// A statement of a transaction: over its snapshot and `writes`, with `latest` to see conflicts.
    pub(crate) fn in_transaction(mut self, owner: u64, latest: Latest<'a>, writes: &'a Writes) -> Statement<'a> {
        self.earlier.push(writes);
        self.owner = Some(owner);
        self.latest = Some(latest);
        self
    }

    /// A transaction's commit: over everything executed so far, owning the transaction's intents; hooks run.
    pub(crate) fn at_commit(mut self, owner: u64, writes: &'a Writes) -> Statement<'a> {
        self.earlier.push(writes);
        self.owner = Some(owner);
        self
    }

    /// Whether the same commit has written a key before.
    fn wrote_before(&self, key: &[u8]) -> bool {
        self.layer.writes().get(key).is_some() || self.earlier.iter().any(|writes| writes.get(key).is_some())
    }

    /// Everything executed so far.
    fn newest(&self) -> &dyn View {
        self.latest.map_or(&self.layer, |latest| latest.view)
    }

    /// A statement on top of this one, for what must be dropped as a whole when it fails.
    pub(crate) fn child(&self) -> Statement<'_> {
        let mut outer = self.outer.clone();
        for (collection, delta) in &self.deltas {
            outer.entry(*collection).or_default().add(*delta);
        }
        Statement {
            engine: self.engine,
            layer: Layer::new(&self.layer),
            latest: self.latest,
            owner: self.owner,
            catalog: self.catalog.clone(),
            catalog_changed: false,
            note: Note::default(),
            deltas: BTreeMap::new(),
            outer,
            depth: self.depth,
            hook_writes: self.hook_writes,
            now_ms: self.now_ms,
            bypass_validation: self.bypass_validation,
            earlier: self.earlier.iter().copied().chain([self.layer.writes()]).collect(),
            last_read: RefCell::default(),
        }
    }

    /// What it wants committed.
    pub(crate) fn finish(self) -> Outcome {
        Outcome {
            writes: self.layer.into_writes(),
            note: self.note,
            deltas: self.deltas,
            catalog: self.catalog_changed.then_some(self.catalog),
            hook_writes: self.hook_writes,
        }
    }

    /// Takes over what a child did.
    pub(crate) fn adopt(&mut self, outcome: Outcome) {
        self.forget_read();
        self.layer.writes_mut().absorb(outcome.writes);
        self.note.absorb(outcome.note);
        for (collection, delta) in outcome.deltas {
            self.add_delta(collection, delta);
        }
        if let Some(catalog) = outcome.catalog {
            self.catalog = catalog;
            self.catalog_changed = true;
        }
        self.hook_writes = outcome.hook_writes;
    }

    /// Runs `body` on a child; what it did is kept only if it succeeds.
    pub(crate) fn atomically<T>(&mut self, body: impl FnOnce(&mut Statement<'_>) -> Result<T>) -> Result<T> {
        let mut child = self.child();
        let result = body(&mut child)?;
        let outcome = child.finish();
        self.adopt(outcome);
        Ok(result)
    }

    /// What the statement sees: its own writes over its base.
    pub(crate) fn view(&self) -> &dyn View {
        &self.layer
    }

    /// How many bytes it wants to write so far.
    pub(crate) fn size_bytes(&self) -> usize {
        self.layer.writes().size_bytes() + self.note.size_bytes()
    }

    /// Sets a key that is no document's.
    pub(crate) fn put(&mut self, key: Bytes, value: Bytes) {
        self.layer.put(key, value);
    }

    /// Deletes a key that is no document's.
    pub(crate) fn remove(&mut self, key: Bytes) {
        self.layer.delete(key);
    }

    /// Notes an event of a collection or a database.
    pub(crate) fn define(&mut self, namespace: &Namespace, uuid: Option<[u8; 16]>, detail: &RawDocument) -> Result<()> {
        self.note.definition(namespace, uuid, detail)
    }

    /// Changes the catalogue.
    pub(crate) fn change_catalog(&mut self, change: impl FnOnce(&mut Catalog)) {
        change(Arc::make_mut(&mut self.catalog));
        self.catalog_changed = true;
    }

    /// Stores a collection's entry, new or changed.
    pub(crate) fn put_collection(&mut self, collection: Collection) -> Result<()> {
        self.layer.put(collection.entry_key(), collection.to_entry()?);
        self.change_catalog(|catalog| catalog.put(collection));
        Ok(())
    }

    /// The collection to write to, created if it isn't there.
    ///
    /// # Errors
    /// `CommandNotSupportedOnView` (166) for a view.
    pub(crate) fn collection_or_create(&mut self, namespace: &Namespace) -> Result<Arc<Collection>> {
        if self.catalog.get(namespace).is_none() {
            self.create_collection(namespace, RawDocumentBuf::new())?;
        }
        let collection = self.catalog.require(namespace)?.clone();
        refuse_view(&collection)?;
        Ok(collection)
    }

    /// Creates a collection.
    ///
    /// # Errors
    /// What its options refuse.
    pub(crate) fn create_collection(&mut self, namespace: &Namespace, options: RawDocumentBuf) -> Result<()> {
        let id = self.new_id();
        let mut collection = Collection::new(id, namespace.clone(), self.engine.new_uuid(), options)?;
        if let Some(series) = collection.settings.series.clone().filter(|series| series.meta_field.is_some()) {
            let spec = Arc::new(crate::index::IndexSpec::parse(&series.order_spec(), None)?);
            let index = Index { id: self.new_id(), spec, ready: true, multikey: Vec::new() };
            collection.indexes.push(Arc::new(index));
        }
        let mut detail = rawdoc! { "create": namespace.collection.as_str() };
        for option in collection.options.iter() {
            let (name, value) = option?;
            detail.append(name, value);
        }
        self.define(namespace, Some(collection.uuid), &detail)?;
        self.put_collection(collection)
    }

    /// A number for a collection or an index that was never used before.
    pub(crate) fn new_id(&mut self) -> u32 {
        let id = self.engine.counters.next_id(self.newest());
        let next = rawdoc! { "next": i64::from(id) + 1 };
        self.layer.put(keyspace::key(keyspace::SETTINGS, 0, b"ids"), next.into_bytes());
        id
    }

    pub(crate) fn add_delta(&mut self, collection: u32, delta: Delta) {
        self.deltas.entry(collection).or_default().add(delta);
    }

    /// Inserts a document that was validated and has its `_id`.
    ///
    /// # Errors
    /// A duplicate key, a validator's or hook's refusal, `BSONObjectTooLarge`.
    pub(crate) fn insert(&mut self, collection: &Arc<Collection>, document: RawDocumentBuf) -> Result<()> {
        if self.latest.is_some() && collection.settings.series.is_some() {
            return Err(crate::series::in_transaction(collection));
        }
        if self.latest.is_some() && collection.settings.capped.is_some() {
            let namespace = &collection.namespace;
            return Err(Error::new(
                Code::OPERATION_NOT_SUPPORTED_IN_TRANSACTION,
                format!(
                    "Collection '{namespace}' is a capped collection. Writes in transactions are not allowed on capped collections."
                ),
            ));
        }
        let seconds = u32::try_from((self.engine.options.clock)() / 1000).unwrap_or(u32::MAX);
        let now = bson::Timestamp { time: seconds, increment: 1 };
        let document = crate::document::validate::with_timestamps(document, now)?;
        let document = self.run_hooks(&collection.namespace, None, Some(document))?.expect("an insert has an after");
        self.insert_raw(collection, &document)
    }

    fn insert_raw(&mut self, collection: &Arc<Collection>, document: &RawDocument) -> Result<()> {
        check_size(document)?;
        self.forget_read();
        if let Some(series) = &collection.settings.series {
            return self.insert_measurement(collection, series, document);
        }
        self.check_validator(collection, None, document)?;
        let id = id_of(document)?;
        let encoded_id = self.encode_id(collection, id)?;
        let record_key = if collection.settings.clustered {
            check_clustered_key(id)?;
            encoded_id.clone()
        } else {
            Bytes::copy_from_slice(&self.engine.counters.next_record(collection.id, self.newest())?.to_be_bytes())
        };
        let id_key = keyspace::id(collection.id, &encoded_id);
        let storage_key = keyspace::record(collection.id, &record_key);
        let unique_key = if collection.settings.clustered { storage_key.clone() } else { id_key.clone() };
        self.claim(&unique_key)?;
        if self.layer.get(&unique_key)?.is_some() {
            return Err(duplicate_id(collection, id));
        }
        // Whoever had it in the snapshot is gone by the transaction's own hand.
        if let Some(latest) = self.latest
            && latest.view.get(&unique_key)? != latest.snapshot.get(&unique_key)?
        {
            return Err(write_conflict());
        }
        self.layer.put(storage_key.clone(), Bytes::copy_from_slice(document.as_bytes()));
        if !collection.settings.clustered {
            self.layer.put(id_key, record_key.clone());
        }
        self.change_indexes(collection, &record_key, None, Some(document))?;
        let size_bytes = document.as_bytes().len() as i64;
        self.add_delta(collection.id, Delta { count: 1, size_bytes, largest_bytes: size_bytes, ..Delta::default() });
        self.note.document(DocumentEvent {
            kind: EventKind::Insert,
            namespace: &collection.namespace,
            uuid: collection.uuid,
            storage_key: &storage_key,
            id,
            description: None,
            before: None,
            superseded: None,
        })?;
        self.bound_capped(collection)
    }

    /// Replaces the document under a record key by another with the same `_id`.
    ///
    /// # Errors
    /// As [`Statement::insert`], and `WriteConflict` inside a transaction.
    pub(crate) fn update(
        &mut self,
        collection: &Arc<Collection>,
        record_key: &[u8],
        before: &RawDocument,
        after: RawDocumentBuf,
        kind: UpdateKind,
    ) -> Result<RawDocumentBuf> {
        let storage_key = keyspace::record(collection.id, record_key);
        self.claim_document(&storage_key)?;
        let after = self.run_hooks(&collection.namespace, Some(before), Some(after))?.expect("an update has an after");
        self.update_raw(collection, record_key, before, &after, kind)?;
        Ok(after)
    }

    fn update_raw(
        &mut self,
        collection: &Arc<Collection>,
        record_key: &[u8],
        before: &RawDocument,
        after: &RawDocument,
        kind: UpdateKind,
    ) -> Result<()> {
        check_size(after)?;
        self.forget_read();
        self.check_validator(collection, Some(before), after)?;
        let storage_key = keyspace::record(collection.id, record_key);
        let superseded = self.wrote_before(&storage_key).then_some(before);
        self.layer.put(storage_key.clone(), Bytes::copy_from_slice(after.as_bytes()));
        self.change_indexes(collection, record_key, Some(before), Some(after))?;
        let (before_size, after_size) = (before.as_bytes().len() as i64, after.as_bytes().len() as i64);
        self.add_delta(
            collection.id,
            Delta { size_bytes: after_size - before_size, largest_bytes: after_size, ..Delta::default() },
        );
        let description = match kind {
            UpdateKind::Update => Some(crate::update::describe(before, after)?.to_document(true)?),
            UpdateKind::Replace => None,
        };
        self.note.document(DocumentEvent {
            kind: if kind == UpdateKind::Update { EventKind::Update } else { EventKind::Replace },
            namespace: &collection.namespace,
            uuid: collection.uuid,
            storage_key: &storage_key,
            id: id_of(after)?,
            description: description.as_deref(),
            before: collection.settings.pre_images.then_some(before),
            superseded,
        })
    }

    /// Deletes the document under a record key.
    ///
    /// # Errors
    /// A hook's refusal; `WriteConflict` inside a transaction.
    pub(crate) fn delete(
        &mut self,
        collection: &Arc<Collection>,
        record_key: &[u8],
        before: &RawDocument,
    ) -> Result<()> {
        self.claim_document(&keyspace::record(collection.id, record_key))?;
        self.run_hooks(&collection.namespace, Some(before), None)?;
        self.delete_raw(collection, record_key, before)
    }

    fn delete_raw(&mut self, collection: &Arc<Collection>, record_key: &[u8], before: &RawDocument) -> Result<()> {
        self.forget_read();
        let storage_key = keyspace::record(collection.id, record_key);
        let id = id_of(before)?;
        let superseded = self.wrote_before(&storage_key).then_some(before);
        self.layer.delete(storage_key.clone());
        if !collection.settings.clustered {
            let encoded_id = self.encode_id(collection, id)?;
            self.layer.delete(keyspace::id(collection.id, &encoded_id));
        }
        self.change_indexes(collection, record_key, Some(before), None)?;
        self.add_delta(
            collection.id,
            Delta { count: -1, size_bytes: -(before.as_bytes().len() as i64), ..Delta::default() },
        );
        self.note.document(DocumentEvent {
            kind: EventKind::Delete,
            namespace: &collection.namespace,
            uuid: collection.uuid,
            storage_key: &storage_key,
            id,
            description: None,
            before: collection.settings.pre_images.then_some(before),
            superseded,
        })
    }

    /// Brings all indexes from one document to another.
    fn change_indexes(
        &mut self,
        collection: &Arc<Collection>,
        record_key: &[u8],
        before: Option<&RawDocument>,
        after: Option<&RawDocument>,
    ) -> Result<()> {
        for (number, index) in collection.indexes.iter().enumerate() {
            let old = before.map(|document| index.spec.keys(document)).transpose()?.unwrap_or_default();
            let new = after.map(|document| index.spec.keys(document)).transpose()?.unwrap_or_default();
            self.note_multikey(collection, number, &new)?;
            for entry in &old.entries {
                if !new.entries.iter().any(|other| other.key == entry.key) {
                    self.layer.delete(keyspace::index(index.id, &entry.key, record_key));
                }
            }
            for entry in &new.entries {
                if old.entries.contains(entry) {
                    continue;
                }
                if index.spec.refuses_duplicates() && !old.entries.iter().any(|other| other.key == entry.key) {
                    self.check_unique(collection, index, &entry.key, record_key, after)?;
                }
                self.layer.put(keyspace::index(index.id, &entry.key, record_key), entry.bits.clone());
            }
        }
        Ok(())
    }

    /// Enters a document that is already stored into indexes that are being built.
    pub(crate) fn enter_into_indexes(
        &mut self,
        collection: &Arc<Collection>,
        indexes: &[u32],
        record_key: &[u8],
        document: &RawDocument,
    ) -> Result<()> {
        for (number, index) in collection.indexes.iter().enumerate().filter(|entry| indexes.contains(&entry.1.id)) {
            let keys = index.spec.keys(document)?;
            self.note_multikey(collection, number, &keys)?;
            for entry in &keys.entries {
                if index.spec.unique() {
                    self.check_unique(collection, index, &entry.key, record_key, Some(document))?;
                }
                self.layer.put(keyspace::index(index.id, &entry.key, record_key), entry.bits.clone());
            }
        }
        Ok(())
    }

    /// Refuses an index key that another document has.
    fn check_unique(
        &mut self,
        collection: &Collection,
        index: &Index,
        encoded: &[u8],
        record_key: &[u8],
        document: Option<&RawDocument>,
    ) -> Result<()> {
        let prefix = keyspace::key(keyspace::INDEXES, index.id, encoded);
        self.claim(&prefix)?;
        if other_holder(&self.layer, &prefix, record_key)?.is_some() {
            return Err(duplicate_key(collection, index, document));
        }
        if let Some(latest) = self.latest
            && other_holder(latest.view, &prefix, record_key)? != other_holder(latest.snapshot, &prefix, record_key)?
        {
            return Err(write_conflict());
        }
        Ok(())
    }

    /// Remembers that an index has seen arrays, the first time it does.
    pub(crate) fn note_multikey(&mut self, collection: &Arc<Collection>, number: usize, keys: &Keys) -> Result<()> {
        let current = self.catalog.get(&collection.namespace).unwrap_or(collection).clone();
        let Some(index) = current.indexes.get(number) else { return Ok(()) };
        let known = |field: usize| index.multikey.get(field).copied().unwrap_or(0);
        if keys.multikey.iter().enumerate().all(|(field, parts)| parts & !known(field) == 0) {
            return Ok(());
        }
        let mut changed = Collection::clone(&current);
        let mut index = Index::clone(index);
        index.multikey.resize(index.multikey.len().max(keys.multikey.len()), 0);
        for (parts, more) in index.multikey.iter_mut().zip(&keys.multikey) {
            *parts |= more;
        }
        changed.indexes[number] = Arc::new(index);
        self.put_collection(changed)
    }

    fn check_validator(
        &self,
        collection: &Collection,
        before: Option<&RawDocument>,
        after: &RawDocument,
    ) -> Result<()> {
        let Some(validator) = &collection.settings.validator else { return Ok(()) };
        if self.bypass_validation {
            return Ok(());
        }
        let environment = self.engine.environment();
        if validator.filter.matches(after, &environment)? {
            return Ok(());
        }
        if let (true, Some(before)) = (validator.moderate, before)
            && !validator.filter.matches(before, &environment)?
        {
            return Ok(());
        }
        if validator.warn {
            tracing::warn!(namespace = %collection.namespace, "a document fails validation; validationAction is warn");
            return Ok(());
        }
        let id: bson::RawBson = id_of(after)?.into();
        let info =
            rawdoc! { "failingDocumentId": id, "details": validator.filter.explain_failure(after, &environment)? };
        Err(Error::new(Code::DOCUMENT_VALIDATION_FAILURE, "Document failed validation").with_info(info))
    }

    /// Deletes the oldest documents of a capped collection until it is within its bounds.
    fn bound_capped(&mut self, collection: &Arc<Collection>) -> Result<()> {
        let Some(capped) = collection.settings.capped else { return Ok(()) };
        loop {
            let mut totals = self.engine.totals(self.newest(), collection.id)?;
            for deltas in [&self.outer, &self.deltas] {
                let delta = deltas.get(&collection.id).copied().unwrap_or_default();
                totals.count += delta.count;
                totals.size_bytes += delta.size_bytes;
            }
            let fits =
                totals.size_bytes as u64 <= capped.size_bytes && (capped.max == 0 || totals.count as u64 <= capped.max);
            if fits || totals.count <= 1 {
                return Ok(());
            }
            let prefix = keyspace::prefix(keyspace::RECORDS, collection.id);
            let mut end = None;
            let (from, to) = keyspace::bounds(&prefix, &mut end);
            let oldest = self.layer.range(from, to, Direction::Forward)?.next().transpose()?;
            let Some((storage_key, document)) = oldest else { return Ok(()) };
            let record_key = storage_key.slice(keyspace::RECORD_PREFIX_BYTES..);
            self.claim_document(&storage_key)?;
            self.delete_raw(collection, &record_key, RawDocument::from_bytes(&document)?)?;
        }
    }

    /// Takes an intent on a key that must stay as it is seen, or stops.
    fn claim(&mut self, key: &Bytes) -> Result<()> {
        self.engine.intents.claim(key, self.owner)
    }

    /// Takes an intent on a document and makes sure that nobody changed it since the transaction's snapshot.
    fn claim_document(&mut self, storage_key: &Bytes) -> Result<()> {
        self.claim(storage_key)?;
        let Some(latest) = self.latest else { return Ok(()) };
        if latest.view.get(storage_key)? == latest.snapshot.get(storage_key)? { Ok(()) } else { Err(write_conflict()) }
    }

    /// Runs the hooks for a write, unless it belongs to a transaction: then they run at its commit.
    pub(crate) fn run_hooks(
        &mut self,
        namespace: &Namespace,
        before: Option<&RawDocument>,
        mut after: Option<RawDocumentBuf>,
    ) -> Result<Option<RawDocumentBuf>> {
        if self.latest.is_some() {
            return Ok(after);
        }
        if self.depth == 0 {
            self.hook_writes = 0;
        }
        let engine = self.engine;
        for hook in engine.hooks.load().iter().filter(|hook| hook.watches(namespace)) {
            if self.depth >= MAX_HOOK_DEPTH {
                return Err(Error::new(
                    Code::ILLEGAL_OPERATION,
                    format!("write hooks are nested more than {MAX_HOOK_DEPTH} levels deep at {namespace}"),
                ));
            }
            let write = DocumentWrite { namespace, before, after: after.as_deref(), by_hook: self.depth > 0 };
            self.depth += 1;
            let replaced = hook.before_write(write, self);
            self.depth -= 1;
            if let (Some(document), true) = (replaced?, after.is_some()) {
                after = Some(document);
            }
        }
        Ok(after)
    }

    /// At a transaction's commit: runs the hooks for what it changed, on the latest state.
    pub(crate) fn run_commit_hooks(&mut self, changes: &[CommittedWrite]) -> Result<()> {
        for change in changes {
            let before = change.before.as_deref().map(RawDocument::from_bytes).transpose()?;
            let after = change.after.as_deref().map(RawDocument::from_bytes).transpose()?;
            let replaced = self.run_hooks(&change.collection.namespace, before, after.map(RawDocument::to_owned))?;
            if let (Some(replaced), Some(after)) = (replaced, after)
                && replaced.as_bytes() != after.as_bytes()
            {
                // The effects of this or another write may have changed or deleted it meanwhile.
                let Some(current) = self.read(&change.collection, &change.record_key)? else { continue };
                let current = RawDocument::from_bytes(&current)?;
                if current.as_bytes() != replaced.as_bytes() {
                    self.update_raw(&change.collection, &change.record_key, current, &replaced, UpdateKind::Update)?;
                }
            }
        }
        Ok(())
    }

    fn count_hook_write(&mut self) -> Result<()> {
        self.hook_writes += 1;
        if self.hook_writes > MAX_HOOK_WRITES {
            return Err(Error::new(
                Code::ILLEGAL_OPERATION,
                format!("the write hooks of one statement may add at most {MAX_HOOK_WRITES} document writes"),
            ));
        }
        Ok(())
    }
}

/// A document that a transaction changed.
pub(crate) struct CommittedWrite {
    pub(crate) collection: Arc<Collection>,
    pub(crate) record_key: Bytes,
    pub(crate) before: Option<Bytes>,
    pub(crate) after: Option<Bytes>,
}

/// The `_id` of a stored document.
pub(crate) fn id_of(document: &RawDocument) -> Result<RawBsonRef<'_>> {
    get(document, "_id")?.ok_or_else(|| Error::internal("a stored document has no _id"))
}

/// The most bytes of a clustered collection's key: <https://www.mongodb.com/docs/manual/core/clustered-collections/>, "Set a
/// Clustered Index Key".
const MAX_CLUSTERED_KEY_BYTES: usize = 8 * 1024 * 1024;

/// Refuses an `_id` that is too large to be a clustered collection's key.
fn check_clustered_key(id: RawBsonRef<'_>) -> Result<()> {
    // A type and an end around a string; a type, a length, a subtype and an end around bytes.
    let bytes = match id {
        RawBsonRef::String(text) => text.len() + 2,
        RawBsonRef::Binary(binary) => binary.bytes.len() + 7,
        RawBsonRef::Document(document) => document.as_bytes().len(),
        _ => return Ok(()),
    };
    if bytes <= MAX_CLUSTERED_KEY_BYTES {
        return Ok(());
    }
    Err(Error::location(
        5_894_900,
        format!("the _id of a clustered collection's document may take {MAX_CLUSTERED_KEY_BYTES} bytes, not {bytes}"),
    ))
}

pub(crate) fn check_size(document: &RawDocument) -> Result<()> {
    let size = document.as_bytes().len();
    if size > MAX_DOCUMENT_BYTES {
        return Err(Error::new(
            Code::BSON_OBJECT_TOO_LARGE,
            format!(
                "BSONObj size: {size} (0x{size:X}) is invalid. Size must be between 0 and {MAX_DOCUMENT_BYTES}(16MB)"
            ),
        ));
    }
    Ok(())
}

/// Refuses to write to a view.
pub(crate) fn refuse_view(collection: &Collection) -> Result<()> {
    if collection.is_view() {
        return Err(Error::new(
            Code::COMMAND_NOT_SUPPORTED_ON_VIEW,
            format!("Namespace {} is a view, not a collection", collection.namespace),
        ));
    }
    Ok(())
}

/// The entry under a unique key that belongs to another document.
fn other_holder(view: &dyn View, prefix: &[u8], record_key: &[u8]) -> Result<Option<Bytes>> {
    let mut end = None;
    let (from, to) = keyspace::bounds(prefix, &mut end);
    for entry in view.range(from, to, Direction::Forward)? {
        let (key, _) = entry?;
        if &key[prefix.len()..] != record_key {
            return Ok(Some(key));
        }
    }
    Ok(None)
}

/// What a statement of a transaction gets when somebody else was first.
pub(crate) fn write_conflict() -> Error {
    Error::new(
        Code::WRITE_CONFLICT,
        "Caused by :: Write conflict during plan execution and yielding is disabled. :: Please retry your operation or \
         multi-document transaction.",
    )
}
