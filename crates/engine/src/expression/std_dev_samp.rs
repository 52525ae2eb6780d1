//! `{$stdDevSamp: [value, …]}`: the standard deviation of a population of which its operands are a sample.
//!
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/aggregation/stdDevSamp/>.

use super::Operator;
use super::accumulated::{fold, parse_fold};

pub(super) const OPERATOR: Operator = Operator {
    name: "$stdDevSamp",
    parse: |argument, parser| {
        parse_fold("$stdDevSamp", argument, parser, |values, environment| fold("$stdDevSamp", values, environment))
    },
};
