//! `$addToSet`: the distinct values in an array, in the order of their first coming; missing ones are passed over.
//!
//! Numbers count as one kind, so that `1` and `1.0` are the same value. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/aggregation/addToSet/>.

use super::{Accumulator, Options, array_of, kept, kept_bytes};
use crate::document::Value;
use crate::document::collation::Collator;
use crate::error::Result;
use crate::key;
use bson::{RawBson, RawBsonRef};
use std::collections::HashSet;
use std::sync::Arc;

pub(super) fn start(options: &Options) -> Box<dyn Accumulator> {
    Box::new(AddToSet { distinct: Distinct::new(options.collator.clone()) })
}

/// Distinct values in the order of their first coming.
#[derive(Debug)]
pub(super) struct Distinct {
    keys: HashSet<Vec<u8>>,
    values: Vec<RawBson>,
    bytes: usize,
    collator: Option<Arc<Collator>>,
}

impl Distinct {
    pub(super) fn new(collator: Option<Arc<Collator>>) -> Distinct {
        Distinct { keys: HashSet::new(), values: Vec::new(), bytes: 0, collator }
    }

    /// Takes a value unless an equal one is in.
    pub(super) fn add(&mut self, value: RawBsonRef<'_>) -> Result<()> {
        let mut key = Vec::new();
        key::encode(value, self.collator.as_deref(), &mut key)?;
        let key_bytes = key.len();
        if self.keys.insert(key) {
            let value = kept(Value::Borrowed(value));
            self.bytes += key_bytes + kept_bytes(&value);
            self.values.push(value);
        }
        Ok(())
    }

    pub(super) fn to_array(&self) -> Value<'static> {
        array_of(self.values.iter().map(RawBson::as_raw_bson_ref))
    }

    pub(super) fn size_bytes(&self) -> usize {
        self.bytes
    }
}

#[derive(Debug)]
struct AddToSet {
    distinct: Distinct,
}

impl Accumulator for AddToSet {
    fn add(&mut self, value: Value<'_>) -> Result<()> {
        value.get().map_or(Ok(()), |value| self.distinct.add(value))
    }

    fn result(&self) -> Result<Value<'static>> {
        Ok(self.distinct.to_array())
    }

    fn size_bytes(&self) -> usize {
        size_of::<AddToSet>() + self.distinct.size_bytes()
    }
}
