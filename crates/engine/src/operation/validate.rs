//! `validate`: every index entry compared with its document, every document with its index entries.
//!
//! ```text
//!   documents, in order   well-formed? an _id? ── each key the indexes ask for: is its entry there, with the same bits?
//!   each index, in order  entries counted, the keys of a unique index compared with their neighbours
//!                         └─ as many as the documents ask for, and none missed: nothing can be too much
//!                            else once more, each entry: does its document ask for it?
//! ```
//!
//! It holds one chunk and what it found wrong, up to a bound. A snapshot does not live for long, so a long walk goes on with a
//! newer one: each comparison is made within one snapshot, where documents and entries must agree whatever is written
//! meanwhile. Only sums over several snapshots may not be compared; then each entry is looked at.

use crate::catalog::{Collection, Index};
use crate::context::Context;
use crate::database::{Engine, Inner, State, Totals};
use crate::document::{append, get};
use crate::error::{Code, Error, Result};
use crate::index::{IndexSpec, Keys};
use crate::key::{self, Decoder};
use crate::keyspace;
use crate::namespace::Namespace;
use crate::statement::refuse_view;
use crate::storage::{Direction, View};
use bson::spec::BinarySubtype;
use bson::{RawBinaryRef, RawBson, RawBsonRef, RawDocument, RawDocumentBuf, rawdoc};
use bytes::Bytes;
use std::ops::Bound;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The entries that are read at once.
const CHUNK_ENTRIES: usize = 256;
/// The bytes after which a chunk ends early.
const CHUNK_BYTES: usize = 1 << 20;
/// The longest that one snapshot is read from.
const SNAPSHOT_LIFETIME: Duration = Duration::from_secs(20);
/// The most wrong entries of each kind that are listed; further ones are counted.
const MAX_LISTED: usize = 1000;

/// What was found.
#[derive(Clone, Debug, Default)]
pub struct Validation {
    /// The documents.
    pub records: u64,
    /// Those that are no documents, or none that may be stored.
    pub invalid_documents: u64,
    /// The indexes, `_id`'s first.
    pub indexes: Vec<IndexValidation>,
    /// What is wrong, in words; empty when nothing is.
    pub errors: Vec<String>,
    /// What is worth knowing and not wrong.
    pub warnings: Vec<String>,
    /// The record ids of broken documents.
    pub corrupt_records: Vec<RawBson>,
    /// Index entries that documents ask for and that aren't there.
    pub missing_entries: Vec<RawDocumentBuf>,
    /// Index entries that no document asks for.
    pub extra_entries: Vec<RawDocumentBuf>,
}

/// What was found in an index.
#[derive(Clone, Debug)]
pub struct IndexValidation {
    /// Its name.
    pub name: String,
    /// Its specification.
    pub spec: RawDocumentBuf,
    /// Its entries.
    pub keys: u64,
    /// What is wrong, in words.
    pub errors: Vec<String>,
}

impl Validation {
    /// Whether nothing is wrong.
    pub fn is_valid(&self) -> bool {
        self.errors.is_empty() && self.indexes.iter().all(|index| index.errors.is_empty())
    }
}

impl Engine {
    /// Compares the documents of a collection with its indexes and its totals. What is wrong stands in the reply. If nothing
    /// is, the size of its largest document is brought up to date.
    ///
    /// # Errors
    /// `NamespaceNotFound` (26), `CommandNotSupportedOnView` (166), a failing storage, an interruption, a collection that is
    /// dropped meanwhile (`QueryPlanKilled`, 175).
    pub fn validate(&self, context: &Context, namespace: &Namespace) -> Result<Validation> {
        let state = self.state();
        let series = state.catalog.get(namespace).filter(|collection| collection.settings.series.is_some());
        if let Some(series) = series {
            return context.block(|| self.inner.validate_series(context, series));
        }
        context.block(|| {
            let mut found = Validator::begin(&self.inner, context, namespace)?.run()?;
            if found.is_valid()
                && let Err(error) = self.measure_documents(namespace)
            {
                found.warnings.push(format!("the largest document is not known anew: {error}"));
            }
            Ok(found)
        })
    }
}

/// A validation on its way.
struct Validator<'v> {
    engine: &'v Inner,
    context: &'v Context,
    look: Look,
    /// Whether the walk had to go on with a newer snapshot.
    moved: bool,
    indexes: Vec<Checked>,
    found: Validation,
    bytes: i64,
}

/// A snapshot with the collection as of it.
struct Look {
    state: State,
    collection: Arc<Collection>,
    since: Instant,
}

/// An index that is being checked, with what was counted.
struct Checked {
    /// Its number; `None` for `_id`'s.
    id: Option<u32>,
    expected: u64,
    missing: u64,
    extra: u64,
    duplicates: u64,
    not_multikey: bool,
}

/// How an index stores its entries.
#[derive(Clone, Copy)]
enum Of<'i> {
    Id,
    Other(&'i Index),
}

impl<'v> Validator<'v> {
    fn begin(engine: &'v Inner, context: &'v Context, namespace: &Namespace) -> Result<Validator<'v>> {
        let state = engine.state();
        let collection = state.catalog.get(namespace).cloned().ok_or_else(|| {
            Error::new(Code::NAMESPACE_NOT_FOUND, format!("Collection '{namespace}' does not exist to validate."))
        })?;
        refuse_view(&collection)?;
        let id = IndexSpec::id(collection.settings.collation.as_ref());
        let mut found = Validation::default();
        let mut indexes = Vec::new();
        let mut add = |id, spec: &IndexSpec| {
            let (name, document) = (spec.name().to_owned(), spec.document().to_owned());
            found.indexes.push(IndexValidation { name, spec: document, keys: 0, errors: Vec::new() });
            indexes.push(Checked { id, expected: 0, missing: 0, extra: 0, duplicates: 0, not_multikey: false });
        };
        if !collection.settings.clustered {
            add(None, &id);
        }
        let mut unfinished = Vec::new();
        for index in &collection.indexes {
            match index.ready {
                true => add(Some(index.id), &index.spec),
                false => unfinished.push(format!("index '{}' is being built and was passed over", index.spec.name())),
            }
        }
        found.warnings = unfinished;
        let look = Look { state, collection, since: Instant::now() };
        Ok(Validator { engine, context, look, moved: false, indexes, found, bytes: 0 })
    }

    fn run(mut self) -> Result<Validation> {
        self.check_documents()?;
        for number in 0..self.indexes.len() {
            let count = self.count_entries(number)?;
            self.found.indexes[number].keys = count;
            let checked = &self.indexes[number];
            if self.moved || checked.missing > 0 || count != checked.expected {
                self.check_entries(number)?;
            }
        }
        self.conclude();
        Ok(self.found)
    }

    /// Looks at the operation's end and takes a newer snapshot if this one is old.
    fn refresh(&mut self) -> Result<()> {
        self.context.check()?;
        if self.look.since.elapsed() < SNAPSHOT_LIFETIME {
            return Ok(());
        }
        let state = self.engine.state();
        let collection = state.catalog.by_id(self.look.collection.id).cloned().ok_or_else(|| {
            let name = &self.look.collection.namespace;
            Error::new(Code::QUERY_PLAN_KILLED, format!("{name} was dropped while it was validated"))
        })?;
        self.look = Look { state, collection, since: Instant::now() };
        self.moved = true;
        Ok(())
    }

    /// The next entries with a prefix.
    fn chunk(&self, prefix: &[u8], after: Option<&Bytes>) -> Result<Vec<(Bytes, Bytes)>> {
        let end = keyspace::after_prefix(prefix);
        let from = after.map_or(Bound::Included(prefix), |key| Bound::Excluded(&key[..]));
        let to = end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let (mut chunk, mut bytes) = (Vec::new(), 0);
        for entry in self.look.state.snapshot.range(from, to, Direction::Forward)? {
            let entry = entry?;
            bytes += entry.0.len() + entry.1.len();
            chunk.push(entry);
            if chunk.len() >= CHUNK_ENTRIES || bytes >= CHUNK_BYTES {
                break;
            }
        }
        Ok(chunk)
    }

    /// Walks all documents and looks for the entries they ask for.
    fn check_documents(&mut self) -> Result<()> {
        let prefix = keyspace::prefix(keyspace::RECORDS, self.look.collection.id);
        let mut after: Option<Bytes> = None;
        loop {
            self.refresh()?;
            let chunk = self.chunk(&prefix, after.as_ref())?;
            let Some(last) = chunk.last() else { return Ok(()) };
            after = Some(last.0.clone());
            for (key, document) in &chunk {
                self.found.records += 1;
                self.bytes += document.len() as i64;
                let record_key = key.slice(keyspace::RECORD_PREFIX_BYTES..);
                if let Err(error) = self.check_document(&record_key, document) {
                    self.found.invalid_documents += 1;
                    let record = record_id(&self.look.collection, &record_key);
                    self.tell(format!("the document of record {record:?} is broken: {error}"));
                    if self.found.corrupt_records.len() < MAX_LISTED {
                        self.found.corrupt_records.push(record);
                    }
                }
            }
        }
    }

    /// Checks one document; an error says why it may not be stored as it is.
    fn check_document(&mut self, record_key: &Bytes, bytes: &[u8]) -> Result<()> {
        let document = crate::document::validate::check(bytes)?;
        let collection = self.look.collection.clone();
        let id = get(document, "_id")?.ok_or_else(|| Error::bad_value("it has no _id"))?;
        let encoded = encode_id(&collection, id)?;
        if collection.settings.clustered && encoded[..] != record_key[..] {
            return Err(Error::bad_value("it lies under another _id than its own"));
        }
        for number in 0..self.indexes.len() {
            let Some(index) = self.indexes[number].id else {
                let stored = self.look.state.snapshot.get(&keyspace::id(collection.id, &encoded))?;
                self.indexes[number].expected += 1;
                if stored.as_ref() != Some(record_key) {
                    self.miss(number, Of::Id, record_key, document, (&encoded, &[]))?;
                }
                continue;
            };
            // An index that a newer snapshot no longer has was dropped meanwhile.
            let Some(index) = collection.indexes.iter().find(|known| known.id == index) else { continue };
            let keys = index.spec.keys(document)?;
            self.indexes[number].not_multikey |= !covers(index, &keys);
            for entry in &keys.entries {
                self.indexes[number].expected += 1;
                let stored = self.look.state.snapshot.get(&keyspace::index(index.id, &entry.key, record_key))?;
                if stored.as_ref() != Some(&entry.bits) {
                    self.miss(number, Of::Other(index), record_key, document, (&entry.key, &entry.bits))?;
                }
            }
        }
        Ok(())
    }

    /// Notes an entry that is missing.
    fn miss(
        &mut self,
        number: usize,
        of: Of<'_>,
        record_key: &Bytes,
        document: &RawDocument,
        (key, bits): (&[u8], &[u8]),
    ) -> Result<()> {
        self.indexes[number].missing += 1;
        if self.found.missing_entries.len() < MAX_LISTED {
            let mut entry = self.describe(number, of, record_key, key, bits)?;
            if let Some(id) = get(document, "_id")? {
                append(&mut entry, "idKey", RawBsonRef::Document(&rawdoc! { "_id": RawBson::from(id) }))?;
            }
            self.found.missing_entries.push(entry);
        }
        Ok(())
    }

    /// An entry as the reply lists it.
    fn describe(
        &self,
        number: usize,
        of: Of<'_>,
        record_key: &[u8],
        key: &[u8],
        bits: &[u8],
    ) -> Result<RawDocumentBuf> {
        let mut entry = rawdoc! { "indexName": self.found.indexes[number].name.as_str() };
        append(&mut entry, "recordId", record_id(&self.look.collection, record_key).as_raw_bson_ref())?;
        let shown = index_key(of, key, bits).unwrap_or_else(|_| {
            let bytes = RawBsonRef::Binary(RawBinaryRef { subtype: BinarySubtype::Generic, bytes: key });
            rawdoc! { "": RawBson::from(bytes) }
        });
        append(&mut entry, "indexKey", RawBsonRef::Document(&shown))?;
        Ok(entry)
    }

    /// Where an index's entries lie; `None` when it was dropped meanwhile.
    fn place(&self, number: usize) -> Option<([u8; 5], Option<Arc<Index>>)> {
        let collection = &self.look.collection;
        match self.indexes[number].id {
            None => Some((keyspace::prefix(keyspace::IDS, collection.id), None)),
            Some(id) => {
                let index = collection.indexes.iter().find(|index| index.id == id)?.clone();
                Some((keyspace::prefix(keyspace::INDEXES, id), Some(index)))
            }
        }
    }

    /// Counts an index's entries, and the neighbours with the same key in a unique one.
    fn count_entries(&mut self, number: usize) -> Result<u64> {
        let mut count = 0;
        let mut after: Option<Bytes> = None;
        let mut before: Option<Bytes> = None;
        loop {
            self.refresh()?;
            let Some((prefix, index)) = self.place(number) else { return Ok(count) };
            let chunk = self.chunk(&prefix, after.as_ref())?;
            let Some(last) = chunk.last() else { return Ok(count) };
            after = Some(last.0.clone());
            count += chunk.len() as u64;
            let Some(index) = index.filter(|index| index.spec.unique()) else { continue };
            for (key, _) in &chunk {
                let rest = key.slice(keyspace::RECORD_PREFIX_BYTES..);
                let Ok(length) = fields_length(&index.spec, &rest) else { continue };
                let fields = rest.slice(..length);
                if before.as_ref() == Some(&fields) {
                    self.indexes[number].duplicates += 1;
                }
                before = Some(fields);
            }
        }
    }

    /// Looks for the document of each of an index's entries.
    fn check_entries(&mut self, number: usize) -> Result<()> {
        let mut after: Option<Bytes> = None;
        loop {
            self.refresh()?;
            let Some((prefix, index)) = self.place(number) else { return Ok(()) };
            let chunk = self.chunk(&prefix, after.as_ref())?;
            let Some(last) = chunk.last() else { return Ok(()) };
            after = Some(last.0.clone());
            for (key, value) in &chunk {
                let of = index.as_deref().map_or(Of::Id, Of::Other);
                let rest = &key[keyspace::RECORD_PREFIX_BYTES..];
                let (fields, bits, record_key) = match of {
                    Of::Id => (rest, &[][..], &value[..]),
                    Of::Other(index) => {
                        let length = fields_length(&index.spec, rest).unwrap_or(rest.len());
                        (&rest[..length], &value[..], &rest[length..])
                    }
                };
                if self.is_asked_for(of, fields, bits, record_key)? {
                    continue;
                }
                self.indexes[number].extra += 1;
                if self.found.extra_entries.len() < MAX_LISTED {
                    let entry = self.describe(number, of, record_key, fields, bits)?;
                    self.found.extra_entries.push(entry);
                }
            }
        }
    }

    /// Whether a document asks for an entry.
    fn is_asked_for(&self, of: Of<'_>, fields: &[u8], bits: &[u8], record_key: &[u8]) -> Result<bool> {
        let collection = &self.look.collection;
        let Some(bytes) = self.look.state.snapshot.get(&keyspace::record(collection.id, record_key))? else {
            return Ok(false);
        };
        // A broken document was told of already.
        let Ok(document) = crate::document::validate::check(&bytes) else { return Ok(true) };
        match of {
            Of::Id => match get(document, "_id")? {
                Some(id) => Ok(encode_id(collection, id)?[..] == *fields),
                None => Ok(true),
            },
            Of::Other(index) => {
                let Ok(keys) = index.spec.keys(document) else { return Ok(true) };
                Ok(keys.entries.iter().any(|entry| entry.key[..] == *fields && entry.bits[..] == *bits))
            }
        }
    }

    fn tell(&mut self, error: String) {
        if self.found.errors.len() < MAX_LISTED {
            self.found.errors.push(error);
        }
    }

    /// Says in words what was counted.
    fn conclude(&mut self) {
        for (checked, index) in self.indexes.iter().zip(&mut self.found.indexes) {
            let counted = [
                (checked.missing, "missing index entries"),
                (checked.extra, "extra index entries"),
                (checked.duplicates, "keys that a unique index must not hold twice"),
            ];
            for (count, what) in counted.iter().filter(|entry| entry.0 > 0) {
                index.errors.push(format!("{count} {what}"));
            }
            if checked.not_multikey {
                index.errors.push("documents have arrays in indexed paths where the index is not multikey".to_owned());
            }
            if !index.errors.is_empty() {
                let errors = index.errors.join(", ");
                self.found.errors.push(format!("Index with name '{}' has inconsistencies: {errors}", index.name));
            }
        }
        let sum = |of: fn(&Checked) -> u64| self.indexes.iter().map(of).sum::<u64>();
        let (missing, extra) = (sum(|checked| checked.missing), sum(|checked| checked.extra));
        if missing > 0 {
            self.found.warnings.push(format!("Detected {missing} missing index entries."));
        }
        if extra > 0 {
            self.found.warnings.push(format!("Detected {extra} extra index entries."));
        }
        if missing.max(extra) > MAX_LISTED as u64 {
            self.found.warnings.push(format!("Not all inconsistencies are listed: at most {MAX_LISTED} of each kind."));
        }
        self.compare_totals();
    }

    /// Compares the kept totals with what was counted, where that was in one snapshot.
    fn compare_totals(&mut self) {
        if self.moved {
            return;
        }
        let counted = Totals { count: self.found.records as i64, size_bytes: self.bytes, ..Totals::default() };
        let error = match self.engine.totals(&self.look.state.snapshot, self.look.collection.id) {
            Ok(kept) if (kept.count, kept.size_bytes) == (counted.count, counted.size_bytes) => return,
            Ok(kept) => format!(
                "fast count ({} documents, {} bytes) does not match what is stored ({} documents, {} bytes)",
                kept.count, kept.size_bytes, counted.count, counted.size_bytes
            ),
            Err(error) => error.to_string(),
        };
        self.tell(error);
    }
}

fn encode_id(collection: &Collection, id: RawBsonRef<'_>) -> Result<Vec<u8>> {
    let mut encoded = Vec::with_capacity(24);
    key::encode(id, collection.collator().map(|collator| &**collator), &mut encoded)?;
    Ok(encoded)
}

/// Whether an index knows of all arrays that a document has in its paths.
fn covers(index: &Index, keys: &Keys) -> bool {
    let known = |field: usize| index.multikey.get(field).copied().unwrap_or(0);
    keys.multikey.iter().enumerate().all(|(field, parts)| parts & !known(field) == 0)
}

/// How long the fields of a stored key are; the record key follows them.
pub(super) fn fields_length(spec: &IndexSpec, stored: &[u8]) -> Result<usize> {
    let mut length = 0;
    for descending in spec.descending() {
        length += key::skip(&stored[length..], descending)?;
    }
    Ok(length)
}

/// A record's id: a number, or in a clustered collection the bytes of its encoded `_id`.
fn record_id(collection: &Collection, record_key: &[u8]) -> RawBson {
    match (collection.settings.clustered, record_key.try_into()) {
        (false, Ok(number)) => RawBson::Int64(i64::from_be_bytes(number)),
        _ => RawBson::from(RawBsonRef::Binary(RawBinaryRef { subtype: BinarySubtype::Generic, bytes: record_key })),
    }
}

/// A stored key as a document.
fn index_key(of: Of<'_>, key: &[u8], bits: &[u8]) -> Result<RawDocumentBuf> {
    let mut decoder = Decoder::new(key, bits);
    let mut shown = RawDocumentBuf::new();
    let Of::Other(index) = of else {
        append(&mut shown, "_id", decoder.next(false)?.as_raw_bson_ref())?;
        return Ok(shown);
    };
    for field in index.spec.fields() {
        let descending = field.kind.is_descending();
        if field.kind.is_wildcard() {
            append(&mut shown, "$_path", decoder.next(descending)?.as_raw_bson_ref())?;
        }
        append(&mut shown, &field.path, decoder.next(descending)?.as_raw_bson_ref())?;
    }
    Ok(shown)
}

#[cfg(test)]
mod tests;
