//! `count`.

use super::read::Query;
use super::scan::Wanted;
use crate::context::Context;
use crate::database::{Engine, Inner};
use crate::error::Result;
use crate::namespace::Namespace;
use crate::plan::Purpose;
use crate::series::listing::series_of_buckets;
use std::sync::Arc;

/// What to count.
#[derive(Clone, Debug)]
pub struct Count {
    /// Where.
    pub namespace: Namespace,
    /// Which documents; skip and limit are applied to the count.
    pub query: Query,
}

impl Engine {
    /// How many documents match. Without a filter it is read from the collection's totals.
    ///
    /// # Errors
    /// An invalid query, a failing storage, an interruption.
    pub fn count(&self, context: &Context, count: &Count) -> Result<u64> {
        self.inner.count(context, count)
    }
}

impl Inner {
    fn count(self: &Arc<Inner>, context: &Context, count: &Count) -> Result<u64> {
        let reading = self.reading(context)?;
        let collection = reading.catalog.get(&count.namespace);
        let parsed = self.parse_query(&count.query, collection.map(|collection| &**collection))?;
        let Some(collection) = collection else {
            return match series_of_buckets(&reading.catalog, &count.namespace) {
                Some(_) => self.count_view(context, count),
                None => Ok(0),
            };
        };
        let most = if count.query.limit == 0 { u64::MAX } else { count.query.limit };
        if collection.is_view() {
            return self.count_view(context, count);
        }
        if count.query.filter.is_empty() && count.query.hint.is_none() && context.transaction().is_none() {
            let total = self.totals(&*reading.view()?, collection.id)?.count.max(0) as u64;
            return Ok(total.saturating_sub(count.query.skip).min(most));
        }
        let wanted = Wanted { purpose: Purpose::Count, ..Wanted::bounded() };
        let query = self.plan_query(&count.query, &parsed, wanted)?;
        let mut rows = self.planned(&reading, collection, &query, context)?;
        context.block(|| {
            let mut counted = 0_u64;
            rows.each(&mut |_| {
                counted += 1;
                Ok(())
            })?;
            Ok(counted)
        })
    }
}
