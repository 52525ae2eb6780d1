//! Plans that won a trial, remembered by the query's shape.
//!
//! An entry says which plan won and how much work it took. It is dropped when the collection's indexes change, and when
//! the plan turns bad: when it takes ten times the work that it took in its trial.

use super::filters::{IndexFilter, IndexFilters};
use super::{Query, Target};
use crate::error::Result;
use bson::RawDocumentBuf;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

/// The most plans remembered; when there are more, all are forgotten.
const MAX_PLANS: usize = 5000;

/// How many times the remembered work makes a plan a bad one.
pub(super) const REPLAN_FACTOR: u64 = 10;

/// Remembered plans of all collections.
#[derive(Debug, Default)]
pub struct PlanCache {
    filters: IndexFilters,
    plans: Mutex<HashMap<(u32, String), Remembered>>,
}

/// A plan that won.
#[derive(Clone, Debug)]
pub(super) struct Remembered {
    /// What tells it apart from the other plans of the query.
    pub(super) signature: String,
    /// The steps of its trial.
    pub(super) works: u64,
    /// The indexes there were.
    pub(super) indexes: Vec<u32>,
    /// What `$planCacheStats` shows of it.
    pub(super) shown: Arc<RawDocumentBuf>,
}

impl PlanCache {
    /// An empty cache.
    pub fn new() -> PlanCache {
        PlanCache::default()
    }

    /// Forgets a collection's plans.
    pub fn clear(&self, collection: u32) {
        self.plans.lock().retain(|(other, _), _| *other != collection);
    }

    /// Forgets the plans of a query's shape.
    pub fn forget(&self, collection: u32, query: &Query) {
        self.plans.lock().remove(&(collection, super::shape::shape(query)));
    }

    /// Says which indexes queries of a shape may use.
    ///
    /// # Errors
    /// `OperationFailed` (96) when the collection has too many filters.
    pub fn set_filter(&self, collection: u32, query: &Query, filter: IndexFilter) -> Result<()> {
        self.filters.set(collection, query, filter)?;
        self.forget(collection, query);
        Ok(())
    }

    /// The index filters of a collection.
    pub fn filters(&self, collection: u32) -> Vec<Arc<IndexFilter>> {
        self.filters.list(collection)
    }

    /// Removes the index filter of a query's shape, or all of a collection.
    pub fn clear_filters(&self, collection: u32, query: Option<&Query>) {
        self.filters.clear(collection, query);
    }

    /// The index filter that a query falls under.
    pub(super) fn filter_of(&self, target: &Target, query: &Query) -> Option<Arc<IndexFilter>> {
        self.filters.of(target.collection, query)
    }

    /// What there is to say about the remembered plans of a collection.
    pub fn rows(&self, collection: u32) -> Vec<RawDocumentBuf> {
        let plans = self.plans.lock();
        let of_collection = plans.iter().filter(|((other, _), _)| *other == collection);
        of_collection.map(|(_, remembered)| RawDocumentBuf::clone(&remembered.shown)).collect()
    }

    /// How many plans are remembered.
    pub fn len(&self) -> usize {
        self.plans.lock().len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) fn get(&self, target: &Target, shape: &str) -> Option<Remembered> {
        let mut plans = self.plans.lock();
        let key = (target.collection, shape.to_owned());
        let found = plans.get(&key)?;
        if found.indexes == usable(target) {
            return Some(found.clone());
        }
        plans.remove(&key);
        None
    }

    pub(super) fn put(&self, target: &Target, shape: &str, signature: String, works: u64, shown: RawDocumentBuf) {
        let mut plans = self.plans.lock();
        if plans.len() >= MAX_PLANS {
            plans.clear();
        }
        let remembered = Remembered { signature, works, indexes: usable(target), shown: Arc::new(shown) };
        plans.insert((target.collection, shape.to_owned()), remembered);
    }

    pub(super) fn remove(&self, target: &Target, shape: &str) {
        self.plans.lock().remove(&(target.collection, shape.to_owned()));
    }
}

fn usable(target: &Target) -> Vec<u32> {
    target.indexes.iter().filter(|index| !index.spec.hidden()).map(|index| index.id).collect()
}
