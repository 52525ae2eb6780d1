//! `{field: {$exists: boolean}}`: the field is there, null included, or it is not.
//!
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/query/exists/>.

use super::{Bounds, Field, IndexTraits, Interval, Node, Operator, Parse, Parser, Predicate};
use crate::document::Value;
use crate::document::traverse::Leaf;
use crate::error::Result;
use crate::expression::Environment;
use bson::{RawBsonRef, RawDocumentBuf, rawdoc};

pub(super) const OPERATOR: Operator = Operator { name: "$exists", parse: Parse::Field(parse) };

#[derive(Debug)]
struct Exists;

fn parse(field: Field<'_>, argument: RawBsonRef<'_>, _: &mut Parser<'_>) -> Result<Node> {
    let node = Node::path(field.path, Exists);
    Ok(if Value::Borrowed(argument).is_true() { node } else { Node::negation(node, "$exists") })
}

impl Predicate for Exists {
    fn matches(&self, value: Option<RawBsonRef<'_>>, _: &Environment) -> Result<bool> {
        Ok(value.is_some())
    }

    fn name(&self) -> &'static str {
        "$exists"
    }

    fn describe(&self) -> RawDocumentBuf {
        rawdoc! { "$exists": true }
    }

    fn leaf(&self) -> Leaf {
        Leaf::Array
    }

    /// Null is the key of a missing field too.
    fn bounds(&self, _: IndexTraits) -> Option<Bounds> {
        Some(Bounds::inexact(vec![Interval::all()]))
    }
}
