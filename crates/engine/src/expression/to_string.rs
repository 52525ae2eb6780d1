//! `{$toString: expression}`: the value as a string.
//!
//! Null gives null; what does not convert is refused. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/aggregation/toString/>.

use super::Operator;
use super::conversion::Target;
use super::shorthand::shorthand;

pub(super) const OPERATOR: Operator =
    Operator { name: "$toString", parse: |argument, parser| shorthand("$toString", argument, parser, Target::String) };
