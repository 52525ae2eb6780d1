//! `{$acosh: number}`: the inverse hyperbolic cosine of a number from 1 on.
//!
//! A decimal gives a decimal, other numbers a double. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/aggregation/acosh/>.

use super::Operator;
use super::numeric::{transcendental, unary};
use crate::document::Number;
use crate::document::decimal::Decimal;
use crate::error::{Error, Result};

pub(super) const OPERATOR: Operator =
    Operator { name: "$acosh", parse: |argument, parser| unary("$acosh", argument, parser, acosh) };

fn acosh(number: Number) -> Result<Number> {
    if !number.is_nan() && (number.compare(Number::Int32(1)).is_lt()) {
        return Err(Error::location(50989, "cannot apply $acosh to that value, value must be in [1,inf]"));
    }
    Ok(transcendental(number, f64::acosh, Decimal::acosh))
}
