//! `{$cmp: [a, b]}`: -1, 0 or 1: the order of two values, in BSON order.
//!
//! Values of different types compare by type; a missing value comes before null. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/aggregation/cmp/>.

use super::Operator;
use super::comparison::comparison;
use crate::document::Value;

pub(super) const OPERATOR: Operator = Operator {
    name: "$cmp",
    parse: |argument, parser| comparison("$cmp", argument, parser, |order| Value::from(order as i32)),
};
