//! The keywords that combine schemas, and `enum`: `allOf`, `anyOf`, `oneOf`, `not`, `enum`.

use super::parser::{Source, schema};
use super::{Keyword, Schema, equal_unordered, failure, specified};
use crate::error::{Error, Result};
use bson::{RawArrayBuf, RawBson, RawBsonRef, RawDocumentBuf, rawdoc};

pub(super) fn parse(source: &Source<'_>, keywords: &mut Vec<Box<dyn Keyword>>) -> Result<()> {
    for (name, rule) in [("allOf", Rule::All), ("anyOf", Rule::Any), ("oneOf", Rule::One)] {
        let Some(array) = source.array(name)? else { continue };
        let schemas = array.into_iter().map(|element| schema(name, element?)).collect::<Result<Vec<_>>>()?;
        if schemas.is_empty() {
            return Err(Error::failed_to_parse(format!("$jsonSchema keyword '{name}' must be a nonempty array")));
        }
        keywords.push(Box::new(Combined { name, rule, schemas }));
    }
    if let Some(document) = source.object("not")? {
        keywords.push(Box::new(Not { schema: Schema::parse(document)? }));
    }
    if let Some(array) = source.array("enum")? {
        let mut values: Vec<RawBson> = Vec::new();
        for element in array {
            let element = element?;
            for known in &values {
                if equal_unordered(known.as_raw_bson_ref(), element)? {
                    return Err(Error::failed_to_parse("$jsonSchema keyword 'enum' holds a value twice"));
                }
            }
            values.push(element.into());
        }
        if values.is_empty() {
            return Err(Error::failed_to_parse("$jsonSchema keyword 'enum' must be a nonempty array"));
        }
        keywords.push(Box::new(Enum { values, specified: specified("enum", RawBsonRef::Array(array)) }));
    }
    Ok(())
}

/// How many of the schemas must hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    All,
    Any,
    One,
}

#[derive(Debug)]
struct Combined {
    name: &'static str,
    rule: Rule,
    schemas: Vec<Schema>,
}

impl Combined {
    fn holding(&self, value: RawBsonRef<'_>) -> Result<Vec<bool>> {
        self.schemas.iter().map(|schema| schema.holds(value)).collect()
    }
}

impl Keyword for Combined {
    fn holds(&self, value: RawBsonRef<'_>) -> Result<bool> {
        let holding = self.holding(value)?;
        Ok(match self.rule {
            Rule::All => holding.iter().all(|holds| *holds),
            Rule::Any => holding.iter().any(|holds| *holds),
            Rule::One => holding.iter().filter(|holds| **holds).count() == 1,
        })
    }

    fn explain(&self, value: RawBsonRef<'_>) -> Result<RawDocumentBuf> {
        let holding = self.holding(value)?;
        let index = |position| i32::try_from(position).expect("a document is below 2 GiB");
        if self.rule == Rule::One && holding.iter().any(|holds| *holds) {
            let mut matching = RawArrayBuf::new();
            let held = holding.iter().enumerate().filter(|(_, holds)| **holds);
            held.for_each(|(position, _)| matching.push(index(position)));
            return Ok(rawdoc! {
                "operatorName": "oneOf",
                "reason": "more than one subschema matched",
                "matchingSchemaIndexes": matching
            });
        }
        let mut failing = RawArrayBuf::new();
        for (position, schema) in self.schemas.iter().enumerate().filter(|(position, _)| !holding[*position]) {
            let mut details = rawdoc! { "index": index(position) };
            schema.annotate(&mut details);
            details.append(bson::raw::cstr!("details"), schema.failures(value)?);
            failing.push(details);
        }
        Ok(rawdoc! { "operatorName": self.name, "schemasNotSatisfied": failing })
    }
}

#[derive(Debug)]
struct Not {
    schema: Schema,
}

impl Keyword for Not {
    fn holds(&self, value: RawBsonRef<'_>) -> Result<bool> {
        Ok(!self.schema.holds(value)?)
    }

    fn explain(&self, _: RawBsonRef<'_>) -> Result<RawDocumentBuf> {
        Ok(rawdoc! { "operatorName": "not", "reason": "child expression matched" })
    }
}

#[derive(Debug)]
struct Enum {
    values: Vec<RawBson>,
    specified: RawDocumentBuf,
}

impl Keyword for Enum {
    fn holds(&self, value: RawBsonRef<'_>) -> Result<bool> {
        for known in &self.values {
            if equal_unordered(known.as_raw_bson_ref(), value)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn explain(&self, value: RawBsonRef<'_>) -> Result<RawDocumentBuf> {
        Ok(failure("enum", &self.specified, "value was not found in enum", value))
    }
}
