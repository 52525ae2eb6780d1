//! `{$cos: number}`: the cosine of an angle in radians.
//!
//! A decimal gives a decimal, other numbers a double. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/aggregation/cos/>.

use super::Operator;
use super::numeric::{transcendental, unary};
use crate::document::Number;
use crate::document::decimal::Decimal;
use crate::error::{Error, Result};

pub(super) const OPERATOR: Operator =
    Operator { name: "$cos", parse: |argument, parser| unary("$cos", argument, parser, cos) };

fn cos(number: Number) -> Result<Number> {
    if !number.is_nan() && !number.is_finite() {
        return Err(Error::location(50989, "cannot apply $cos to an infinite value, value must be in (-inf, inf)"));
    }
    Ok(transcendental(number, f64::cos, Decimal::cos))
}
