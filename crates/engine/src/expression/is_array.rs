//! `{$isArray: value}`: whether a value is an array.
//!
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/aggregation/isArray/>.

use super::Operator;
use super::operand::{as_array, function};
use crate::document::Value;

pub(super) const OPERATOR: Operator = Operator {
    name: "$isArray",
    parse: |argument, parser| {
        function("$isArray", argument, parser, |[value], _| Ok(Value::from(as_array(&value).is_some())))
    },
};
