//! `{$toDecimal: expression}`: the value as a decimal; a double keeps 15 digits.
//!
//! Null gives null; what does not convert is refused. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/aggregation/toDecimal/>.

use super::Operator;
use super::conversion::Target;
use super::shorthand::shorthand;

pub(super) const OPERATOR: Operator = Operator {
    name: "$toDecimal",
    parse: |argument, parser| shorthand("$toDecimal", argument, parser, Target::Decimal),
};
