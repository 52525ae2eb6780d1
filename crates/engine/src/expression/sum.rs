//! `{$sum: [value, …]}`: the sum of the numbers among its operands, or in a single operand that is an array.
//!
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/aggregation/sum/>.

use super::Operator;
use super::accumulated::{fold, parse_fold};

pub(super) const OPERATOR: Operator = Operator {
    name: "$sum",
    parse: |argument, parser| {
        parse_fold("$sum", argument, parser, |values, environment| fold("$sum", values, environment))
    },
};
