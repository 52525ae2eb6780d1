//! `{$tan: number}`: the tangent of an angle in radians.
//!
//! A decimal gives a decimal, other numbers a double. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/aggregation/tan/>.

use super::Operator;
use super::numeric::{transcendental, unary};
use crate::document::Number;
use crate::document::decimal::Decimal;
use crate::error::{Error, Result};

pub(super) const OPERATOR: Operator =
    Operator { name: "$tan", parse: |argument, parser| unary("$tan", argument, parser, tan) };

fn tan(number: Number) -> Result<Number> {
    if !number.is_nan() && !number.is_finite() {
        return Err(Error::location(50989, "cannot apply $tan to an infinite value, value must be in (-inf, inf)"));
    }
    Ok(transcendental(number, f64::tan, Decimal::tan))
}
