//! Keeping a model true: a pure planner that turns a change of one document into effects, and what carries them out.
//!
//! ```text
//!   change (collection, before, after) ──> Keeper::own ────> Set, Fill, Refuse      on the document itself
//!                                     └──> Keeper::others ─> Parent, Spread, Roll … on other documents
//! ```
//!
//! The planner reads no database: it knows the model and the two images. The same effects are carried out in the
//! write's own transaction by a hook of the engine ([`embedded`]), by services on a deployment, or from change streams.

pub mod active;
mod backfill;
pub mod bucket;
mod compile;
pub mod compress;
pub mod declaration;
pub mod deployment;
pub mod effect;
pub mod embedded;
mod image;
mod lagging;
mod newest;
mod others;
mod own;
mod parent;
pub mod range;
mod repair;
mod roll;
pub mod rollup;
pub mod service;
mod split;
pub(crate) mod stock;
pub mod timeline;
pub(crate) mod value;

use crate::language::states::States;
use crate::language::stock::Stock;
use crate::model::Model;
use bson::{RawBson, RawDocument, RawDocumentBuf};
use bucket::Pack;
use declaration::{Declaration, Rule};
use effect::{Apart, Effect, Extreme, Newest, Packed, Referrers, Spread, Stocked};
use engine::Result;
use engine::expression::Environment;
use engine::filter::Filter;
use std::collections::BTreeMap;
use std::sync::Arc;
use timeline::{Fan, Follows};

/// The collection, in each database, with what is being filled after a change of the model.
pub const BACKFILL: &str = "sheaf.backfill";

/// The collection, in each database, with what an audit repaired: an insert there does one repair.
pub const REPAIRS: &str = "sheaf.repairs";

/// The collection, in each database, that holds what is counted for parents that don't exist (yet, or any more).
pub const PENDING: &str = "sheaf.pending";

/// The field of a mutual edge's row that the model made because its other half was written.
pub const REVERSE: &str = "_reverse";

pub(crate) use compile::raw;
pub(crate) use newest::number;
pub(crate) use others::{add, subtract};
pub(crate) use own::fills;
pub(crate) use repair::record as repair_record;
pub(crate) use rollup::{Group, Moved, groups_of, roll_filter};

/// A model, prepared to plan the effects of changes.
#[derive(Debug)]
pub struct Keeper {
    watches: BTreeMap<String, Watch>,
    declarations: Vec<Declaration>,
}

/// What is to be done about changes in one collection.
#[derive(Debug, Default)]
struct Watch {
    entity: String,
    contributions: Vec<Contribution>,
    copies: Vec<Arc<CopyIn>>,
    spreads: Vec<Arc<Spread>>,
    referrers: Vec<Arc<Referrers>>,
    kept: Vec<Kept>,
    states: Vec<States>,
    stocks: Vec<Stock>,
    lock: Option<String>,
    bounded: Vec<Bounded>,
    mirror: Option<(String, String)>,
    rolls: Vec<Arc<Roll>>,
    packs: Vec<Arc<Pack>>,
    aparts: Vec<Arc<Apart>>,
    packed: Vec<Arc<Packed>>,
    /// The timelines whose items these are.
    fans: Vec<Arc<Fan>>,
    /// The timelines along these edges.
    follows: Vec<Follows>,
    /// The timelines whose authors these are, if few followers make a difference.
    authors: Vec<Arc<Fan>>,
    /// Whose ledger this is.
    lines: Vec<Arc<Stocked>>,
    /// Whose holds these are.
    holds: Vec<Arc<Stocked>>,
    /// The declaration whose movements nobody changes afterwards.
    ledger: Option<String>,
}

/// What a child adds to its parent.
#[derive(Debug)]
struct Contribution {
    declaration: String,
    parents: String,
    by: String,
    filter: Condition,
    kind: Adds,
}

#[derive(Debug)]
enum Adds {
    One(String),
    Amount { field: String, path: String, taken: bool },
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
#[derive(Clone, Debug, PartialEq)]
pub struct CopyIn {
    /// The declaration, e.g. `order.items.buyer`.
    pub declaration: String,
    /// When the copy is taken: `None` for a live copy.
    pub fill: Option<crate::language::snapshot::Fill>,
    /// The steps to the sub-documents with the reference: names, and for arrays the key of their elements.
    pub steps: Vec<(String, Option<Option<String>>)>,
    /// The reference's name in them.
    pub reference: String,
    /// The sub-document of the copy in them.
    pub name: Option<String>,
    /// The source's collection.
    pub source: String,
    /// The fields: their names in the copy and their paths in the source.
    pub fields: Vec<(String, String)>,
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
pub struct Roll {
    /// The declaration, e.g. `salesByCityDay`.
    pub declaration: String,
    /// The rollup's collection.
    pub collection: String,
    /// The collection of the documents that are rolled up.
    pub source: String,
    /// The array whose elements are taken each for itself.
    pub unwind: Option<String>,
    /// What makes up the key.
    pub keys: Vec<crate::language::rollup::Key>,
    /// The time zone in which dates are cut.
    pub tz: jiff::tz::TimeZone,
    /// The names of counts.
    pub counts: Vec<String>,
    /// The names of sums, with their paths.
    pub sums: Vec<(String, String)>,
    /// The values that are the least or the greatest.
    pub extremes: Vec<RollExtreme>,
    filter: Condition,
}

/// A `min` or `max` of a rollup.
#[derive(Clone, Debug, PartialEq)]
pub struct RollExtreme {
    /// Its name in the rollup's documents.
    pub name: String,
    /// The path of what is compared.
    pub path: String,
    /// The greatest instead of the least.
    pub largest: bool,
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

    /// Everything that the model keeps, by name.
    pub fn declarations(&self) -> &[Declaration] {
        &self.declarations
    }

    /// The declaration of that name.
    pub fn declaration(&self, name: &str) -> Option<&Declaration> {
        self.declarations.iter().find(|declaration| declaration.name == name)
    }

    /// What a keeper beside a deployment doesn't keep, by name: stock that must never go below zero is refused in the write
    /// itself, or by a service that writes in transactions.
    pub fn unkept_beside(&self) -> impl Iterator<Item = &str> {
        let is = |declaration: &&Declaration| matches!(declaration.rule, Rule::Stock(_));
        self.declarations.iter().filter(is).map(|declaration| declaration.name.as_str())
    }

    /// Whether documents of a collection have kept fields.
    fn keeps(&self, collection: &str) -> bool {
        !self.kept(collection).is_empty()
    }

    fn kept(&self, collection: &str) -> &[Kept] {
        self.watches.get(collection).map_or(&[], |watch| &watch.kept)
    }

    /// The live copies in a collection's documents.
    fn live_copies(&self, collection: &str) -> impl Iterator<Item = &Arc<CopyIn>> {
        let copies = self.watches.get(collection).map_or(&[][..], |watch| &watch.copies);
        copies.iter().filter(|copy| copy.fill.is_none())
    }

    /// Whether a field is a quantity that the model keeps.
    fn is_stock(&self, collection: &str, field: &str) -> bool {
        let is = |declaration: &Declaration| match &declaration.rule {
            Rule::Stock(rule) => rule.field == field || rule.held.as_deref() == Some(field),
            _ => false,
        };
        self.declarations.iter().any(|declaration| declaration.collection == collection && is(declaration))
    }

    /// The ends of a mutual edge's rows.
    fn mirror(&self, collection: &str) -> Option<&(String, String)> {
        self.watches.get(collection)?.mirror.as_ref()
    }

    /// How far a declaration's copies may be behind.
    fn max_lag_ms(&self, declaration: &str) -> Option<u64> {
        let mut spreads = self.watches.values().flat_map(|watch| &watch.spreads);
        spreads.find(|spread| spread.declaration == declaration)?.max_lag_ms
    }

    /// What a declaration's lagging note is about.
    fn lagging(&self, declaration: &str) -> Option<lagging::Lagging<'_>> {
        self.watches.iter().find_map(|(collection, watch)| {
            let copies = watch.spreads.iter().find(|spread| spread.declaration == declaration);
            let references = watch.referrers.iter().find(|rule| rule.declaration == declaration);
            let fan = watch.fans.iter().find(|fan| fan.declaration == declaration);
            copies
                .map(|spread| lagging::Lagging::Copies(spread, collection))
                .or(references.map(|rule| lagging::Lagging::References(rule)))
                .or(fan.map(|fan| lagging::Lagging::Inboxes(fan)))
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
        self.others_where(collection, before, after, by_hook, &|_, _| Ok(true))
    }

    /// As [`Keeper::others`]; counts, sums and rollups follow only where `counts` says so, by the declaration's name and
    /// the changed document's id: a backfill has not come to the other documents yet.
    ///
    /// # Errors
    /// Malformed documents.
    pub fn others_where(
        &self,
        collection: &str,
        before: Option<&RawDocument>,
        after: Option<&RawDocument>,
        by_hook: bool,
        counts: &Counts<'_>,
    ) -> Result<Vec<Effect>> {
        match self.watches.get(collection) {
            Some(watch) => others::others(watch, collection, before, after, by_hook, counts),
            None => Ok(Vec::new()),
        }
    }
}

/// Whether a declaration counts the document with that id.
pub type Counts<'c> = dyn Fn(&str, &RawBson) -> Result<bool> + 'c;
