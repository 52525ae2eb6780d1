//! `{$nor: [filter, …]}`: none of the filters matches.
//!
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/query/nor/>.

use super::and::filters;
use super::{Node, Operator, Parse};

pub(super) const OPERATOR: Operator =
    Operator { name: "$nor", parse: Parse::Top(|argument, parser| Ok(Node::Nor(filters("$nor", argument, parser)?))) };
