//! `planCacheClear`, which forgets remembered plans, and the commands on index filters.

use super::Find;
use crate::catalog::Collection;
use crate::context::Context;
use crate::database::Engine;
use crate::error::{Code, Error, Result};
use crate::namespace::Namespace;
use crate::plan::{self, IndexFilter};
use bson::{RawBson, RawDocumentBuf};
use std::sync::Arc;

impl Engine {
    /// Forgets the plans of a collection; with a query, of its shape alone. A collection that does not exist has none.
    ///
    /// # Errors
    /// `CommandNotSupportedOnView` (166), an invalid query.
    pub fn clear_plans(&self, context: &Context, namespace: &Namespace, shape: Option<&Find>) -> Result<()> {
        let Some(collection) = self.planned_collection(context, namespace)? else { return Ok(()) };
        match shape {
            None => self.inner.plans.clear(collection.id),
            Some(find) => self.inner.plans.forget(collection.id, &self.planner_query(find, &collection)?),
        }
        Ok(())
    }

    /// Says which indexes queries of a shape may use, by names or key patterns, until the engine is closed.
    ///
    /// # Errors
    /// `BadValue` (2) when there is no such collection, `CommandNotSupportedOnView` (166), an invalid query.
    pub fn set_index_filter(&self, context: &Context, shape: &Find, indexes: Vec<RawBson>) -> Result<()> {
        let Some(collection) = self.planned_collection(context, &shape.namespace)? else {
            return Err(Error::bad_value(format!("no such collection: {}", shape.namespace)));
        };
        let query = self.planner_query(shape, &collection)?;
        let filter = IndexFilter {
            query: shape.query.filter.clone(),
            sort: shape.query.sort.clone().unwrap_or_default(),
            projection: shape.projection.clone().unwrap_or_default(),
            collation: query.filter.collator().map(|collator| collator.spec().to_owned()),
            indexes,
        };
        self.inner.plans.set_filter(collection.id, &query, filter)
    }

    /// The index filters of a collection, as documents. A collection that does not exist has none.
    ///
    /// # Errors
    /// `CommandNotSupportedOnView` (166).
    pub fn index_filters(&self, context: &Context, namespace: &Namespace) -> Result<Vec<RawDocumentBuf>> {
        let Some(collection) = self.planned_collection(context, namespace)? else { return Ok(Vec::new()) };
        Ok(self.inner.plans.filters(collection.id).iter().map(|filter| filter.document()).collect())
    }

    /// Removes the index filters of a collection; with a query, that of its shape alone.
    ///
    /// # Errors
    /// `CommandNotSupportedOnView` (166), an invalid query.
    pub fn clear_index_filters(&self, context: &Context, namespace: &Namespace, shape: Option<&Find>) -> Result<()> {
        let Some(collection) = self.planned_collection(context, namespace)? else { return Ok(()) };
        let query = shape.map(|find| self.planner_query(find, &collection)).transpose()?;
        self.inner.plans.clear_filters(collection.id, query.as_ref());
        Ok(())
    }

    fn planned_collection(&self, context: &Context, namespace: &Namespace) -> Result<Option<Arc<Collection>>> {
        let reading = self.inner.reading(context)?;
        let Some(collection) = reading.catalog.get(namespace) else { return Ok(None) };
        if collection.is_view() || collection.settings.time_series.is_some() {
            let message = format!("Namespace {namespace} is a view, not a collection");
            return Err(Error::new(Code::COMMAND_NOT_SUPPORTED_ON_VIEW, message));
        }
        Ok(Some(collection.clone()))
    }

    fn planner_query(&self, find: &Find, collection: &Arc<Collection>) -> Result<plan::Query> {
        let parsed = self.inner.parse_query(&find.query, Some(collection))?;
        self.inner.find_query(find, parsed)
    }
}
