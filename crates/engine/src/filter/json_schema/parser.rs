//! From a schema's BSON to its keywords; everything that is no valid schema is refused here.

use super::{Schema, array, logical, object, scalar, types};
use crate::document::number::exact_i64;
use crate::document::{get, type_name};
use crate::error::{Error, Result};
use bson::{RawArray, RawBsonRef, RawDocument};

/// The keywords that are understood.
const KNOWN: &[&str] = &[
    "additionalItems",
    "additionalProperties",
    "allOf",
    "anyOf",
    "bsonType",
    "dependencies",
    "description",
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "items",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "not",
    "oneOf",
    "pattern",
    "patternProperties",
    "properties",
    "required",
    "title",
    "type",
    "uniqueItems",
];

/// Keywords of JSON schema that are refused by name.
const UNSUPPORTED: &[&str] =
    &["$ref", "$schema", "default", "definitions", "format", "id", "encrypt", "encryptMetadata"];

pub(super) fn parse(document: &RawDocument) -> Result<Schema> {
    for field in document {
        let name = field?.0.as_str();
        if UNSUPPORTED.contains(&name) {
            return Err(Error::failed_to_parse(format!("$jsonSchema keyword '{name}' is not currently supported")));
        }
        if !KNOWN.contains(&name) {
            return Err(Error::failed_to_parse(format!("Unknown $jsonSchema keyword: {name}")));
        }
    }
    let source = Source { document };
    let mut keywords = Vec::new();
    scalar::parse(&source, &mut keywords)?;
    array::parse(&source, &mut keywords)?;
    object::parse(&source, &mut keywords)?;
    logical::parse(&source, &mut keywords)?;
    types::parse(&source, &mut keywords)?;
    Ok(Schema {
        keywords,
        title: source.string("title")?.map(str::to_owned),
        description: source.string("description")?.map(str::to_owned),
    })
}

/// A schema's document, read keyword by keyword.
pub(super) struct Source<'a> {
    document: &'a RawDocument,
}

fn mismatch(name: &str, expected: &str, value: RawBsonRef<'_>) -> Error {
    Error::type_mismatch(format!(
        "$jsonSchema keyword '{name}' must be {expected}, but is of type {}",
        type_name(value)
    ))
}

impl<'a> Source<'a> {
    /// The keyword's value.
    pub(super) fn get(&self, name: &str) -> Result<Option<RawBsonRef<'a>>> {
        get(self.document, name)
    }

    pub(super) fn string(&self, name: &str) -> Result<Option<&'a str>> {
        match self.get(name)? {
            None => Ok(None),
            Some(RawBsonRef::String(text)) => Ok(Some(text)),
            Some(other) => Err(mismatch(name, "a string", other)),
        }
    }

    pub(super) fn boolean(&self, name: &str) -> Result<Option<bool>> {
        match self.get(name)? {
            None => Ok(None),
            Some(RawBsonRef::Boolean(value)) => Ok(Some(value)),
            Some(other) => Err(mismatch(name, "a boolean", other)),
        }
    }

    pub(super) fn number(&self, name: &str) -> Result<Option<RawBsonRef<'a>>> {
        match self.get(name)? {
            None => Ok(None),
            Some(value) if crate::document::number::Number::of(value).is_some() => Ok(Some(value)),
            Some(other) => Err(mismatch(name, "a number", other)),
        }
    }

    /// A count: a whole number that is not negative.
    pub(super) fn count(&self, name: &str) -> Result<Option<u64>> {
        let Some(value) = self.get(name)? else { return Ok(None) };
        let count = exact_i64(value).and_then(|count| u64::try_from(count).ok());
        count.map(Some).ok_or_else(|| {
            Error::failed_to_parse(format!(
                "$jsonSchema keyword '{name}' must be a non-negative whole number of 64 bits"
            ))
        })
    }

    pub(super) fn object(&self, name: &str) -> Result<Option<&'a RawDocument>> {
        match self.get(name)? {
            None => Ok(None),
            Some(RawBsonRef::Document(document)) => Ok(Some(document)),
            Some(other) => Err(mismatch(name, "an object", other)),
        }
    }

    pub(super) fn array(&self, name: &str) -> Result<Option<&'a RawArray>> {
        match self.get(name)? {
            None => Ok(None),
            Some(RawBsonRef::Array(array)) => Ok(Some(array)),
            Some(other) => Err(mismatch(name, "an array", other)),
        }
    }
}

/// A schema as a value within a keyword.
pub(super) fn schema(name: &str, value: RawBsonRef<'_>) -> Result<Schema> {
    match value {
        RawBsonRef::Document(document) => Schema::parse(document),
        other => Err(mismatch(name, "made of objects", other)),
    }
}

/// A list of names: not empty, strings only, none twice.
pub(super) fn names(keyword: &str, array: &RawArray) -> Result<Vec<String>> {
    let mut names: Vec<String> = Vec::new();
    for element in array {
        let RawBsonRef::String(name) = element? else {
            return Err(Error::type_mismatch(format!("$jsonSchema keyword '{keyword}' must be an array of strings")));
        };
        if names.iter().any(|known| known == name) {
            return Err(Error::failed_to_parse(format!("$jsonSchema keyword '{keyword}' holds '{name}' twice")));
        }
        names.push(name.to_owned());
    }
    if names.is_empty() {
        return Err(Error::failed_to_parse(format!("$jsonSchema keyword '{keyword}' must be a nonempty array")));
    }
    Ok(names)
}
