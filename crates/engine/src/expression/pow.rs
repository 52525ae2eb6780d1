//! `{$pow: [base, exponent]}`: the power; whole numbers stay whole while the result fits and the exponent is not negative.
//!
//! Null when an operand is null; zero to a negative power is refused. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/aggregation/pow/>.

use super::Operator;
use super::numeric::binary;
use crate::document::decimal::{Decimal, MIN_EXPONENT};
use crate::document::{Number, Value};
use crate::error::{Error, Result};

pub(super) const OPERATOR: Operator =
    Operator { name: "$pow", parse: |argument, parser| binary("$pow", argument, parser, pow) };

fn pow(left: &Value<'_>, right: &Value<'_>) -> Result<Value<'static>> {
    let base = Number::of(left.or_null())
        .ok_or_else(|| Error::location(28762, format!("$pow's base must be numeric, not {}", left.type_name())))?;
    let exponent = Number::of(right.or_null())
        .ok_or_else(|| Error::location(28763, format!("$pow's exponent must be numeric, not {}", right.type_name())))?;
    if base.is_zero() && !exponent.is_nan() && exponent.compare(Number::Int32(0)).is_lt() {
        return Err(Error::location(28764, "$pow cannot take a base of 0 and a negative exponent"));
    }
    Ok(power(base, exponent).into())
}

fn power(base: Number, exponent: Number) -> Number {
    if base.is_decimal() || exponent.is_decimal() {
        // The sum with the smallest zero shows all 34 digits, as MongoDB does.
        let smallest_zero = Decimal::finite(false, 0, MIN_EXPONENT);
        return Number::Decimal(base.to_decimal().pow(exponent.to_decimal()).add(smallest_zero));
    }
    if !(base.is_int() && exponent.is_int()) {
        return Number::Double(base.to_f64().powf(exponent.to_f64()));
    }
    let (whole, times) = (base.to_i64_truncated(), exponent.to_i64_truncated());
    let result = match whole {
        0 => Some(i64::from(times == 0)),
        1 => Some(1),
        -1 => Some(if times % 2 == 0 { 1 } else { -1 }),
        _ => u32::try_from(times).ok().and_then(|times| whole.checked_pow(times)),
    };
    match result {
        None => Number::Double(base.to_f64().powf(exponent.to_f64())),
        Some(result) if matches!((base, exponent), (Number::Int32(_), Number::Int32(_))) => Number::int_or_long(result),
        Some(result) => Number::Int64(result),
    }
}
