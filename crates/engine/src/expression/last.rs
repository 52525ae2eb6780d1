//! `{$last: array}`: the last element of an array.
//!
//! Missing when the array is empty, null when it is null or missing. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/aggregation/last/>.

use super::Operator;
use super::array_elem_at::end_of;
use super::operand::function;

pub(super) const OPERATOR: Operator = Operator {
    name: "$last",
    parse: |argument, parser| function("$last", argument, parser, |[array], _| end_of("$last", array, true)),
};
