//! `{$toLong: expression}`: the value as an int64, cut off after the point.
//!
//! Null gives null; what does not convert is refused. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/aggregation/toLong/>.

use super::Operator;
use super::conversion::Target;
use super::shorthand::shorthand;

pub(super) const OPERATOR: Operator =
    Operator { name: "$toLong", parse: |argument, parser| shorthand("$toLong", argument, parser, Target::Long) };
