//! `{$atanh: number}`: the inverse hyperbolic tangent of a number from -1 to 1.
//!
//! A decimal gives a decimal, other numbers a double. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/aggregation/atanh/>.

use super::Operator;
use super::numeric::{transcendental, unary};
use crate::document::Number;
use crate::document::decimal::Decimal;
use crate::error::{Error, Result};

pub(super) const OPERATOR: Operator =
    Operator { name: "$atanh", parse: |argument, parser| unary("$atanh", argument, parser, atanh) };

fn atanh(number: Number) -> Result<Number> {
    if !number.is_nan() && (number.compare(Number::Int32(-1)).is_lt() || number.compare(Number::Int32(1)).is_gt()) {
        return Err(Error::location(50989, "cannot apply $atanh to that value, value must be in [-1,1]"));
    }
    Ok(transcendental(number, f64::atanh, Decimal::atanh))
}
