//! `{$exp: number}`: e to that power; a decimal for a decimal, otherwise a double.
//!
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/aggregation/exp/>.

use super::Operator;
use super::numeric::{transcendental, unary};
use crate::document::Number;
use crate::document::decimal::Decimal;
use crate::error::Result;

pub(super) const OPERATOR: Operator =
    Operator { name: "$exp", parse: |argument, parser| unary("$exp", argument, parser, exp) };

fn exp(number: Number) -> Result<Number> {
    Ok(transcendental(number, f64::exp, Decimal::exp))
}
