//! `{$and: [filter, …]}`: all of the filters match.
//!
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/query/and/>.

use super::{Node, Operator, Parse, Parser};
use crate::error::{Error, Result};
use bson::RawBsonRef;

pub(super) const OPERATOR: Operator =
    Operator { name: "$and", parse: Parse::Top(|argument, parser| Ok(Node::and(filters("$and", argument, parser)?))) };

/// The filters of a logical operator.
pub(super) fn filters(name: &str, argument: RawBsonRef<'_>, parser: &mut Parser<'_>) -> Result<Vec<Node>> {
    let RawBsonRef::Array(array) = argument else {
        return Err(Error::bad_value(format!("{name} must be an array")));
    };
    let mut nodes = Vec::new();
    for element in array {
        let RawBsonRef::Document(filter) = element? else {
            return Err(Error::bad_value(format!("{name} entries need to be full objects")));
        };
        nodes.push(parser.document(filter)?);
    }
    if nodes.is_empty() {
        return Err(Error::bad_value(format!("{name} must be a nonempty array")));
    }
    Ok(nodes)
}
