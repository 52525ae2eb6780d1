//! The keywords of objects: `required`, `properties`, `patternProperties`, `additionalProperties`, `minProperties`,
//! `maxProperties`, `dependencies`.

use super::parser::{Source, names, schema};
use super::{Keyword, Schema, specified};
use crate::document::get;
use crate::document::regex::Regex;
use crate::error::{Error, Result};
use bson::{RawArrayBuf, RawBsonRef, RawDocument, RawDocumentBuf, rawdoc};
use std::sync::Arc;

pub(super) fn parse(source: &Source<'_>, keywords: &mut Vec<Box<dyn Keyword>>) -> Result<()> {
    let properties = parse_properties(source)?;
    let patterns = parse_patterns(source)?;
    let additional = match source.get("additionalProperties")? {
        None | Some(RawBsonRef::Boolean(true)) => None,
        Some(RawBsonRef::Boolean(false)) => Some(None),
        Some(RawBsonRef::Document(document)) => Some(Some(Schema::parse(document)?)),
        Some(_) => {
            return Err(Error::type_mismatch(
                "$jsonSchema keyword 'additionalProperties' must be either an object or a boolean",
            ));
        }
    };
    let known: Vec<String> = properties.iter().map(|(name, _)| name.clone()).collect();
    if !properties.is_empty() {
        keywords.push(Box::new(Properties { properties }));
    }
    if let Some(array) = source.array("required")? {
        keywords.push(Box::new(Required {
            names: names("required", array)?,
            specified: specified("required", RawBsonRef::Array(array)),
        }));
    }
    let patterns = Arc::new(patterns);
    if !patterns.is_empty() {
        keywords.push(Box::new(PatternProperties { patterns: Arc::clone(&patterns) }));
    }
    if let Some(schema) = additional {
        keywords.push(Box::new(AdditionalProperties { known, patterns, schema }));
    }
    for (name, most) in [("minProperties", false), ("maxProperties", true)] {
        if let Some(count) = source.count(name)? {
            let specified = specified(name, source.get(name)?.unwrap_or(RawBsonRef::Null));
            keywords.push(Box::new(Count { name, specified, count, most }));
        }
    }
    parse_dependencies(source, keywords)
}

fn parse_properties(source: &Source<'_>) -> Result<Vec<(String, Schema)>> {
    let mut properties = Vec::new();
    if let Some(document) = source.object("properties")? {
        for field in document {
            let (name, value) = field?;
            properties.push((name.as_str().to_owned(), schema("properties", value)?));
        }
    }
    Ok(properties)
}

fn parse_patterns(source: &Source<'_>) -> Result<Vec<(Regex, Schema)>> {
    let mut patterns = Vec::new();
    if let Some(document) = source.object("patternProperties")? {
        for field in document {
            let (pattern, value) = field?;
            let schema = schema("patternProperties", value)?;
            let regex = Regex::new(pattern.as_str(), "").map_err(|error| Error::bad_value(error.message))?;
            patterns.push((regex, schema));
        }
    }
    Ok(patterns)
}

/// A value's fields, or `None` for what is no object.
fn object(value: RawBsonRef<'_>) -> Option<&RawDocument> {
    match value {
        RawBsonRef::Document(document) => Some(document),
        _ => None,
    }
}

#[derive(Debug)]
struct Required {
    names: Vec<String>,
    specified: RawDocumentBuf,
}

fn missing<'n>(names: &'n [String], document: &RawDocument) -> Result<Vec<&'n str>> {
    let mut missing = Vec::new();
    for name in names {
        if get(document, name)?.is_none() {
            missing.push(name.as_str());
        }
    }
    Ok(missing)
}

fn array_of(names: Vec<&str>) -> RawArrayBuf {
    let mut array = RawArrayBuf::new();
    names.into_iter().for_each(|name| array.push(name));
    array
}

impl Keyword for Required {
    fn holds(&self, value: RawBsonRef<'_>) -> Result<bool> {
        object(value).map_or(Ok(true), |document| Ok(missing(&self.names, document)?.is_empty()))
    }

    fn explain(&self, value: RawBsonRef<'_>) -> Result<RawDocumentBuf> {
        let missing = object(value).map_or(Ok(Vec::new()), |document| missing(&self.names, document))?;
        Ok(rawdoc! {
            "operatorName": "required",
            "specifiedAs": self.specified.clone(),
            "missingProperties": array_of(missing)
        })
    }
}

#[derive(Debug)]
struct Properties {
    properties: Vec<(String, Schema)>,
}

impl Keyword for Properties {
    fn holds(&self, value: RawBsonRef<'_>) -> Result<bool> {
        let Some(document) = object(value) else { return Ok(true) };
        for (name, schema) in &self.properties {
            if let Some(value) = get(document, name)?
                && !schema.holds(value)?
            {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn explain(&self, value: RawBsonRef<'_>) -> Result<RawDocumentBuf> {
        let mut failing = RawArrayBuf::new();
        let Some(document) = object(value) else { return Ok(RawDocumentBuf::new()) };
        for (name, schema) in &self.properties {
            if let Some(value) = get(document, name)?
                && !schema.holds(value)?
            {
                let mut details = rawdoc! { "propertyName": name.as_str() };
                schema.annotate(&mut details);
                details.append(bson::raw::cstr!("details"), schema.failures(value)?);
                failing.push(details);
            }
        }
        Ok(rawdoc! { "operatorName": "properties", "propertiesNotSatisfied": failing })
    }
}

#[derive(Debug)]
struct PatternProperties {
    patterns: Arc<Vec<(Regex, Schema)>>,
}

impl Keyword for PatternProperties {
    fn holds(&self, value: RawBsonRef<'_>) -> Result<bool> {
        let Some(document) = object(value) else { return Ok(true) };
        for field in document {
            let (name, value) = field?;
            for (regex, schema) in self.patterns.iter() {
                if regex.is_match(name.as_str())? && !schema.holds(value)? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    fn explain(&self, value: RawBsonRef<'_>) -> Result<RawDocumentBuf> {
        let mut failing = RawArrayBuf::new();
        let Some(document) = object(value) else { return Ok(RawDocumentBuf::new()) };
        for field in document {
            let (name, value) = field?;
            for (regex, schema) in self.patterns.iter() {
                if regex.is_match(name.as_str())? && !schema.holds(value)? {
                    failing.push(rawdoc! {
                        "propertyName": name.as_str(),
                        "regexMatched": regex.pattern(),
                        "details": schema.failures(value)?
                    });
                }
            }
        }
        Ok(rawdoc! { "operatorName": "patternProperties", "details": failing })
    }
}

#[derive(Debug)]
struct AdditionalProperties {
    known: Vec<String>,
    patterns: Arc<Vec<(Regex, Schema)>>,
    /// `None` allows none.
    schema: Option<Schema>,
}

impl AdditionalProperties {
    fn is_additional(&self, name: &str) -> Result<bool> {
        if self.known.iter().any(|known| known == name) {
            return Ok(false);
        }
        for (regex, _) in self.patterns.iter() {
            if regex.is_match(name)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn failing<'a>(&self, document: &'a RawDocument) -> Result<Vec<(&'a str, RawBsonRef<'a>)>> {
        let mut failing = Vec::new();
        for field in document {
            let (name, value) = field?;
            let name = name.as_str();
            if self.is_additional(name)? && !self.schema.as_ref().map_or(Ok(false), |schema| schema.holds(value))? {
                failing.push((name, value));
            }
        }
        Ok(failing)
    }
}

impl Keyword for AdditionalProperties {
    fn holds(&self, value: RawBsonRef<'_>) -> Result<bool> {
        object(value).map_or(Ok(true), |document| Ok(self.failing(document)?.is_empty()))
    }

    fn explain(&self, value: RawBsonRef<'_>) -> Result<RawDocumentBuf> {
        let failing = object(value).map_or(Ok(Vec::new()), |document| self.failing(document))?;
        Ok(match (&self.schema, failing.first()) {
            (Some(schema), Some((name, value))) => rawdoc! {
                "operatorName": "additionalProperties",
                "reason": "at least one additional property did not match the subschema",
                "failingProperty": *name,
                "details": schema.failures(*value)?
            },
            _ => rawdoc! {
                "operatorName": "additionalProperties",
                "specifiedAs": { "additionalProperties": false },
                "additionalProperties": array_of(failing.into_iter().map(|(name, _)| name).collect())
            },
        })
    }
}

#[derive(Debug)]
struct Count {
    name: &'static str,
    specified: RawDocumentBuf,
    count: u64,
    most: bool,
}

impl Keyword for Count {
    fn holds(&self, value: RawBsonRef<'_>) -> Result<bool> {
        let Some(document) = object(value) else { return Ok(true) };
        let count = document.iter_elements().count() as u64;
        Ok(if self.most { count <= self.count } else { count >= self.count })
    }

    fn explain(&self, value: RawBsonRef<'_>) -> Result<RawDocumentBuf> {
        let count = object(value).map_or(0, |document| document.iter_elements().count());
        Ok(rawdoc! {
            "operatorName": self.name,
            "specifiedAs": self.specified.clone(),
            "reason": "specified number of properties was not satisfied",
            "numberOfProperties": i32::try_from(count).expect("a document has fewer than 2^31 fields")
        })
    }
}

/// What a property's presence asks for.
#[derive(Debug)]
enum Dependency {
    Names(Vec<String>),
    Schema(Schema),
}

#[derive(Debug)]
struct Dependencies {
    dependencies: Vec<(String, Dependency)>,
}

fn parse_dependencies(source: &Source<'_>, keywords: &mut Vec<Box<dyn Keyword>>) -> Result<()> {
    let Some(document) = source.object("dependencies")? else { return Ok(()) };
    let mut dependencies = Vec::new();
    for field in document {
        let (name, value) = field?;
        let dependency = match value {
            RawBsonRef::Array(array) => Dependency::Names(names("dependencies", array)?),
            other => Dependency::Schema(schema("dependencies", other)?),
        };
        dependencies.push((name.as_str().to_owned(), dependency));
    }
    keywords.push(Box::new(Dependencies { dependencies }));
    Ok(())
}

impl Dependency {
    fn holds(&self, document: &RawDocument) -> Result<bool> {
        match self {
            Dependency::Names(names) => Ok(missing(names, document)?.is_empty()),
            Dependency::Schema(schema) => schema.holds(RawBsonRef::Document(document)),
        }
    }
}

impl Keyword for Dependencies {
    fn holds(&self, value: RawBsonRef<'_>) -> Result<bool> {
        let Some(document) = object(value) else { return Ok(true) };
        for (name, dependency) in &self.dependencies {
            if get(document, name)?.is_some() && !dependency.holds(document)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn explain(&self, value: RawBsonRef<'_>) -> Result<RawDocumentBuf> {
        let mut failing = RawArrayBuf::new();
        let Some(document) = object(value) else { return Ok(RawDocumentBuf::new()) };
        for (name, dependency) in &self.dependencies {
            if get(document, name)?.is_none() || dependency.holds(document)? {
                continue;
            }
            failing.push(match dependency {
                Dependency::Names(names) => rawdoc! {
                    "conditionalProperty": name.as_str(),
                    "missingProperties": array_of(missing(names, document)?)
                },
                Dependency::Schema(schema) => rawdoc! {
                    "conditionalProperty": name.as_str(),
                    "details": schema.failures(RawBsonRef::Document(document))?
                },
            });
        }
        Ok(rawdoc! { "operatorName": "dependencies", "failingDependencies": failing })
    }
}
