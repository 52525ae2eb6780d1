//! `{$atan: number}`: the arc tangent in radians.
//!
//! A decimal gives a decimal, other numbers a double. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/aggregation/atan/>.

use super::Operator;
use super::numeric::{transcendental, unary};
use crate::document::Number;
use crate::document::decimal::Decimal;
use crate::error::Result;

pub(super) const OPERATOR: Operator =
    Operator { name: "$atan", parse: |argument, parser| unary("$atan", argument, parser, atan) };

fn atan(number: Number) -> Result<Number> {
    Ok(transcendental(number, f64::atan, Decimal::atan))
}
