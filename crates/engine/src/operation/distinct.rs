//! `distinct`: the different values of a field.

use super::read::Query;
use super::scan::Wanted;
use crate::context::Context;
use crate::cursor::MAX_BATCH_BYTES;
use crate::database::{Engine, Inner};
use crate::document::traverse::{Leaf, visit};
use crate::error::{Error, Result};
use crate::key;
use crate::namespace::Namespace;
use crate::plan::Purpose;
use bson::{RawArrayBuf, RawBson};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

/// Which field of which documents.
#[derive(Clone, Debug)]
pub struct Distinct {
    /// Where.
    pub namespace: Namespace,
    /// The field's path.
    pub key: String,
    /// Which documents.
    pub query: Query,
}

impl Engine {
    /// The different values of a field in the documents that match, an array's elements each for itself.
    ///
    /// # Errors
    /// An invalid query, a failing storage, `Location17217` when the values exceed 16 MiB.
    pub fn distinct(&self, context: &Context, distinct: &Distinct) -> Result<RawArrayBuf> {
        self.inner.distinct(context, distinct)
    }
}

impl Inner {
    fn distinct(self: &Arc<Inner>, context: &Context, distinct: &Distinct) -> Result<RawArrayBuf> {
        let reading = self.reading(context)?;
        let collection = reading.catalog.get(&distinct.namespace);
        let parsed = self.parse_query(&distinct.query, collection.map(|collection| &**collection))?;
        let mut values = RawArrayBuf::new();
        let Some(collection) = collection else { return Ok(values) };
        let mut rows = if collection.is_view() {
            self.distinct_rows_of_view(context, distinct)?
        } else {
            let wanted = Wanted {
                needed: Some([distinct.key.clone()].into()),
                purpose: Purpose::Distinct(distinct.key.clone()),
                ..Wanted::documents()
            };
            let query = self.plan_query(&distinct.query, &parsed, wanted)?;
            self.planned(&reading, collection, &query, context)?
        };
        context.block(|| {
            let mut seen: BTreeMap<Vec<u8>, RawBson> = BTreeMap::new();
            let mut bytes = 0;
            let mut number = 0_u64;
            while let Some(row) = rows.next()? {
                if number.is_multiple_of(256) {
                    context.check()?;
                }
                number += 1;
                visit(row.document(), &distinct.key, Leaf::Elements, &mut |value, _| {
                    if let Some(value) = value {
                        let mut encoded = Vec::new();
                        key::encode(value, parsed.collator.as_deref(), &mut encoded)?;
                        if let Entry::Vacant(fresh) = seen.entry(encoded) {
                            bytes += fresh.key().len();
                            fresh.insert(value.into());
                        }
                    }
                    Ok(false)
                })?;
                if bytes > MAX_BATCH_BYTES {
                    return Err(Error::location(17217, "distinct too big, 16mb cap"));
                }
            }
            seen.values().for_each(|value| values.push(value.as_raw_bson_ref()));
            Ok(values)
        })
    }
}
