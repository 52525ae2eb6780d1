//! Why a document does not satisfy a validator: the `details` of `errInfo`.
//!
//! Each condition that is not met says its operator, how it was specified, the reason and the values it looked at; below
//! a negation it is the conditions that are met which explain. Documented at
//! <https://www.mongodb.com/docs/manual/core/schema-validation/handle-invalid-documents/>.

use super::node::{Matching, Subject};
use super::{Filter, Node, Predicate};
use crate::document::traverse::{self, Leaf};
use crate::document::{append, type_name};
use crate::error::Result;
use crate::expression::{Environment, Scope};
use bson::{RawArrayBuf, RawBson, RawBsonRef, RawDocument, RawDocumentBuf, rawdoc};

impl Filter {
    /// Why a document does not match; for one that does match there is nothing to say.
    ///
    /// # Errors
    /// As [`Filter::matches`].
    pub fn explain_failure(&self, document: &RawDocument, environment: &Environment) -> Result<RawDocumentBuf> {
        Explainer { document, environment }.node(self.root(), false)
    }
}

struct Explainer<'a> {
    document: &'a RawDocument,
    environment: &'a Environment,
}

impl Explainer<'_> {
    /// Why a node does not match, or, inverted, why it does.
    fn node(&self, node: &Node, inverted: bool) -> Result<RawDocumentBuf> {
        match node {
            Node::And(nodes) => self.clauses("$and", nodes, inverted),
            Node::Or(nodes) => self.clauses("$or", nodes, inverted),
            Node::Nor(nodes) => self.clauses("$nor", nodes, !inverted),
            Node::Not { node, name } => match (&**node, *name) {
                (Node::Path { path, test }, "$ne" | "$nin" | "$exists") => {
                    let written = written_negation(name, &test.describe());
                    self.path(path.as_str(), &**test, name, &written, !inverted)
                }
                _ => {
                    let mut details = rawdoc! { "operatorName": *name };
                    append(&mut details, "details", RawBsonRef::Document(&self.node(node, !inverted)?))?;
                    Ok(details)
                }
            },
            Node::Path { path, test } => self.path(path.as_str(), &**test, test.name(), &test.describe(), inverted),
            Node::Expr(condition) => {
                let reason = if inverted { "expression did match" } else { "expression did not match" };
                let mut details = rawdoc! { "operatorName": "$expr", "specifiedAs": node.describe(), "reason": reason };
                let scope = Scope::new(self.document, self.environment);
                if let Some(result) = condition.expression().evaluate(&scope)?.get() {
                    append(&mut details, "expressionResult", result)?;
                }
                Ok(details)
            }
            Node::Schema(_) if inverted => Ok(rawdoc! { "operatorName": "$jsonSchema", "reason": "schema matched" }),
            Node::Schema(schema) => schema.explain(self.document),
            Node::Sample(_) => Ok(rawdoc! { "operatorName": "$sampleRate", "specifiedAs": node.describe() }),
            Node::Always(value) => {
                let name = if *value { "$alwaysTrue" } else { "$alwaysFalse" };
                let reason =
                    if *value { "expression always evaluates to true" } else { "expression always evaluates to false" };
                let mut specified = RawDocumentBuf::new();
                append(&mut specified, name, RawBsonRef::Int32(1))?;
                Ok(rawdoc! { "operatorName": name, "specifiedAs": specified, "reason": reason })
            }
        }
    }

    /// The clauses of a logical operator that explain it: those that match, where `matching` says so, or those that don't.
    fn clauses(&self, name: &str, nodes: &[Node], matching: bool) -> Result<RawDocumentBuf> {
        let mut clauses = RawArrayBuf::new();
        for (index, node) in nodes.iter().enumerate() {
            let matches =
                node.matches(Subject::Document(self.document), &mut Matching::new(self.environment, false))?;
            if matches == matching {
                let index = i32::try_from(index).expect("a filter is below 2 GiB");
                clauses.push(rawdoc! { "index": index, "details": self.node(node, matching)? });
            }
        }
        let list = if matching { "clausesSatisfied" } else { "clausesNotSatisfied" };
        let mut details = rawdoc! { "operatorName": name };
        append(&mut details, list, RawBsonRef::Array(&clauses))?;
        Ok(details)
    }

    fn path(
        &self,
        path: &str,
        test: &dyn Predicate,
        name: &str,
        written: &RawDocument,
        inverted: bool,
    ) -> Result<RawDocumentBuf> {
        let mut specified = RawDocumentBuf::new();
        append(&mut specified, path, RawBsonRef::Document(written))?;
        let mut details = rawdoc! { "operatorName": name, "specifiedAs": specified };
        let values = self.values(path, test.leaf())?;
        if name == "$exists" {
            append(&mut details, "reason", RawBsonRef::String(exists_reason(inverted)))?;
            return Ok(details);
        }
        if values.is_empty() && !inverted {
            append(&mut details, "reason", RawBsonRef::String("field was missing"))?;
            return Ok(details);
        }
        append(&mut details, "reason", RawBsonRef::String(reason(test.name(), inverted)))?;
        match &values[..] {
            [] => {}
            [only] => {
                append(&mut details, "consideredValue", only.as_raw_bson_ref())?;
                if test.name() == "$type" {
                    append(&mut details, "consideredType", RawBsonRef::String(type_name(only.as_raw_bson_ref())))?;
                }
            }
            several => {
                let mut considered = RawArrayBuf::new();
                let mut types: Vec<&str> = Vec::new();
                for value in several {
                    considered.push(value.as_raw_bson_ref());
                    types.push(type_name(value.as_raw_bson_ref()));
                }
                append(&mut details, "consideredValues", RawBsonRef::Array(&considered))?;
                if test.name() == "$type" {
                    types.sort_unstable();
                    types.dedup();
                    let mut array = RawArrayBuf::new();
                    types.into_iter().for_each(|name| array.push(name));
                    append(&mut details, "consideredTypes", RawBsonRef::Array(&array))?;
                }
            }
        }
        Ok(details)
    }

    /// The values that a condition looked at.
    fn values(&self, path: &str, leaf: Leaf) -> Result<Vec<RawBson>> {
        let mut values = Vec::new();
        traverse::visit(self.document, path, leaf, &mut |value, _| {
            values.extend(value.map(RawBson::from));
            Ok(false)
        })?;
        Ok(values)
    }
}

/// A negation as the user wrote it.
fn written_negation(name: &str, inner: &RawDocument) -> RawDocumentBuf {
    let argument = match (name, inner.iter().next()) {
        ("$exists", _) | (_, None) | (_, Some(Err(_))) => RawBsonRef::Boolean(false),
        (_, Some(Ok((_, argument)))) => argument,
    };
    super::eq::operator(name, argument)
}

fn exists_reason(inverted: bool) -> &'static str {
    if inverted { "path does exist" } else { "path does not exist" }
}

fn reason(name: &str, inverted: bool) -> &'static str {
    let (normal, opposite) = match name {
        "$in" => ("no matching value found in array", "matching value found in array"),
        "$type" => ("type did not match", "type did match"),
        "$regex" => ("regular expression did not match", "regular expression did match"),
        "$size" => ("array length was not equal to given size", "array length was equal to given size"),
        "$mod" => ("$mod did not evaluate to expected remainder", "$mod did evaluate to expected remainder"),
        "$elemMatch" => ("array did not satisfy the child predicate", "array did satisfy the child predicate"),
        "$bitsAllSet" | "$bitsAllClear" | "$bitsAnySet" | "$bitsAnyClear" => {
            ("bitwise operator failed to match", "bitwise operator matched successfully")
        }
        _ => ("comparison failed", "comparison succeeded"),
    };
    if inverted { opposite } else { normal }
}
