//! `{$comment: anything}`: a remark, shown in the profile; it has no effect.
//!
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/query/comment/>.

use super::{Node, Operator, Parse};

pub(super) const OPERATOR: Operator = Operator { name: "$comment", parse: Parse::Top(|_, _| Ok(Node::Always(true))) };
