//! Keeping a model true: a pure planner that turns a change of one document into effects, and what carries them out.
//!
//! ```text
//!   change (collection, before, after) ──> Keeper::own ────> Set, Fill, Refuse      on the document itself
//!                                     └──> Keeper::others ─> Parent, Spread, Roll … on other documents
//! ```
//!
//! The planner reads no database: it knows the model and the two images. The same effects are carried out in the
//! write's own transaction by a hook of the engine ([`embedded`]), by services on a deployment, or from change streams.

mod compile;
pub mod deployment;
pub mod effect;
pub mod embedded;
mod lagging;
mod newest;
mod others;
mod own;
mod value;

use crate::language::states::States;
use crate::language::stock::Stock;
use crate::model::Model;
use bson::{RawDocument, RawDocumentBuf};
use effect::{Effect, Extreme, Newest, Referrers, Spread};
use engine::Result;
use engine::expression::Environment;
use engine::filter::Filter;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The collection, in each database, that holds what is counted for parents that don't exist (yet, or any more).
pub const PENDING: &str = "sheaf.pending";

/// A model, prepared to plan the effects of changes.
#[derive(Debug)]
pub struct Keeper {
    watches: BTreeMap<String, Watch>,
    unkept: Vec<String>,
}

/// What is to be done about changes in one collection.
#[derive(Debug, Default)]
struct Watch {
    entity: String,
    contributions: Vec<Contribution>,
    copies: Vec<CopyIn>,
    spreads: Vec<Arc<Spread>>,
    referrers: Vec<Arc<Referrers>>,
    kept: Vec<Kept>,
    states: Vec<States>,
    stocks: Vec<Stock>,
    lock: Option<String>,
    bounded: Vec<Bounded>,
    mirror: Option<(String, String)>,
    rolls: Vec<Roll>,
}

/// What a child adds to its parent.
#[derive(Debug)]
struct Contribution {
    parents: String,
    by: String,
    filter: Condition,
    kind: Adds,
}

#[derive(Debug)]
enum Adds {
    One(String),
    Amount { field: String, path: String },
    Extreme(Arc<Extreme>),
    Newest(Arc<Newest>),
}

/// A field that the model keeps and nobody else writes.
#[derive(Debug)]
struct Kept {
    field: String,
    declaration: String,
    rule: KeptRule,
}

/// How a kept field gets its value.
#[derive(Clone, Debug)]
enum KeptRule {
    /// By adding up.
    Number,
    /// A `min` or `max`.
    Extreme(Arc<Extreme>),
    /// A `latest` or `recent`.
    Newest(Arc<Newest>),
}

/// A copy in this collection's documents.
#[derive(Debug)]
struct CopyIn {
    declaration: String,
    /// When the copy is taken: `None` for a live copy.
    fill: Option<crate::language::snapshot::Fill>,
    /// The steps to the sub-documents with the reference: names, and for arrays the key of their elements.
    steps: Vec<(String, Option<Option<String>>)>,
    reference: String,
    name: Option<String>,
    source: String,
    fields: Vec<(String, String)>,
}

/// An embedded array with a bound.
#[derive(Debug)]
struct Bounded {
    name: String,
    max: usize,
    key: Option<String>,
    drop_oldest: bool,
}

/// What a document adds to a rollup.
#[derive(Debug)]
struct Roll {
    collection: String,
    unwind: Option<String>,
    keys: Vec<crate::language::rollup::Key>,
    tz: jiff::tz::TimeZone,
    /// The names of counts, and of sums with their paths.
    counts: Vec<String>,
    sums: Vec<(String, String)>,
    filter: Condition,
}

/// A filter on one document, parsed once.
#[derive(Debug)]
struct Condition {
    filter: Option<Filter>,
    source: RawDocumentBuf,
}

impl Condition {
    fn holds(&self, document: &RawDocument) -> Result<bool> {
        match &self.filter {
            Some(filter) => filter.matches(document, &Environment::fixed()),
            None => Ok(true),
        }
    }
}

/// The collection, in each database, with what is carried out in batches.
pub const LAGGING: &str = "sheaf.lagging";

impl Keeper {
    /// Prepares a model.
    ///
    /// # Errors
    /// A filter of the model that the engine doesn't take.
    pub fn new(model: &Model) -> Result<Keeper> {
        compile::compile(model)
    }

    /// Whether changes in a collection concern the model.
    pub fn watches(&self, collection: &str) -> bool {
        self.watches.contains_key(collection)
    }

    /// The declarations that this planner doesn't keep.
    pub fn unkept(&self) -> &[String] {
        &self.unkept
    }

    /// Whether documents of a collection have kept fields.
    fn keeps(&self, collection: &str) -> bool {
        !self.kept(collection).is_empty()
    }

    fn kept(&self, collection: &str) -> &[Kept] {
        self.watches.get(collection).map_or(&[], |watch| &watch.kept)
    }

    /// What a declaration's lagging note is about.
    fn lagging(&self, declaration: &str) -> Option<lagging::Lagging<'_>> {
        self.watches.iter().find_map(|(collection, watch)| {
            let copies = watch.spreads.iter().find(|spread| spread.declaration == declaration);
            let references = watch.referrers.iter().find(|rule| rule.declaration == declaration);
            copies
                .map(|spread| lagging::Lagging::Copies(spread, collection))
                .or(references.map(|rule| lagging::Lagging::References(rule)))
        })
    }

    /// What a change causes in the changed document itself; none for a delete.
    ///
    /// `by_hook` says that the change is itself an effect: kept fields may then change. `now_ms` is the time that a
    /// history notes.
    ///
    /// # Errors
    /// Malformed documents.
    pub fn own(
        &self,
        collection: &str,
        before: Option<&RawDocument>,
        after: Option<&RawDocument>,
        by_hook: bool,
        now_ms: i64,
    ) -> Result<Vec<Effect>> {
        match (self.watches.get(collection), after) {
            (Some(watch), Some(after)) => own::own(watch, before, after, by_hook, now_ms),
            _ => Ok(Vec::new()),
        }
    }

    /// What a change causes in other documents; `after` is the document as it will be stored.
    ///
    /// # Errors
    /// Malformed documents.
    pub fn others(
        &self,
        collection: &str,
        before: Option<&RawDocument>,
        after: Option<&RawDocument>,
        by_hook: bool,
    ) -> Result<Vec<Effect>> {
        match self.watches.get(collection) {
            Some(watch) => others::others(watch, collection, before, after, by_hook),
            None => Ok(Vec::new()),
        }
    }
}
