//! `{$toInt: expression}`: the value as an int32, cut off after the point.
//!
//! Null gives null; what does not convert is refused. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/aggregation/toInt/>.

use super::Operator;
use super::conversion::Target;
use super::shorthand::shorthand;

pub(super) const OPERATOR: Operator =
    Operator { name: "$toInt", parse: |argument, parser| shorthand("$toInt", argument, parser, Target::Int) };
