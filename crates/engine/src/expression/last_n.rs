//! `{$lastN: {input, n}}`: the last `n` elements of an array.
//!
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/aggregation/lastN/>.

use super::Operator;
use super::accumulated::{parse_several, several};

pub(super) const OPERATOR: Operator = Operator {
    name: "$lastN",
    parse: |argument, parser| {
        parse_several("$lastN", argument, parser, |values, environment| several("$lastN", values, environment))
    },
};
