//! `{$cosh: number}`: the hyperbolic cosine.
//!
//! A decimal gives a decimal, other numbers a double. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/aggregation/cosh/>.

use super::Operator;
use super::numeric::{transcendental, unary};
use crate::document::Number;
use crate::document::decimal::Decimal;
use crate::error::Result;

pub(super) const OPERATOR: Operator =
    Operator { name: "$cosh", parse: |argument, parser| unary("$cosh", argument, parser, cosh) };

fn cosh(number: Number) -> Result<Number> {
    Ok(transcendental(number, f64::cosh, Decimal::cosh))
}
