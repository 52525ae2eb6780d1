//! `{$setIntersection: [array, …]}`: the distinct elements that all arrays have, in BSON order.
//!
//! Null when an argument is null or missing. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/aggregation/setIntersection/>.

use super::operand::{ANY_COUNT, as_array, comparison_over_many, constants_last};
use super::sets::ValueSet;
use super::{Environment, Operator, arguments};
use crate::document::Value;
use crate::error::{Error, Result};
use bson::RawArrayBuf;

pub(super) const OPERATOR: Operator = Operator {
    name: "$setIntersection",
    parse: |argument, parser| {
        Ok(comparison_over_many(
            constants_last(arguments("$setIntersection", argument, ANY_COUNT, parser)?),
            set_intersection,
        ))
    },
};

fn set_intersection<'v>(values: Vec<Value<'v>>, environment: &Environment) -> Result<Value<'v>> {
    let mut sets = Vec::with_capacity(values.len());
    for value in &values {
        if value.is_nullish() {
            return Ok(Value::NULL);
        }
        let Some(array) = as_array(value) else {
            return Err(Error::location(
                17047,
                format!("$setIntersection only takes arrays, not {}", value.type_name()),
            ));
        };
        sets.push(ValueSet::of(array, environment.collator())?);
    }
    let mut common = RawArrayBuf::new();
    if let Some((first, others)) = sets.split_first() {
        'elements: for element in first.elements() {
            for set in others {
                if !set.contains(*element)? {
                    continue 'elements;
                }
            }
            common.push(*element);
        }
    }
    Ok(common.into())
}
