//! `{$mergeObjects: [object, …]}`: objects merged field by field, later ones over earlier ones.
//!
//! A single argument may be an array of objects. Null and missing ones are passed over. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/aggregation/mergeObjects/>.

use super::operand::{ANY_COUNT, as_array, elements, variadic};
use super::{Environment, Operator};
use crate::accumulator::merge_objects::merge;
use crate::document::Value;
use crate::error::{Error, Result};
use bson::{RawBsonRef, RawDocumentBuf};

pub(super) const OPERATOR: Operator = Operator {
    name: "$mergeObjects",
    parse: |argument, parser| variadic("$mergeObjects", argument, ANY_COUNT, parser, merge_objects),
};

fn merge_objects<'v>(values: Vec<Value<'v>>, _: &Environment) -> Result<Value<'v>> {
    let mut merged = RawDocumentBuf::new();
    let values: Vec<Value<'_>> = match &values[..] {
        [single] if as_array(single).is_some() => {
            let array = as_array(single).expect("just seen to be one");
            elements(array)?.into_iter().map(Value::Borrowed).collect()
        }
        several => several.iter().map(Value::borrow).collect(),
    };
    for value in &values {
        match value.get() {
            None | Some(RawBsonRef::Null | RawBsonRef::Undefined) => {}
            Some(RawBsonRef::Document(document)) => merged = merge(&merged, document)?,
            Some(_) => {
                return Err(Error::location(
                    40400,
                    format!("$mergeObjects only takes objects, not {}", value.type_name()),
                ));
            }
        }
    }
    Ok(merged.into())
}
