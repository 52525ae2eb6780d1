//! `dbHash`: a digest of each collection's documents, in the order of their `_id`, and of a whole database.

use super::read::Query;
use super::scan::Wanted;
use crate::catalog::Collection;
use crate::context::Context;
use crate::database::{Engine, Inner};
use crate::error::Result;
use crate::keyspace;
use crate::storage::{Direction, View};
use md5::{Digest, Md5};
use std::sync::Arc;

/// The documents between two looks at the operation's interruption.
const DOCUMENTS_BETWEEN_CHECKS: usize = 256;

/// The digests of a database.
#[derive(Clone, Debug, Default)]
pub struct DatabaseDigest {
    /// Each collection with the MD5 of its documents, in hexadecimal.
    pub collections: Vec<(Arc<Collection>, String)>,
    /// The MD5 of all of them.
    pub whole: String,
}

impl Engine {
    /// The digests of a database's collections, of those alone that `wanted` picks by name. Views have none.
    ///
    /// # Errors
    /// A failing storage, an interruption.
    pub fn digest(&self, context: &Context, database: &str, wanted: impl Fn(&str) -> bool) -> Result<DatabaseDigest> {
        context.block(|| {
            let reading = self.inner.reading(context)?;
            let mut digest = DatabaseDigest::default();
            let mut whole = Md5::new();
            let picked =
                |collection: &&Arc<Collection>| !collection.is_view() && wanted(&collection.namespace.collection);
            for collection in reading.catalog.database(database).filter(picked) {
                let of_one = self.inner.digest_collection(context, &*reading.view()?, collection)?;
                whole.update(&of_one);
                digest.collections.push((collection.clone(), of_one));
            }
            digest.whole = hex::encode(whole.finalize());
            Ok(digest)
        })
    }
}

impl Inner {
    fn digest_collection(&self, context: &Context, view: &dyn View, collection: &Collection) -> Result<String> {
        if collection.settings.series.is_some() {
            return self.digest_series(context, view, collection);
        }
        let kind = if collection.settings.clustered { keyspace::RECORDS } else { keyspace::IDS };
        let prefix = keyspace::prefix(kind, collection.id);
        let mut end = None;
        let (from, to) = keyspace::bounds(&prefix, &mut end);
        let mut digest = Md5::new();
        for (number, entry) in view.range(from, to, Direction::Forward)?.enumerate() {
            if number.is_multiple_of(DOCUMENTS_BETWEEN_CHECKS) {
                context.check()?;
            }
            let (_, value) = entry?;
            if collection.settings.clustered {
                digest.update(&value);
            } else if let Some(document) = view.get(&keyspace::record(collection.id, &value))? {
                digest.update(&document);
            }
        }
        Ok(hex::encode(digest.finalize()))
    }

    /// A time series has no order of its own: the sum of its measurements' digests.
    fn digest_series(&self, context: &Context, view: &dyn View, collection: &Collection) -> Result<String> {
        let query = Query::default();
        let parsed = self.parse_query(&query, Some(collection))?;
        let query = self.plan_query(&query, &parsed, Wanted::documents())?;
        let mut rows = crate::plan::plan(&collection.target, &query, view, &self.plans)?.into_execution();
        let (mut sum, mut number) = (0_u128, 0_usize);
        while let Some(row) = rows.next(view)? {
            if number.is_multiple_of(DOCUMENTS_BETWEEN_CHECKS) {
                context.check()?;
            }
            number += 1;
            sum = sum.wrapping_add(u128::from_be_bytes(Md5::digest(row.bytes()).into()));
        }
        Ok(hex::encode(sum.to_be_bytes()))
    }
}
