//! `{field: {$not: {operators}}}` or `{field: {$not: /regex/}}`: the operators don't match, or the field is missing.
//!
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/query/not/>.

use super::{Field, Node, Operator, Parse, Parser, regex};
use crate::error::{Error, Result};
use bson::RawBsonRef;

pub(super) const OPERATOR: Operator = Operator { name: "$not", parse: Parse::Field(parse) };

fn parse(field: Field<'_>, argument: RawBsonRef<'_>, parser: &mut Parser<'_>) -> Result<Node> {
    let node = match argument {
        RawBsonRef::RegularExpression(literal) => regex::from_literal(field.path, literal)?,
        RawBsonRef::Document(operators) if operators.is_empty() => {
            return Err(Error::bad_value("$not cannot be empty"));
        }
        RawBsonRef::Document(operators) => parser.operators(field.path, operators)?,
        _ => return Err(Error::bad_value("$not needs a regex or a document")),
    };
    Ok(Node::negation(node, "$not"))
}
