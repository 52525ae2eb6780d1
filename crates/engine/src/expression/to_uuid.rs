//! `{$toUUID: expression}`: the value as a UUID, from its dashed form.
//!
//! Null gives null; what does not convert is refused. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/aggregation/toUUID/>.

use super::Operator;
use super::conversion::Target;
use super::shorthand::shorthand;

pub(super) const OPERATOR: Operator =
    Operator { name: "$toUUID", parse: |argument, parser| shorthand("$toUUID", argument, parser, Target::Binary(4)) };
