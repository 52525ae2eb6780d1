//! `{$radiansToDegrees: number}`: that many radians in degrees.
//!
//! A decimal gives a decimal, other numbers a double. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/aggregation/radiansToDegrees/>.

use super::Operator;
use super::numeric::{transcendental, unary};
use crate::document::Number;
use crate::document::decimal::Decimal;
use crate::error::Result;

pub(super) const OPERATOR: Operator = Operator {
    name: "$radiansToDegrees",
    parse: |argument, parser| unary("$radiansToDegrees", argument, parser, radians_to_degrees),
};

fn radians_to_degrees(number: Number) -> Result<Number> {
    Ok(transcendental(number, f64::to_degrees, Decimal::to_degrees))
}
