//! `{$log10: number}`: the logarithm to base ten of a positive number; a decimal for a decimal, otherwise a double (NaN always is one).
//!
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/aggregation/log10/>.

use super::Operator;
use super::numeric::{transcendental, unary};
use crate::document::Number;
use crate::document::decimal::Decimal;
use crate::error::{Error, Result};
use std::cmp::Ordering;

pub(super) const OPERATOR: Operator =
    Operator { name: "$log10", parse: |argument, parser| unary("$log10", argument, parser, log10) };

fn log10(number: Number) -> Result<Number> {
    if number.is_nan() {
        return Ok(Number::Double(f64::NAN));
    }
    if number.compare(Number::Int32(0)) != Ordering::Greater {
        return Err(Error::location(
            28761,
            format!("$log10's argument must be a positive number, but is {}", number.to_decimal()),
        ));
    }
    Ok(transcendental(number, f64::log10, Decimal::log10))
}
