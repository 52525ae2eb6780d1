//! `{$eq: [a, b]}`: whether two values are equal, in BSON order.
//!
//! Values of different types compare by type; a missing value comes before null. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/aggregation/eq/>.

use super::Operator;
use super::comparison::comparison;
use crate::document::Value;

pub(super) const OPERATOR: Operator = Operator {
    name: "$eq",
    parse: |argument, parser| comparison("$eq", argument, parser, |order| Value::from(order.is_eq())),
};
