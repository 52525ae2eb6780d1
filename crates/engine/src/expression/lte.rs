//! `{$lte: [a, b]}`: whether the first value comes before the second or equals it, in BSON order.
//!
//! Values of different types compare by type; a missing value comes before null. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/aggregation/lte/>.

use super::Operator;
use super::comparison::comparison;
use crate::document::Value;

pub(super) const OPERATOR: Operator = Operator {
    name: "$lte",
    parse: |argument, parser| comparison("$lte", argument, parser, |order| Value::from(order.is_le())),
};
