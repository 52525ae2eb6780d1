//! `{$max: [value, …]}`: the highest of its operands, or of the elements of a single operand that is an array; null
//! without any.
//!
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/aggregation/max/>.

use super::Operator;
use super::accumulated::{fold, parse_fold};

pub(super) const OPERATOR: Operator = Operator {
    name: "$max",
    parse: |argument, parser| {
        parse_fold("$max", argument, parser, |values, environment| fold("$max", values, environment))
    },
};
