//! `{field: {$ne: value}}`: no value at the path is equal; a missing field is not equal to anything but null.
//!
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/query/ne/>.

use super::{Field, Node, Operator, Parse, Parser, eq};
use crate::error::{Error, Result};
use bson::RawBsonRef;

pub(super) const OPERATOR: Operator = Operator { name: "$ne", parse: Parse::Field(parse) };

fn parse(field: Field<'_>, argument: RawBsonRef<'_>, parser: &mut Parser<'_>) -> Result<Node> {
    if let RawBsonRef::RegularExpression(_) = argument {
        return Err(Error::bad_value("Can't have regex as arg to $ne."));
    }
    Ok(Node::negation(eq::node(field.path, argument, parser)?, "$ne"))
}
