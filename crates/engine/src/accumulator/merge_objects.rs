//! `$mergeObjects`: objects merged field by field, later ones over earlier ones; null and missing are passed over.
//!
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/aggregation/mergeObjects/>.

use super::{Accumulator, Options};
use crate::document::{Value, append};
use crate::error::{Error, Result};
use bson::{RawBsonRef, RawDocument, RawDocumentBuf};
use std::collections::HashMap;

pub(super) fn start(_: &Options) -> Box<dyn Accumulator> {
    Box::new(MergeObjects { merged: RawDocumentBuf::new() })
}

#[derive(Debug)]
struct MergeObjects {
    merged: RawDocumentBuf,
}

impl Accumulator for MergeObjects {
    fn add(&mut self, value: Value<'_>) -> Result<()> {
        match value.get() {
            None | Some(RawBsonRef::Null | RawBsonRef::Undefined) => Ok(()),
            Some(RawBsonRef::Document(document)) => {
                self.merged = merge(&self.merged, document)?;
                Ok(())
            }
            Some(_) => {
                Err(Error::location(5_911_200, format!("$mergeObjects only takes objects, not {}", value.type_name())))
            }
        }
    }

    fn result(&self) -> Result<Value<'static>> {
        Ok(self.merged.clone().into())
    }

    fn size_bytes(&self) -> usize {
        self.merged.as_bytes().len()
    }
}

/// Two documents as one: a field of both keeps its place and takes the second one's value.
///
/// # Errors
/// `InvalidBSON` (22) when the bytes are malformed.
pub fn merge(first: &RawDocument, second: &RawDocument) -> Result<RawDocumentBuf> {
    if first.is_empty() {
        return Ok(second.to_owned());
    }
    let mut newer = HashMap::new();
    for field in second {
        let (name, value) = field?;
        newer.insert(name.as_str(), value);
    }
    let mut merged = RawDocumentBuf::new();
    for field in first {
        let (name, value) = field?;
        append(&mut merged, name.as_str(), newer.remove(name.as_str()).unwrap_or(value))?;
    }
    for field in second {
        let (name, _) = field?;
        if let Some(value) = newer.remove(name.as_str()) {
            append(&mut merged, name.as_str(), value)?;
        }
    }
    Ok(merged)
}
