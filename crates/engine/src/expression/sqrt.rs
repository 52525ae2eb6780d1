//! `{$sqrt: number}`: the square root of a number that is not negative; a decimal for a decimal, otherwise a double.
//!
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/aggregation/sqrt/>.

use super::Operator;
use super::numeric::{transcendental, unary};
use crate::document::Number;
use crate::document::decimal::Decimal;
use crate::error::{Error, Result};
use std::cmp::Ordering;

pub(super) const OPERATOR: Operator =
    Operator { name: "$sqrt", parse: |argument, parser| unary("$sqrt", argument, parser, sqrt) };

fn sqrt(number: Number) -> Result<Number> {
    if !number.is_nan() && number.compare(Number::Int32(0)) == Ordering::Less {
        return Err(Error::location(28714, "$sqrt's argument must be greater than or equal to 0"));
    }
    Ok(transcendental(number, f64::sqrt, Decimal::sqrt))
}
