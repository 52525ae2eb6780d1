//! `{field: {$all: [value, /regex/, …]}}` or `{field: {$all: [{$elemMatch: …}, …]}}`: each of them matches the field.
//!
//! An empty list matches nothing. Documented at <https://www.mongodb.com/docs/manual/reference/operator/query/all/>.

use super::parser::is_operators;
use super::{Field, Node, Operator, Parse, Parser, eq, regex};
use crate::document::get;
use crate::error::{Error, Result};
use bson::RawBsonRef;

pub(super) const OPERATOR: Operator = Operator { name: "$all", parse: Parse::Field(parse) };

fn parse(field: Field<'_>, argument: RawBsonRef<'_>, parser: &mut Parser<'_>) -> Result<Node> {
    let RawBsonRef::Array(array) = argument else {
        return Err(Error::bad_value("$all needs an array"));
    };
    let mut nodes = Vec::new();
    let mut all_elem_match = None;
    for element in array {
        let element = element?;
        let elem_match = is_elem_match(element)?;
        if *all_elem_match.get_or_insert(elem_match) != elem_match {
            return Err(Error::bad_value(if elem_match {
                "no $ expressions in $all"
            } else {
                "$all/$elemMatch has to be consistent"
            }));
        }
        nodes.push(match element {
            RawBsonRef::Document(operators) if elem_match => parser.operators(field.path, operators)?,
            RawBsonRef::Document(operators) if is_operators(operators)? => {
                return Err(Error::bad_value("no $ expressions in $all"));
            }
            RawBsonRef::RegularExpression(literal) => regex::from_literal(field.path, literal)?,
            value => eq::node(field.path, value, parser)?,
        });
    }
    Ok(if nodes.is_empty() { Node::Always(false) } else { Node::and(nodes) })
}

fn is_elem_match(element: RawBsonRef<'_>) -> Result<bool> {
    match element {
        RawBsonRef::Document(document) => Ok(is_operators(document)? && get(document, "$elemMatch")?.is_some()),
        _ => Ok(false),
    }
}
