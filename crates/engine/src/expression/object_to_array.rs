//! `{$objectToArray: object}`: the fields of an object as `[{k: name, v: value}, …]`.
//!
//! Null when the object is null or missing. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/aggregation/objectToArray/>.

use super::operand::function;
use super::{Environment, Operator};
use crate::document::{Value, append};
use crate::error::{Error, Result};
use bson::{RawArrayBuf, RawBsonRef, RawDocumentBuf};

pub(super) const OPERATOR: Operator = Operator {
    name: "$objectToArray",
    parse: |argument, parser| function("$objectToArray", argument, parser, object_to_array),
};

fn object_to_array<'v>([object]: [Value<'v>; 1], _: &Environment) -> Result<Value<'v>> {
    let document = match object.get() {
        None | Some(RawBsonRef::Null | RawBsonRef::Undefined) => return Ok(Value::NULL),
        Some(RawBsonRef::Document(document)) => document,
        Some(_) => {
            return Err(Error::location(40390, format!("$objectToArray takes an object, not {}", object.type_name())));
        }
    };
    let mut fields = RawArrayBuf::new();
    for field in document {
        let (name, value) = field?;
        let mut entry = RawDocumentBuf::new();
        append(&mut entry, "k", RawBsonRef::String(name.as_str()))?;
        append(&mut entry, "v", value)?;
        fields.push(entry);
    }
    Ok(fields.into())
}
