//! `{$log: [number, base]}`: the logarithm of a positive number to a positive base other than one.
//!
//! Null when an operand is null; a decimal when either is one, otherwise a double. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/aggregation/log/>.

use super::Operator;
use super::numeric::binary;
use crate::document::{Number, Value};
use crate::error::{Error, Result};

pub(super) const OPERATOR: Operator =
    Operator { name: "$log", parse: |argument, parser| binary("$log", argument, parser, log) };

fn log(left: &Value<'_>, right: &Value<'_>) -> Result<Value<'static>> {
    let number = Number::of(left.or_null())
        .ok_or_else(|| Error::location(28756, format!("$log's argument must be numeric, not {}", left.type_name())))?;
    let base = Number::of(right.or_null())
        .ok_or_else(|| Error::location(28757, format!("$log's base must be numeric, not {}", right.type_name())))?;
    if number.is_nan() || base.is_nan() {
        return Ok(f64::NAN.into());
    }
    let not_positive = |number: Number| number.compare(Number::Int32(0)).is_le();
    if not_positive(number) {
        return Err(Error::location(28758, "$log's argument must be a positive number"));
    }
    if not_positive(base) || base.compare(Number::Int32(1)).is_eq() {
        return Err(Error::location(28759, "$log's base must be a positive number not equal to 1"));
    }
    if number.is_decimal() || base.is_decimal() {
        return Ok(Number::Decimal(number.to_decimal().ln().divide(base.to_decimal().ln())).into());
    }
    Ok((number.to_f64().ln() / base.to_f64().ln()).into())
}
