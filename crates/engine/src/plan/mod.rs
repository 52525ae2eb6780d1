//! Planning queries: from a filter, a sort and a collection's indexes to the stages that read the storage.
//!
//! ```text
//!   Query, Target ──solve──> solutions ──trial──> the one that earns most for its work ──> Execution ──> rows
//!                                          └── remembered by the query's shape (cache.rs), dropped when it turns bad
//! ```
//!
//! - `access.rs` finds which keys of one index can hold the matches, `eligible.rs` which indexes hold all of them,
//!   `order.rs` which scans give an order, `solve.rs` puts plans together.
//! - A plan is a tree of [`Node`]s. An [`Execution`] walks it by small steps of work, which is what trials count
//!   and `explain` shows. It owns no view of the storage: each call brings one, and after [`Execution::release`] it may be
//!   another, newer one. So a cursor keeps no snapshot between two batches.
//! - It knows filters and expressions only by what they say about bounds and paths; projections not at all.

mod access;
mod bounds;
mod cache;
mod eligible;
mod execution;
mod explain;
mod filters;
mod key_range;
mod node;
mod order;
mod seen;
mod series;
mod shape;
mod solve;
mod sort;
mod trial;

pub use cache::PlanCache;
pub use execution::{Execution, Polled, Shown};
pub use explain::Verbosity;
pub use filters::IndexFilter;
pub(crate) use node::Node;
pub(crate) use seen::Seen;
pub(crate) use shape::{long_hash as shape_hash, query_shape_hash};
pub use sort::{Order, SortPattern};
pub use trial::{Plan, plan};

use crate::document::collation::Collator;
use crate::error::{Error, Result};
use crate::expression::Environment;
use crate::filter::Filter;
use crate::index::{IndexSpec, same_pattern};
use crate::series::Series;
use bson::{RawBson, RawBsonRef, RawDocument, RawDocumentBuf};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The collection that is read, as far as plans depend on it.
#[derive(Clone, Debug)]
pub struct Target {
    /// The collection's number.
    pub collection: u32,
    /// Its name, `database.collection`, for `explain`.
    pub namespace: String,
    /// Whether records lie under their encoded `_id`.
    pub clustered: bool,
    /// Its default collation, by which `_id` is indexed.
    pub collator: Option<Arc<Collator>>,
    /// Its indexes, the one on `_id` first.
    pub indexes: Vec<IndexInfo>,
    /// For a time series: its options. Then records are measurements of groups, and indexes lead to groups.
    pub series: Option<Arc<Series>>,
    /// Whether old records make room for new ones.
    pub capped: bool,
    /// Whether `_id` can't be looked up.
    pub without_id_index: bool,
}

/// An index that may be read.
#[derive(Clone, Debug)]
pub struct IndexInfo {
    /// The index's number; of the index on `_id`, the collection's.
    pub id: u32,
    /// Where its keys lie.
    pub kind: IndexKind,
    /// What it indexes.
    pub spec: Arc<IndexSpec>,
    /// For each field of the pattern, the parts of its path that have held arrays, as bits.
    pub multikey: Vec<u64>,
}

/// Where the keys of an index lie.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IndexKind {
    /// With the records' keys behind them.
    Regular,
    /// The index on `_id`: keys lead to records.
    Id,
    /// The records themselves, of a clustered collection.
    Clustered,
    /// The order of a time series' groups.
    Series,
}

/// What is asked.
#[derive(Clone, Debug)]
pub struct Query {
    /// What documents must match.
    pub filter: Arc<Filter>,
    /// What the filter is evaluated in.
    pub environment: Arc<Environment>,
    /// Their order.
    pub order: Option<Order>,
    /// An index's name or key pattern, or `{$natural: ±1}`.
    pub hint: Option<RawBson>,
    /// `min` and `max`.
    pub key_range: Option<KeyRange>,
    /// How many to pass over.
    pub skip: u64,
    /// The most to give; zero for all.
    pub limit: u64,
    /// Whether a sort may use the disk.
    pub allow_disk_use: bool,
    /// The paths of documents that the caller looks at; `None` for all.
    pub needed: Option<BTreeSet<String>>,
    /// The projection, to be shown in the plan. It is applied by the caller.
    pub projection: Option<RawDocumentBuf>,
    /// Whether the projection only takes fields in or out.
    pub is_simple_projection: bool,
    /// What the rows are for.
    pub purpose: Purpose,
    /// Whether each row shall carry the values that it was sorted by.
    pub wants_sort_key: bool,
}

/// `min` and `max` of a query.
#[derive(Clone, Debug, Default)]
pub struct KeyRange {
    /// The least key.
    pub min: Option<RawDocumentBuf>,
    /// The least key beyond.
    pub max: Option<RawDocumentBuf>,
}

/// What rows are for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Purpose {
    /// To be looked at.
    Find,
    /// To be counted: rows may be empty.
    Count,
    /// For the distinct values of a path: a scan may pass over keys with the same value.
    Distinct(String),
}

/// What a hint names.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Hint<'a> {
    /// An index.
    Index(&'a IndexInfo),
    /// The records themselves.
    Natural {
        /// In reverse.
        backward: bool,
    },
}

impl Query {
    /// A query for all documents that match a filter.
    pub fn new(filter: Arc<Filter>, environment: Arc<Environment>) -> Query {
        Query {
            filter,
            environment,
            order: None,
            hint: None,
            key_range: None,
            skip: 0,
            limit: 0,
            allow_disk_use: true,
            needed: None,
            projection: None,
            is_simple_projection: false,
            purpose: Purpose::Find,
            wants_sort_key: false,
        }
    }

    /// The fields it sorts by.
    pub(crate) fn pattern(&self) -> Option<&Arc<SortPattern>> {
        match &self.order {
            Some(Order::Fields(pattern)) => Some(pattern),
            _ => None,
        }
    }

    /// Whether keys may hold all that is needed.
    pub(crate) fn needs_little(&self) -> bool {
        self.purpose != Purpose::Count && self.needed.as_ref().is_some_and(|needed| !needed.is_empty())
    }
}

impl Target {
    /// The indexes that a plan may read.
    pub(crate) fn candidates<'a>(&'a self, hint: Option<Hint<'a>>) -> Vec<&'a IndexInfo> {
        match hint {
            Some(Hint::Index(index)) => vec![index],
            Some(Hint::Natural { .. }) => Vec::new(),
            None => self.indexes.iter().filter(|index| !index.spec.hidden()).collect(),
        }
    }

    /// What a query's hint names.
    ///
    /// # Errors
    /// `BadValue` (2) when there is no such index, or it is hidden.
    pub(crate) fn hint<'a>(&'a self, query: &Query) -> Result<Option<Hint<'a>>> {
        let unknown = || {
            Error::bad_value(
                "error processing query: planner returned error :: caused by :: hint provided does not correspond to an existing index",
            )
        };
        let Some(hint) = &query.hint else { return Ok(None) };
        let found = match hint.as_raw_bson_ref() {
            RawBsonRef::String(name) => self.indexes.iter().find(|index| index.spec.name() == name),
            RawBsonRef::Document(pattern) => {
                if pattern.is_empty() {
                    return Ok(None);
                }
                if let Some(direction) = natural(pattern)? {
                    return Ok(Some(Hint::Natural { backward: direction }));
                }
                self.indexes.iter().find(|index| same_pattern(index.spec.pattern(), pattern))
            }
            _ => return Err(Error::failed_to_parse("Hint must be either a string or a nested object")),
        };
        let found = found.filter(|index| !index.spec.hidden()).ok_or_else(unknown)?;
        Ok(Some(Hint::Index(found)))
    }
}

/// Whether a hint is `{$natural: ±1}`, and in reverse.
fn natural(pattern: &RawDocument) -> Result<Option<bool>> {
    match pattern.get("$natural")? {
        None => Ok(None),
        Some(value) => {
            let number = crate::document::Number::of(value).map(|number| number.to_f64());
            if pattern.iter().count() > 1 {
                return Err(Error::bad_value("$natural may not be combined with other fields in a hint"));
            }
            match number {
                Some(1.0) => Ok(Some(false)),
                Some(-1.0) => Ok(Some(true)),
                _ => Err(Error::bad_value("$natural hint must be 1 or -1")),
            }
        }
    }
}

impl IndexInfo {
    /// The index on `_id` of a collection.
    pub fn id(collection: u32, collator: Option<&Arc<Collator>>) -> IndexInfo {
        IndexInfo { id: collection, kind: IndexKind::Id, spec: Arc::new(IndexSpec::id(collator)), multikey: vec![0] }
    }

    /// The order of a time series' groups, seen as an index.
    ///
    /// # Errors
    /// None in practice: the fields' names were checked when the collection was created.
    pub fn series(collection: u32, series: &Series) -> Result<IndexInfo> {
        let spec = IndexSpec::parse(&series.order_spec(), None)?;
        Ok(IndexInfo {
            id: collection,
            kind: IndexKind::Series,
            multikey: vec![0; spec.fields().len()],
            spec: Arc::new(spec),
        })
    }

    /// The records of a clustered collection, seen as an index.
    pub fn clustered(collection: u32, collator: Option<&Arc<Collator>>) -> IndexInfo {
        IndexInfo { kind: IndexKind::Clustered, ..IndexInfo::id(collection, collator) }
    }
}

#[cfg(test)]
mod tests;
