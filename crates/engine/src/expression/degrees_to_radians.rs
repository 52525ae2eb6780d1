//! `{$degreesToRadians: number}`: that many degrees in radians.
//!
//! A decimal gives a decimal, other numbers a double. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/aggregation/degreesToRadians/>.

use super::Operator;
use super::numeric::{transcendental, unary};
use crate::document::Number;
use crate::document::decimal::Decimal;
use crate::error::Result;

pub(super) const OPERATOR: Operator = Operator {
    name: "$degreesToRadians",
    parse: |argument, parser| unary("$degreesToRadians", argument, parser, degrees_to_radians),
};

fn degrees_to_radians(number: Number) -> Result<Number> {
    Ok(transcendental(number, f64::to_radians, Decimal::to_radians))
}
