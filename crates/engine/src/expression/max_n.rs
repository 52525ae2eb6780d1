//! `{$maxN: {input, n}}`: the `n` highest elements of an array, the highest first; null ones are passed over.
//!
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/aggregation/maxN-array-element/>.

use super::Operator;
use super::accumulated::{parse_several, several};

pub(super) const OPERATOR: Operator = Operator {
    name: "$maxN",
    parse: |argument, parser| {
        parse_several("$maxN", argument, parser, |values, environment| several("$maxN", values, environment))
    },
};
