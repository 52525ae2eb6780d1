//! `{$min: [value, …]}`: the lowest of its operands, or of the elements of a single operand that is an array; null
//! without any.
//!
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/aggregation/min/>.

use super::Operator;
use super::accumulated::{fold, parse_fold};

pub(super) const OPERATOR: Operator = Operator {
    name: "$min",
    parse: |argument, parser| {
        parse_fold("$min", argument, parser, |values, environment| fold("$min", values, environment))
    },
};
