//! `{$toBool: expression}`: the value as true, except for zero and false.
//!
//! Null gives null; what does not convert is refused. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/aggregation/toBool/>.

use super::Operator;
use super::conversion::Target;
use super::shorthand::shorthand;

pub(super) const OPERATOR: Operator =
    Operator { name: "$toBool", parse: |argument, parser| shorthand("$toBool", argument, parser, Target::Bool) };
