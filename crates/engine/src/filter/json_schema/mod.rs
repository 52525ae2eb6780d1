//! `{$jsonSchema: {schema}}`: the document satisfies a JSON schema (draft 4, with BSON types).
//!
//! A schema is a list of keywords; each knows whether a value satisfies it and how to say that it does not. A keyword
//! that speaks of another kind of value (`minLength` of a number) is satisfied. Strings compare by bytes, whatever the
//! collation; the order of fields does not matter in `enum` and `uniqueItems`. `$ref`, `definitions`, `default`, `format`,
//! `id`, `$schema` and `type: "integer"` are refused, as in MongoDB; `encrypt` and `encryptMetadata` are not our aim.
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/query/jsonSchema/>.

mod array;
mod logical;
mod object;
mod parser;
mod scalar;
mod types;

use super::{Node, Operator, Parse, Parser};
use crate::document::{append, type_name};
use crate::error::{Error, Result};
use bson::{RawArrayBuf, RawBson, RawBsonRef, RawDocument, RawDocumentBuf, rawdoc};
use std::fmt::Debug;
use std::sync::Arc;

pub(super) const OPERATOR: Operator = Operator { name: "$jsonSchema", parse: Parse::Top(parse) };

fn parse(argument: RawBsonRef<'_>, _: &mut Parser<'_>) -> Result<Node> {
    let RawBsonRef::Document(document) = argument else {
        return Err(Error::type_mismatch("$jsonSchema must be an object"));
    };
    Ok(Node::Schema(Arc::new(JsonSchema { written: document.to_owned(), schema: Schema::parse(document)? })))
}

/// The condition of a `$jsonSchema`.
#[derive(Debug)]
pub struct JsonSchema {
    written: RawDocumentBuf,
    schema: Schema,
}

impl JsonSchema {
    /// The schema as written.
    pub fn written(&self) -> &RawDocument {
        &self.written
    }

    pub(super) fn matches(&self, document: &RawDocument) -> Result<bool> {
        self.schema.holds(RawBsonRef::Document(document))
    }

    /// Why a document does not match.
    pub(super) fn explain(&self, document: &RawDocument) -> Result<RawDocumentBuf> {
        let mut details = rawdoc! { "operatorName": "$jsonSchema" };
        self.schema.annotate(&mut details);
        let failures = self.schema.failures(RawBsonRef::Document(document))?;
        append(&mut details, "schemaRulesNotSatisfied", RawBsonRef::Array(&failures))?;
        Ok(details)
    }
}

/// A schema or a sub-schema.
#[derive(Debug, Default)]
struct Schema {
    keywords: Vec<Box<dyn Keyword>>,
    title: Option<String>,
    description: Option<String>,
}

/// What every keyword does.
trait Keyword: Debug + Send + Sync {
    /// Whether a value satisfies it.
    fn holds(&self, value: RawBsonRef<'_>) -> Result<bool>;

    /// Why a value does not satisfy it.
    fn explain(&self, value: RawBsonRef<'_>) -> Result<RawDocumentBuf>;
}

impl Schema {
    fn parse(document: &RawDocument) -> Result<Schema> {
        parser::parse(document)
    }

    fn holds(&self, value: RawBsonRef<'_>) -> Result<bool> {
        for keyword in &self.keywords {
            if !keyword.holds(value)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// What each keyword that is not satisfied has to say.
    fn failures(&self, value: RawBsonRef<'_>) -> Result<RawArrayBuf> {
        let mut failures = RawArrayBuf::new();
        for keyword in &self.keywords {
            if !keyword.holds(value)? {
                failures.push(keyword.explain(value)?);
            }
        }
        Ok(failures)
    }

    /// Adds title and description, where there are any.
    fn annotate(&self, details: &mut RawDocumentBuf) {
        for (name, text) in [("title", &self.title), ("description", &self.description)] {
            if let Some(text) = text {
                append(details, name, RawBsonRef::String(text)).expect("a name without null byte");
            }
        }
    }
}

/// The usual explanation: the keyword as specified, the reason, the value.
fn failure(name: &str, specified: &RawDocument, reason: &str, value: RawBsonRef<'_>) -> RawDocumentBuf {
    let mut details = rawdoc! { "operatorName": name, "specifiedAs": specified.to_owned(), "reason": reason };
    append(&mut details, "consideredValue", value).expect("a name without null byte");
    details
}

/// The explanation of a type that did not match.
fn type_failure(name: &str, specified: &RawDocument, value: RawBsonRef<'_>) -> RawDocumentBuf {
    let mut details = failure(name, specified, "type did not match", value);
    append(&mut details, "consideredType", RawBsonRef::String(type_name(value))).expect("a name without null byte");
    details
}

/// A document of one field.
fn specified(name: &str, value: RawBsonRef<'_>) -> RawDocumentBuf {
    super::eq::operator(name, value)
}

/// Whether two values are equal when the order of fields does not matter.
fn equal_unordered(a: RawBsonRef<'_>, b: RawBsonRef<'_>) -> Result<bool> {
    Ok(match (a, b) {
        (RawBsonRef::Document(a), RawBsonRef::Document(b)) => {
            let (a, b) = (sorted_fields(a)?, sorted_fields(b)?);
            if a.len() != b.len() {
                return Ok(false);
            }
            for ((a_name, a), (b_name, b)) in a.iter().zip(&b) {
                if a_name != b_name || !equal_unordered(*a, *b)? {
                    return Ok(false);
                }
            }
            true
        }
        (RawBsonRef::Array(a), RawBsonRef::Array(b)) => {
            let (mut a, mut b) = (a.into_iter(), b.into_iter());
            loop {
                match (a.next(), b.next()) {
                    (None, None) => return Ok(true),
                    (Some(a), Some(b)) => {
                        if !equal_unordered(a?, b?)? {
                            return Ok(false);
                        }
                    }
                    _ => return Ok(false),
                }
            }
        }
        (a, b) => crate::document::values_equal(a, b, None)?,
    })
}

fn sorted_fields(document: &RawDocument) -> Result<Vec<(&str, RawBsonRef<'_>)>> {
    let mut fields = Vec::new();
    for field in document {
        let (name, value) = field?;
        fields.push((name.as_str(), value));
    }
    fields.sort_by_key(|field| field.0);
    Ok(fields)
}

/// A value in which fields stand in the order of their names, at every level: equal values without regard to field order
/// become equal values, so that they can be sorted.
fn in_field_order(value: RawBsonRef<'_>) -> Result<RawBson> {
    Ok(match value {
        RawBsonRef::Document(document) => {
            let mut output = RawDocumentBuf::new();
            for (name, value) in sorted_fields(document)? {
                append(&mut output, name, in_field_order(value)?.as_raw_bson_ref())?;
            }
            RawBson::Document(output)
        }
        RawBsonRef::Array(array) => {
            let mut output = RawArrayBuf::new();
            for element in array {
                output.push(in_field_order(element?)?);
            }
            RawBson::Array(output)
        }
        other => other.into(),
    })
}
