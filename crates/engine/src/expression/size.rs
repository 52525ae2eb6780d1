//! `{$size: array}`: how many elements an array has.
//!
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/aggregation/size/>.

use super::operand::{as_array, count, function};
use super::{Environment, Operator};
use crate::document::Value;
use crate::error::{Error, Result};

pub(super) const OPERATOR: Operator =
    Operator { name: "$size", parse: |argument, parser| function("$size", argument, parser, size) };

fn size<'v>([array]: [Value<'v>; 1], _: &Environment) -> Result<Value<'v>> {
    match as_array(&array) {
        Some(array) => Ok(count(array.iter_elements().count())),
        None => Err(Error::location(17124, format!("$size takes an array, not {}", array.type_name()))),
    }
}
