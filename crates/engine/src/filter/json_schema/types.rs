//! The keywords `type` (JSON's types) and `bsonType` (BSON's).

use super::parser::{Source, names};
use super::{Keyword, specified, type_failure};
use crate::error::{Error, Result};
use crate::filter::r#type::TypeSet;
use bson::{RawBsonRef, RawDocumentBuf};

#[derive(Debug)]
struct Type {
    name: &'static str,
    specified: RawDocumentBuf,
    types: TypeSet,
}

pub(super) fn parse(source: &Source<'_>, keywords: &mut Vec<Box<dyn Keyword>>) -> Result<()> {
    let (json, bson) = (source.get("type")?, source.get("bsonType")?);
    if json.is_some() && bson.is_some() {
        return Err(Error::failed_to_parse("Cannot specify both $jsonSchema keywords 'type' and 'bsonType'"));
    }
    for (name, value) in [("type", json), ("bsonType", bson)] {
        let Some(value) = value else { continue };
        let aliases = match value {
            RawBsonRef::String(alias) => vec![alias.to_owned()],
            RawBsonRef::Array(array) => names(name, array)?,
            _ => {
                return Err(Error::type_mismatch(format!(
                    "$jsonSchema keyword '{name}' must be either a string or an array of strings"
                )));
            }
        };
        let mut types = TypeSet::default();
        for alias in &aliases {
            types.add_alias(translated(name, alias)?)?;
        }
        keywords.push(Box::new(Type { name, specified: specified(name, value), types }));
    }
    Ok(())
}

/// The alias that `$type` knows.
fn translated<'a>(keyword: &str, alias: &'a str) -> Result<&'a str> {
    if alias == "integer" {
        return Err(Error::failed_to_parse(
            "$jsonSchema type 'integer' is not currently supported: use bsonType 'int' or 'long', or 'number'",
        ));
    }
    if keyword == "bsonType" {
        return Ok(alias);
    }
    match alias {
        "boolean" => Ok("bool"),
        "array" | "number" | "null" | "object" | "string" => Ok(alias),
        _ => Err(Error::bad_value(format!("Unknown type name alias: {alias}"))),
    }
}

impl Keyword for Type {
    fn holds(&self, value: RawBsonRef<'_>) -> Result<bool> {
        Ok(self.types.holds(value))
    }

    fn explain(&self, value: RawBsonRef<'_>) -> Result<RawDocumentBuf> {
        Ok(type_failure(self.name, &self.specified, value))
    }
}
