//! `{field: {$nin: [value, /regex/, …]}}`: no value at the path is equal to one of the values or matches one of the regular
//! expressions.
//!
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/query/nin/>.

use super::{Field, Node, Operator, Parse, Parser};
use crate::error::Result;
use bson::RawBsonRef;

pub(super) const OPERATOR: Operator = Operator { name: "$nin", parse: Parse::Field(parse) };

fn parse(field: Field<'_>, argument: RawBsonRef<'_>, parser: &mut Parser<'_>) -> Result<Node> {
    Ok(Node::negation(super::r#in::node("$nin", field, argument, parser)?, "$nin"))
}
