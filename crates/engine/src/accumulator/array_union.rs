//! `$concatArrays`: the elements of all arrays; `$setUnion`: the distinct ones of them. Missing values are passed over,
//! others that are no arrays refused.
//!
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/aggregation/concatArrays/> and
//! <https://www.mongodb.com/docs/manual/reference/operator/aggregation/setUnion/>.

use super::add_to_set::Distinct;
use super::{Accumulator, Options, array_of, kept, kept_bytes};
use crate::document::Value;
use crate::error::{Error, Result};
use bson::{RawArray, RawBson, RawBsonRef};

pub(super) fn start_concat(_: &Options) -> Box<dyn Accumulator> {
    Box::new(ConcatArrays { elements: Vec::new(), bytes: 0 })
}

pub(super) fn start_union(options: &Options) -> Box<dyn Accumulator> {
    Box::new(SetUnion { distinct: Distinct::new(options.collator.clone()) })
}

fn array<'v>(name: &str, value: &'v Value<'_>) -> Result<Option<&'v RawArray>> {
    match value.get() {
        None => Ok(None),
        Some(RawBsonRef::Array(array)) => Ok(Some(array)),
        Some(_) => Err(Error::type_mismatch(format!("{name} only takes arrays, not {}", value.type_name()))),
    }
}

#[derive(Debug)]
struct ConcatArrays {
    elements: Vec<RawBson>,
    bytes: usize,
}

impl Accumulator for ConcatArrays {
    fn add(&mut self, value: Value<'_>) -> Result<()> {
        if let Some(array) = array("$concatArrays", &value)? {
            for element in array {
                let element = kept(Value::Borrowed(element?));
                self.bytes += kept_bytes(&element);
                self.elements.push(element);
            }
        }
        Ok(())
    }

    fn result(&self) -> Result<Value<'static>> {
        Ok(array_of(self.elements.iter().map(RawBson::as_raw_bson_ref)))
    }

    fn size_bytes(&self) -> usize {
        size_of::<ConcatArrays>() + self.bytes
    }
}

#[derive(Debug)]
struct SetUnion {
    distinct: Distinct,
}

impl Accumulator for SetUnion {
    fn add(&mut self, value: Value<'_>) -> Result<()> {
        if let Some(array) = array("$setUnion", &value)? {
            for element in array {
                self.distinct.add(element?)?;
            }
        }
        Ok(())
    }

    fn result(&self) -> Result<Value<'static>> {
        Ok(self.distinct.to_array())
    }

    fn size_bytes(&self) -> usize {
        size_of::<SetUnion>() + self.distinct.size_bytes()
    }
}
