//! `{$lt: [a, b]}`: whether the first value comes before the second, in BSON order.
//!
//! Values of different types compare by type; a missing value comes before null. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/aggregation/lt/>.

use super::Operator;
use super::comparison::comparison;
use crate::document::Value;

pub(super) const OPERATOR: Operator = Operator {
    name: "$lt",
    parse: |argument, parser| comparison("$lt", argument, parser, |order| Value::from(order.is_lt())),
};
