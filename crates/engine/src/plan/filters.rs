//! Index filters: which indexes queries of a shape may use, whatever they hint at.
//!
//! They are set by `planCacheSetFilter`, hold for every command that asks such a query, and are gone at the next start, as in
//! MongoDB. A shape is the filter without its constants, the sort, the projection and the collation.

use super::{IndexInfo, Query, Target};
use crate::error::{Code, Error, Result};
use crate::index::same_pattern;
use bson::{RawArrayBuf, RawBson, RawDocumentBuf};
use parking_lot::RwLock;
use std::collections::HashMap;
use std::sync::Arc;

/// The most filters of one collection.
const MAX_FILTERS: usize = 1000;

/// The query that a filter was set with, and the indexes that such queries may use.
#[derive(Clone, Debug)]
pub struct IndexFilter {
    /// The query's filter.
    pub query: RawDocumentBuf,
    /// Its sort.
    pub sort: RawDocumentBuf,
    /// Its projection.
    pub projection: RawDocumentBuf,
    /// Its collation, complete.
    pub collation: Option<RawDocumentBuf>,
    /// Names and key patterns of indexes; there need not be such indexes.
    pub indexes: Vec<RawBson>,
}

/// The filters of a collection with their shapes, the oldest first.
type ByShape = Vec<(String, Arc<IndexFilter>)>;

/// The index filters of all collections.
#[derive(Debug, Default)]
pub(super) struct IndexFilters {
    filters: RwLock<HashMap<u32, ByShape>>,
}

impl IndexFilters {
    /// Sets a filter in the place of one for the same shape.
    pub(super) fn set(&self, collection: u32, query: &Query, filter: IndexFilter) -> Result<()> {
        let shape = super::shape::filter_shape(query);
        let mut filters = self.filters.write();
        let of_collection = filters.entry(collection).or_default();
        of_collection.retain(|(other, _)| *other != shape);
        if of_collection.len() >= MAX_FILTERS {
            let message = format!("a collection has at most {MAX_FILTERS} index filters: clear some");
            return Err(Error::new(Code::OPERATION_FAILED, message));
        }
        of_collection.push((shape, Arc::new(filter)));
        Ok(())
    }

    /// The filters of a collection, the oldest first.
    pub(super) fn list(&self, collection: u32) -> Vec<Arc<IndexFilter>> {
        let filters = self.filters.read();
        filters.get(&collection).into_iter().flatten().map(|(_, filter)| filter.clone()).collect()
    }

    /// Removes the filter of a query's shape, or all of a collection.
    pub(super) fn clear(&self, collection: u32, query: Option<&Query>) {
        let mut filters = self.filters.write();
        match query.map(super::shape::filter_shape) {
            None => {
                filters.remove(&collection);
            }
            Some(shape) => {
                if let Some(of_collection) = filters.get_mut(&collection) {
                    of_collection.retain(|(other, _)| *other != shape);
                }
            }
        }
    }

    /// The filter that a query falls under.
    pub(super) fn of(&self, collection: u32, query: &Query) -> Option<Arc<IndexFilter>> {
        let filters = self.filters.read();
        let of_collection = filters.get(&collection)?;
        let shape = super::shape::filter_shape(query);
        of_collection.iter().find(|(other, _)| *other == shape).map(|(_, filter)| filter.clone())
    }
}

impl Target {
    /// The collection with the indexes that names or key patterns allow.
    pub(crate) fn restricted(&self, allowed: &[RawBson]) -> Target {
        let mut restricted = self.clone();
        restricted.indexes.retain(|index| allowed.iter().any(|allowed| names(allowed, index)));
        restricted
    }
}

fn names(allowed: &RawBson, index: &IndexInfo) -> bool {
    match allowed {
        RawBson::String(name) => index.spec.name() == name,
        RawBson::Document(pattern) => same_pattern(index.spec.pattern(), pattern),
        _ => false,
    }
}

impl IndexFilter {
    /// As `planCacheListFilters` shows it.
    pub fn document(&self) -> RawDocumentBuf {
        let mut indexes = RawArrayBuf::new();
        self.indexes.iter().for_each(|index| indexes.push(index.as_raw_bson_ref()));
        let mut document = bson::rawdoc! {
            "query": self.query.clone(), "sort": self.sort.clone(), "projection": self.projection.clone(),
        };
        if let Some(collation) = &self.collation {
            document.append(bson::raw::cstr!("collation"), collation.clone());
        }
        document.append(bson::raw::cstr!("indexes"), indexes);
        document
    }
}
