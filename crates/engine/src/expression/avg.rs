//! `{$avg: [value, …]}`: the mean of the numbers among its operands, or in a single operand that is an array; null
//! without any.
//!
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/aggregation/avg/>.

use super::Operator;
use super::accumulated::{fold, parse_fold};

pub(super) const OPERATOR: Operator = Operator {
    name: "$avg",
    parse: |argument, parser| {
        parse_fold("$avg", argument, parser, |values, environment| fold("$avg", values, environment))
    },
};
