//! How the verbs behave, and what they give back.

use crate::error::Error;
use bson::{Bson, Document};
use std::time::Duration;

/// An update: operators, or a pipeline of stages.
#[derive(Clone, Debug, PartialEq)]
pub enum Modifications {
    /// Update operators, e.g. `{$inc: {n: 1}}`.
    Operators(Document),
    /// Stages such as `$set` and `$unset`.
    Pipeline(Vec<Document>),
}

impl From<Document> for Modifications {
    fn from(operators: Document) -> Modifications {
        Modifications::Operators(operators)
    }
}

impl From<Vec<Document>> for Modifications {
    fn from(stages: Vec<Document>) -> Modifications {
        Modifications::Pipeline(stages)
    }
}

/// Which members of a replica set may answer a read. An embedded store is always the latest.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub enum Freshness {
    /// The primary.
    #[default]
    Latest,
    /// A secondary that is at most so far behind, else the primary. MongoDB takes no bound below 90 seconds.
    Within(Duration),
}

/// How a find orders and bounds its results.
#[derive(Clone, Default, Debug)]
pub struct Find {
    /// The order.
    pub sort: Option<Document>,
    /// Which parts of the documents.
    pub projection: Option<Document>,
    /// How many to pass over.
    pub skip: u64,
    /// The most to give; zero for all.
    pub limit: i64,
    /// An index's name or key pattern.
    pub hint: Option<Bson>,
    /// How strings compare.
    pub collation: Option<Document>,
    /// The documents of a batch; the server's choice when missing.
    pub batch_size: Option<u32>,
    /// The most time the server may take for it.
    pub max_time: Option<Duration>,
    /// Who may answer.
    pub freshness: Freshness,
}

/// How an aggregation runs.
#[derive(Clone, Default, Debug)]
pub struct Aggregate {
    /// An index's name or key pattern.
    pub hint: Option<Bson>,
    /// How strings compare.
    pub collation: Option<Document>,
    /// The documents of a batch; the server's choice when missing.
    pub batch_size: Option<u32>,
    /// The most time the server may take for it.
    pub max_time: Option<Duration>,
    /// Values for `$$name`.
    pub variables: Option<Document>,
    /// Who may answer.
    pub freshness: Freshness,
}

/// How an insert of many documents behaves.
#[derive(Clone, Copy, Debug)]
pub struct InsertMany {
    /// Whether to stop at the first that fails.
    pub ordered: bool,
    /// Whether the validator is passed by.
    pub bypass_document_validation: bool,
}

impl Default for InsertMany {
    fn default() -> InsertMany {
        InsertMany { ordered: true, bypass_document_validation: false }
    }
}

/// How an update or a replacement behaves.
#[derive(Clone, Default, Debug)]
pub struct Update {
    /// Whether a document is inserted when none matches.
    pub upsert: bool,
    /// `arrayFilters`.
    pub array_filters: Vec<Document>,
    /// An index's name or key pattern.
    pub hint: Option<Bson>,
    /// How strings compare.
    pub collation: Option<Document>,
    /// Whether the validator is passed by.
    pub bypass_document_validation: bool,
}

/// How a delete finds its documents.
#[derive(Clone, Default, Debug)]
pub struct Delete {
    /// An index's name or key pattern.
    pub hint: Option<Bson>,
    /// How strings compare.
    pub collation: Option<Document>,
}

/// How `find_one_and_update`, `…_replace` and `…_delete` behave.
#[derive(Clone, Default, Debug)]
pub struct FindOneAndUpdate {
    /// Which document is the first.
    pub sort: Option<Document>,
    /// Which parts of it to give.
    pub projection: Option<Document>,
    /// Whether a document is inserted when none matches.
    pub upsert: bool,
    /// Whether to give the document as it is after, not before.
    pub after: bool,
    /// `arrayFilters`.
    pub array_filters: Vec<Document>,
    /// An index's name or key pattern.
    pub hint: Option<Bson>,
    /// How strings compare.
    pub collation: Option<Document>,
    /// Whether the validator is passed by.
    pub bypass_document_validation: bool,
}

/// What an update did.
#[derive(Clone, Default, Debug, PartialEq)]
pub struct UpdateResult {
    /// How many documents matched.
    pub matched: u64,
    /// How many changed.
    pub modified: u64,
    /// The `_id` that an upsert inserted.
    pub upserted: Option<Bson>,
}

/// One write of several that failed.
#[derive(Clone, Debug)]
pub struct WriteError {
    /// Which one, from zero.
    pub index: usize,
    /// Why.
    pub error: Error,
}

/// What an insert of many documents did.
#[derive(Clone, Default, Debug)]
pub struct InsertManyResult {
    /// How many were inserted.
    pub inserted: u64,
    /// The `_id` of each given document, whether it was inserted or not.
    pub ids: Vec<Bson>,
    /// Which failed.
    pub errors: Vec<WriteError>,
}

/// One write of a bulk.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "updates are what bulks are made of; a box for each would only cost")]
pub enum WriteModel {
    /// Inserts a document.
    Insert(Document),
    /// Updates the first document that matches, or all.
    Update {
        /// Which.
        filter: Document,
        /// How.
        update: Modifications,
        /// All of them?
        many: bool,
        /// Its options; `bypass_document_validation` is the bulk's.
        options: Update,
    },
    /// Replaces the first document that matches.
    Replace {
        /// Which.
        filter: Document,
        /// By what; the `_id` stays.
        replacement: Document,
        /// Whether it is inserted when none matches.
        upsert: bool,
    },
    /// Deletes the first document that matches, or all.
    Delete {
        /// Which.
        filter: Document,
        /// All of them?
        many: bool,
    },
}

impl WriteModel {
    /// Updates the first document that matches.
    pub fn update_one(filter: Document, update: impl Into<Modifications>) -> WriteModel {
        WriteModel::Update { filter, update: update.into(), many: false, options: Update::default() }
    }

    /// Updates the first document that matches, or inserts one.
    pub fn upsert_one(filter: Document, update: impl Into<Modifications>) -> WriteModel {
        let options = Update { upsert: true, ..Update::default() };
        WriteModel::Update { filter, update: update.into(), many: false, options }
    }

    /// Updates all documents that match.
    pub fn update_many(filter: Document, update: impl Into<Modifications>) -> WriteModel {
        WriteModel::Update { filter, update: update.into(), many: true, options: Update::default() }
    }

    /// Replaces the first document that matches.
    pub fn replace_one(filter: Document, replacement: Document) -> WriteModel {
        WriteModel::Replace { filter, replacement, upsert: false }
    }

    /// Deletes the first document that matches.
    pub fn delete_one(filter: Document) -> WriteModel {
        WriteModel::Delete { filter, many: false }
    }

    /// Deletes all documents that match.
    pub fn delete_many(filter: Document) -> WriteModel {
        WriteModel::Delete { filter, many: true }
    }
}

/// How a bulk behaves.
#[derive(Clone, Copy, Debug)]
pub struct BulkWrite {
    /// Whether to stop at the first write that fails.
    pub ordered: bool,
    /// Whether validators are passed by.
    pub bypass_document_validation: bool,
}

impl Default for BulkWrite {
    fn default() -> BulkWrite {
        BulkWrite { ordered: true, bypass_document_validation: false }
    }
}

/// What a bulk did.
#[derive(Clone, Default, Debug)]
pub struct BulkWriteResult {
    /// How many documents were inserted.
    pub inserted: u64,
    /// How many matched an update or replacement.
    pub matched: u64,
    /// How many changed.
    pub modified: u64,
    /// How many were deleted.
    pub deleted: u64,
    /// What upserts inserted: which write, and the `_id`.
    pub upserted: Vec<(usize, Bson)>,
    /// Which writes failed.
    pub errors: Vec<WriteError>,
}

impl BulkWriteResult {
    /// The result, or the first write's error.
    ///
    /// # Errors
    /// The first write's.
    pub fn ok(self) -> crate::Result<BulkWriteResult> {
        match self.errors.first() {
            Some(first) => Err(first.error.clone()),
            None => Ok(self),
        }
    }
}

/// An index to create.
#[derive(Clone, Debug, PartialEq)]
pub struct Index {
    /// Its key pattern.
    pub keys: Document,
    /// All else, as `createIndexes` takes it: `name`, `unique`, `sparse`, `partialFilterExpression`, `expireAfterSeconds`,
    /// `collation`, `hidden`, `wildcardProjection` …
    pub options: Document,
}

impl Index {
    /// An index without options.
    pub fn new(keys: Document) -> Index {
        Index { keys, options: Document::new() }
    }

    /// A unique index.
    pub fn unique(keys: Document) -> Index {
        Index { keys, options: bson::doc! { "unique": true } }
    }

    /// The index as `createIndexes` takes it, with a name.
    pub(crate) fn specification(&self) -> Document {
        let mut specification = bson::doc! { "key": self.keys.clone() };
        specification.extend(self.options.clone());
        if !specification.contains_key("name") {
            specification.insert("name", default_name(&self.keys));
        }
        specification
    }
}

/// The name that an index has when it isn't given one.
pub fn default_name(keys: &Document) -> String {
    let part = |(path, kind): (&String, &Bson)| match kind {
        Bson::String(kind) => format!("{path}_{kind}"),
        Bson::Double(number) => format!("{path}_{}", *number as i64),
        other => format!("{path}_{other}"),
    };
    keys.iter().map(part).collect::<Vec<_>>().join("_")
}

/// A database.
#[derive(Clone, Debug, PartialEq)]
pub struct DatabaseInfo {
    /// Its name.
    pub name: String,
    /// Its size on disk, or what its documents take.
    pub size_bytes: u64,
}

/// A collection, view or time series.
#[derive(Clone, Debug, PartialEq)]
pub struct CollectionInfo {
    /// Its name.
    pub name: String,
    /// `collection`, `view` or `timeseries`.
    pub kind: String,
    /// The options it was created with: `validator`, `capped`, `timeseries` …
    pub options: Document,
    /// What tells it from a later one of the same name.
    pub uuid: Option<bson::Uuid>,
}

/// What a collection takes.
#[derive(Clone, Default, Debug, PartialEq)]
pub struct CollectionStats {
    /// How many documents.
    pub count: u64,
    /// Their bytes.
    pub size_bytes: u64,
    /// Their bytes on disk.
    pub storage_bytes: u64,
    /// Bytes of indexes by name.
    pub index_bytes: Vec<(String, u64)>,
}

/// What a change stream gives, and from where.
#[derive(Clone, Debug)]
pub struct Watch {
    /// Stages on the events: `$match`, `$project` …
    pub pipeline: Vec<Document>,
    /// Where it begins.
    pub start: Start,
    /// Whether updates bring the document as it is when the event is read (`fullDocument: "updateLookup"`).
    pub update_lookup: bool,
    /// Whether events bring the document before, where the collection keeps it.
    pub before_change: bool,
    /// Whether events of definitions (`create`, `createIndexes`, `modify` …) are given too.
    pub show_expanded_events: bool,
    /// How long [`ChangeStream::next_if_any`](crate::ChangeStream::next_if_any) waits for an event.
    pub max_await: Duration,
    /// The events of a batch; the server's choice when missing.
    pub batch_size: Option<u32>,
}

impl Default for Watch {
    fn default() -> Watch {
        Watch {
            pipeline: Vec::new(),
            start: Start::Now,
            update_lookup: false,
            before_change: false,
            show_expanded_events: false,
            max_await: Duration::from_secs(1),
            batch_size: None,
        }
    }
}

/// Where a change stream begins.
#[derive(Clone, Default, Debug, PartialEq)]
pub enum Start {
    /// With what happens from now on.
    #[default]
    Now,
    /// After the event of a token.
    ResumeAfter(Document),
    /// After the event of a token, also an invalidate event's.
    StartAfter(Document),
    /// With the first event at or after a time.
    AtTime(bson::Timestamp),
}
