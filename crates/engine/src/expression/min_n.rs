//! `{$minN: {input, n}}`: the `n` lowest elements of an array, the lowest first; null ones are passed over.
//!
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/aggregation/minN-array-element/>.

use super::Operator;
use super::accumulated::{parse_several, several};

pub(super) const OPERATOR: Operator = Operator {
    name: "$minN",
    parse: |argument, parser| {
        parse_several("$minN", argument, parser, |values, environment| several("$minN", values, environment))
    },
};
