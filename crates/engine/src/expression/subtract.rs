//! `{$subtract: [a, b]}`: the difference of two numbers, of two dates in milliseconds, or of a date and milliseconds.
//!
//! Null when an operand is null. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/aggregation/subtract/>.

use super::Operator;
use super::add::date_millis;
use super::numeric::binary;
use crate::Code;
use crate::document::{Number, Value};
use crate::error::{Error, Result};
use bson::{DateTime, RawBsonRef};

pub(super) const OPERATOR: Operator =
    Operator { name: "$subtract", parse: |argument, parser| binary("$subtract", argument, parser, subtract) };

fn subtract(left: &Value<'_>, right: &Value<'_>) -> Result<Value<'static>> {
    let (a, b) = (left.or_null(), right.or_null());
    if let (Some(a), Some(b)) = (Number::of(a), Number::of(b)) {
        return Ok(a.subtract(b).into());
    }
    let overflow = || Error::new(Code::OVERFLOW, "date overflow in $subtract");
    match (a, b) {
        (RawBsonRef::DateTime(a), RawBsonRef::DateTime(b)) => {
            let millis = a.timestamp_millis().checked_sub(b.timestamp_millis());
            Ok(millis.ok_or_else(overflow)?.into())
        }
        (RawBsonRef::DateTime(date), number) if Number::of(number).is_some() => {
            let amount = Number::of(number).and_then(date_millis).ok_or_else(overflow)?;
            let millis = date.timestamp_millis().checked_sub(amount).ok_or_else(overflow)?;
            Ok(DateTime::from_millis(millis).into())
        }
        _ => Err(Error::type_mismatch(format!(
            "can't $subtract {} from {}: give two numbers, two dates, or a date and a number",
            right.type_name(),
            left.type_name()
        ))),
    }
}
