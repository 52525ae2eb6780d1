//! `{$stdDevPop: [value, …]}`: the standard deviation of the numbers among its operands, or in a single operand that is
//! an array.
//!
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/aggregation/stdDevPop/>.

use super::Operator;
use super::accumulated::{fold, parse_fold};

pub(super) const OPERATOR: Operator = Operator {
    name: "$stdDevPop",
    parse: |argument, parser| {
        parse_fold("$stdDevPop", argument, parser, |values, environment| fold("$stdDevPop", values, environment))
    },
};
