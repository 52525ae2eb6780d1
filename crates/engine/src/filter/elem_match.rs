//! `{field: {$elemMatch: {filter}}}` or `{field: {$elemMatch: {operators}}}`: one element of the array meets all conditions.
//!
//! With a filter the elements are documents (arrays count as documents whose names are positions); with operators they
//! are values, and arrays among them are not entered. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/query/elemMatch/>.

use super::node::{element_matches, value_matches};
use super::parser::is_operators;
use super::{Bounds, Field, IndexTraits, Node, Operator, Parse, Parser, Predicate, find};
use crate::document::traverse::Leaf;
use crate::error::{Error, Result};
use crate::expression::Environment;
use bson::{RawBsonRef, RawDocument, RawDocumentBuf, rawdoc};

pub(super) const OPERATOR: Operator = Operator { name: "$elemMatch", parse: Parse::Field(parse) };

#[derive(Debug)]
struct ElemMatch {
    node: Node,
    /// Whether the conditions have paths.
    documents: bool,
    written: RawDocumentBuf,
}

fn parse(field: Field<'_>, argument: RawBsonRef<'_>, parser: &mut Parser<'_>) -> Result<Node> {
    let RawBsonRef::Document(condition) = argument else {
        return Err(Error::bad_value("$elemMatch needs an Object"));
    };
    let documents = has_paths(condition)?;
    let node = parser
        .elem_match(|parser| if documents { parser.document(condition) } else { parser.operators("", condition) })?;
    Ok(Node::path(field.path, ElemMatch { node, documents, written: condition.to_owned() }))
}

fn has_paths(condition: &RawDocument) -> Result<bool> {
    if !is_operators(condition)? {
        return Ok(true);
    }
    let Some(first) = condition.iter().next() else { return Ok(true) };
    let name = first?.0.as_str();
    let at_top = find(name).is_some_and(|operator| matches!(operator.parse, Parse::Top(_)));
    Ok(at_top || matches!(name, "$where" | "$text" | "$ref" | "$id" | "$db"))
}

impl ElemMatch {
    fn element(&self, element: RawBsonRef<'_>, environment: &Environment) -> Result<bool> {
        if self.documents {
            element_matches(&self.node, element, environment)
        } else {
            value_matches(&self.node, element, environment)
        }
    }
}

impl Predicate for ElemMatch {
    fn matches(&self, value: Option<RawBsonRef<'_>>, environment: &Environment) -> Result<bool> {
        value.map_or(Ok(false), |value| Ok(self.position(value, environment)?.is_some()))
    }

    fn name(&self) -> &'static str {
        "$elemMatch"
    }

    fn describe(&self) -> RawDocumentBuf {
        rawdoc! { "$elemMatch": self.written.clone() }
    }

    fn leaf(&self) -> Leaf {
        Leaf::Array
    }

    fn position(&self, value: RawBsonRef<'_>, environment: &Environment) -> Result<Option<usize>> {
        let RawBsonRef::Array(array) = value else { return Ok(None) };
        for (position, element) in array.into_iter().enumerate() {
            if self.element(element?, environment)? {
                return Ok(Some(position));
            }
        }
        Ok(None)
    }

    /// All conditions hold for one element, which is one key: their bounds may be intersected.
    fn bounds(&self, index: IndexTraits) -> Option<Bounds> {
        if self.documents {
            return None;
        }
        let single = IndexTraits { multikey: false, ..index };
        let bounds = self.node.bounds_on("", single, None, &Environment::fixed()).ok()??;
        Some(Bounds { exact: false, ..bounds })
    }

    fn elements(&self) -> Option<(&Node, bool)> {
        Some((&self.node, self.documents))
    }
}
