//! `{$atan2: [y, x]}`: the angle, in radians, of the point `(x, y)`.
//!
//! Null when an operand is null; a decimal when either is one, otherwise a double. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/aggregation/atan2/>.

use super::Operator;
use super::numeric::binary;
use crate::document::{Number, Value};
use crate::error::{Error, Result};

pub(super) const OPERATOR: Operator =
    Operator { name: "$atan2", parse: |argument, parser| binary("$atan2", argument, parser, atan2) };

fn atan2(left: &Value<'_>, right: &Value<'_>) -> Result<Value<'static>> {
    let number = |value: &Value<'_>, code| {
        Number::of(value.or_null()).ok_or_else(|| {
            Error::location(code, format!("$atan2 only supports numeric types, not {}", value.type_name()))
        })
    };
    let (y, x) = (number(left, 51044)?, number(right, 51045)?);
    if y.is_decimal() || x.is_decimal() {
        return Ok(Number::Decimal(y.to_decimal().atan2(x.to_decimal())).into());
    }
    Ok(y.to_f64().atan2(x.to_f64()).into())
}
