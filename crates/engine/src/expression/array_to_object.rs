//! `{$arrayToObject: array}`: an object from `[[name, value], …]` or `[{k: name, v: value}, …]`.
//!
//! A name given twice keeps its place and takes the last value. Null when the array is null or missing. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/aggregation/arrayToObject/>.

use super::operand::{as_array, elements, function};
use super::{Environment, Operator};
use crate::document::{Value, append, type_name};
use crate::error::{Error, Result};
use bson::{RawArray, RawBsonRef, RawDocument, RawDocumentBuf};
use std::collections::HashMap;

pub(super) const OPERATOR: Operator = Operator {
    name: "$arrayToObject",
    parse: |argument, parser| function("$arrayToObject", argument, parser, array_to_object),
};

fn array_to_object<'v>([array]: [Value<'v>; 1], _: &Environment) -> Result<Value<'v>> {
    if array.is_nullish() {
        return Ok(Value::NULL);
    }
    let Some(whole) = as_array(&array) else {
        return Err(Error::location(40386, format!("$arrayToObject takes an array, not {}", array.type_name())));
    };
    let mut fields: Vec<(&str, RawBsonRef<'_>)> = Vec::new();
    let mut places = HashMap::new();
    let mut pairs = None;
    for element in elements(whole)? {
        let (name, value) = match element {
            RawBsonRef::Array(pair) if pairs != Some(false) => {
                pairs = Some(true);
                from_pair(pair)?
            }
            RawBsonRef::Document(document) if pairs != Some(true) => {
                pairs = Some(false);
                from_document(document)?
            }
            other => return Err(misplaced(other, pairs)),
        };
        match places.get(name) {
            Some(place) => {
                let field: &mut (&str, RawBsonRef<'_>) = &mut fields[*place];
                field.1 = value;
            }
            None => {
                places.insert(name, fields.len());
                fields.push((name, value));
            }
        }
    }
    let mut object = RawDocumentBuf::new();
    for (name, value) in fields {
        append(&mut object, name, value)?;
    }
    Ok(object.into())
}

fn misplaced(element: RawBsonRef<'_>, pairs: Option<bool>) -> Error {
    let kind = type_name(element);
    match pairs {
        None => Error::location(
            40398,
            format!("$arrayToObject takes arrays [name, value] or objects {{k, v}} as elements, not {kind}"),
        ),
        Some(true) => Error::location(
            40396,
            format!("$arrayToObject began with arrays [name, value]: all elements must be such, but found {kind}"),
        ),
        Some(false) => Error::location(
            40391,
            format!("$arrayToObject began with objects {{k, v}}: all elements must be such, but found {kind}"),
        ),
    }
}

fn from_pair(pair: &RawArray) -> Result<(&str, RawBsonRef<'_>)> {
    let parts = elements(pair)?;
    let [name, value] = parts[..] else {
        return Err(Error::location(
            40397,
            format!("$arrayToObject takes arrays of 2 elements, not of {}", parts.len()),
        ));
    };
    let RawBsonRef::String(name) = name else {
        return Err(Error::location(
            40395,
            format!("$arrayToObject takes a string as the name of a field, not {}", type_name(name)),
        ));
    };
    Ok((without_null_byte(name, 4_940_400)?, value))
}

fn from_document(document: &RawDocument) -> Result<(&str, RawBsonRef<'_>)> {
    let (mut name, mut value, mut count) = (None, None, 0);
    for field in document {
        let (key, content) = field?;
        count += 1;
        match key.as_str() {
            "k" => name = Some(content),
            "v" => value = Some(content),
            _ => {}
        }
    }
    if count != 2 {
        return Err(Error::location(
            40392,
            format!("$arrayToObject takes objects with the two fields 'k' and 'v', not with {count}"),
        ));
    }
    let (Some(name), Some(value)) = (name, value) else {
        return Err(Error::location(40393, "$arrayToObject takes objects with the fields 'k' and 'v' only"));
    };
    let RawBsonRef::String(name) = name else {
        return Err(Error::location(40394, format!("$arrayToObject takes a string as 'k', not {}", type_name(name))));
    };
    Ok((without_null_byte(name, 4_940_401)?, value))
}

fn without_null_byte(name: &str, code: i32) -> Result<&str> {
    if name.contains('\0') {
        return Err(Error::location(code, "the name of a field may not hold a null byte"));
    }
    Ok(name)
}
