//! `{$toDouble: expression}`: the value as a double.
//!
//! Null gives null; what does not convert is refused. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/aggregation/toDouble/>.

use super::Operator;
use super::conversion::Target;
use super::shorthand::shorthand;

pub(super) const OPERATOR: Operator =
    Operator { name: "$toDouble", parse: |argument, parser| shorthand("$toDouble", argument, parser, Target::Double) };
