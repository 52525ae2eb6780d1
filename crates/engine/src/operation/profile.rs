//! Entries of the profiler: `system.profile`, a capped collection of each database that is profiled.

use crate::context::Context;
use crate::database::{Engine, Written};
use crate::document::validated;
use crate::error::Result;
use crate::namespace::Namespace;
use bson::{RawDocumentBuf, rawdoc};

/// The name of the collection.
pub const PROFILE_COLLECTION: &str = "system.profile";

/// The bytes that it holds unless somebody created it otherwise.
const PROFILE_BYTES: i64 = 1 << 20;

impl Engine {
    /// Adds entries to a database's `system.profile`, which is created capped if it isn't there.
    ///
    /// # Errors
    /// A failing storage, entries that are too large.
    pub fn profile(&self, database: &str, entries: &[RawDocumentBuf]) -> Result<Written<()>> {
        let namespace = Namespace { database: database.to_owned(), collection: PROFILE_COLLECTION.to_owned() };
        let entries = entries.iter().cloned().map(validated).collect::<Result<Vec<_>>>()?;
        self.inner.write(&Context::default(), |statement| {
            if statement.catalog.get(&namespace).is_none() {
                statement.create_collection(&namespace, rawdoc! { "capped": true, "size": PROFILE_BYTES })?;
            }
            let collection = statement.catalog.require(&namespace)?.clone();
            entries.iter().try_for_each(|entry| statement.insert(&collection, entry.clone()))
        })
    }
}
