//! `{$mod: [dividend, divisor]}`: the remainder, with the dividend's sign.
//!
//! Null when an operand is null; a divisor of zero is refused. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/aggregation/mod/>.

use super::Operator;
use super::numeric::binary;
use crate::document::{Number, Value};
use crate::error::{Error, Result};

pub(super) const OPERATOR: Operator =
    Operator { name: "$mod", parse: |argument, parser| binary("$mod", argument, parser, modulo) };

fn modulo(left: &Value<'_>, right: &Value<'_>) -> Result<Value<'static>> {
    let (Some(dividend), Some(divisor)) = (Number::of(left.or_null()), Number::of(right.or_null())) else {
        return Err(Error::location(
            16611,
            format!("$mod only supports numeric types, not {} and {}", left.type_name(), right.type_name()),
        ));
    };
    if divisor.is_zero() && (dividend.is_decimal() || divisor.is_decimal()) {
        return Err(Error::location(5733415, "can't $mod by zero"));
    }
    if divisor.is_zero() {
        return Err(Error::location(16610, "can't $mod by zero"));
    }
    Ok(dividend.modulo(divisor).into())
}
