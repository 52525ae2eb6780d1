//! `{$sinh: number}`: the hyperbolic sine.
//!
//! A decimal gives a decimal, other numbers a double. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/aggregation/sinh/>.

use super::Operator;
use super::numeric::{transcendental, unary};
use crate::document::Number;
use crate::document::decimal::Decimal;
use crate::error::Result;

pub(super) const OPERATOR: Operator =
    Operator { name: "$sinh", parse: |argument, parser| unary("$sinh", argument, parser, sinh) };

fn sinh(number: Number) -> Result<Number> {
    Ok(transcendental(number, f64::sinh, Decimal::sinh))
}
