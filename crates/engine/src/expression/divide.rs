//! `{$divide: [dividend, divisor]}`: the quotient as a double, or as a decimal when either operand is one.
//!
//! Null when an operand is null; a divisor of zero is refused. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/aggregation/divide/>.

use super::Operator;
use super::numeric::binary;
use crate::document::{Number, Value};
use crate::error::{Error, Result};

pub(super) const OPERATOR: Operator =
    Operator { name: "$divide", parse: |argument, parser| binary("$divide", argument, parser, divide) };

fn divide(left: &Value<'_>, right: &Value<'_>) -> Result<Value<'static>> {
    let (Some(dividend), Some(divisor)) = (Number::of(left.or_null()), Number::of(right.or_null())) else {
        return Err(Error::type_mismatch(format!(
            "$divide only supports numeric types, not {} and {}",
            left.type_name(),
            right.type_name()
        )));
    };
    if divisor.is_zero() {
        return Err(Error::bad_value("can't $divide by zero"));
    }
    Ok(dividend.divide(divisor).into())
}
