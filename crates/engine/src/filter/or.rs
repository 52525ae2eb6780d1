//! `{$or: [filter, …]}`: at least one of the filters matches.
//!
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/query/or/>.

use super::and::filters;
use super::{Node, Operator, Parse};

pub(super) const OPERATOR: Operator =
    Operator { name: "$or", parse: Parse::Top(|argument, parser| Ok(Node::or(filters("$or", argument, parser)?))) };
