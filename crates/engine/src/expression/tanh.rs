//! `{$tanh: number}`: the hyperbolic tangent.
//!
//! A decimal gives a decimal, other numbers a double. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/aggregation/tanh/>.

use super::Operator;
use super::numeric::{transcendental, unary};
use crate::document::Number;
use crate::document::decimal::Decimal;
use crate::error::Result;

pub(super) const OPERATOR: Operator =
    Operator { name: "$tanh", parse: |argument, parser| unary("$tanh", argument, parser, tanh) };

fn tanh(number: Number) -> Result<Number> {
    Ok(transcendental(number, f64::tanh, Decimal::tanh))
}
