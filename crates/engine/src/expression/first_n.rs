//! `{$firstN: {input, n}}`: the first `n` elements of an array.
//!
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/aggregation/firstN/>.

use super::Operator;
use super::accumulated::{parse_several, several};

pub(super) const OPERATOR: Operator = Operator {
    name: "$firstN",
    parse: |argument, parser| {
        parse_several("$firstN", argument, parser, |values, environment| several("$firstN", values, environment))
    },
};
