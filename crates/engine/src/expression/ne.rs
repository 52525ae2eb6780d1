//! `{$ne: [a, b]}`: whether two values differ, in BSON order.
//!
//! Values of different types compare by type; a missing value comes before null. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/aggregation/ne/>.

use super::Operator;
use super::comparison::comparison;
use crate::document::Value;

pub(super) const OPERATOR: Operator = Operator {
    name: "$ne",
    parse: |argument, parser| comparison("$ne", argument, parser, |order| Value::from(order.is_ne())),
};
