//! `{$asinh: number}`: the inverse hyperbolic sine.
//!
//! A decimal gives a decimal, other numbers a double. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/aggregation/asinh/>.

use super::Operator;
use super::numeric::{transcendental, unary};
use crate::document::Number;
use crate::document::decimal::Decimal;
use crate::error::Result;

pub(super) const OPERATOR: Operator =
    Operator { name: "$asinh", parse: |argument, parser| unary("$asinh", argument, parser, asinh) };

fn asinh(number: Number) -> Result<Number> {
    Ok(transcendental(number, f64::asinh, Decimal::asinh))
}
