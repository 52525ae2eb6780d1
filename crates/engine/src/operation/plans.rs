//! `planCacheClear`: forgets remembered plans.

use super::Find;
use crate::context::Context;
use crate::database::Engine;
use crate::error::{Code, Error, Result};
use crate::namespace::Namespace;

impl Engine {
    /// Forgets the plans of a collection; with a query, of its shape alone. A collection that does not exist has none.
    ///
    /// # Errors
    /// `CommandNotSupportedOnView` (166), an invalid query.
    pub fn clear_plans(&self, context: &Context, namespace: &Namespace, shape: Option<&Find>) -> Result<()> {
        let reading = self.inner.reading(context)?;
        let Some(collection) = reading.catalog.get(namespace) else { return Ok(()) };
        if collection.is_view() || collection.settings.time_series.is_some() {
            let message = format!("Namespace {namespace} is a view, not a collection");
            return Err(Error::new(Code::COMMAND_NOT_SUPPORTED_ON_VIEW, message));
        }
        let Some(find) = shape else {
            self.inner.plans.clear(collection.id);
            return Ok(());
        };
        let parsed = self.inner.parse_query(&find.query, Some(collection))?;
        let query = self.inner.find_query(find, parsed)?;
        self.inner.plans.forget(collection.id, &query);
        Ok(())
    }
}
