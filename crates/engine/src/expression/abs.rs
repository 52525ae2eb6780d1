//! `{$abs: number}`: the number without its sign.
//!
//! The least int32 gives an int64; the least int64 is refused, for no int64 holds the result. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/aggregation/abs/>.

use super::Operator;
use super::numeric::unary;
use crate::document::Number;
use crate::error::{Error, Result};

pub(super) const OPERATOR: Operator =
    Operator { name: "$abs", parse: |argument, parser| unary("$abs", argument, parser, abs) };

fn abs(number: Number) -> Result<Number> {
    Ok(match number {
        Number::Int32(number) => Number::int_or_long(i64::from(number).abs()),
        Number::Int64(number) => Number::Int64(
            number.checked_abs().ok_or_else(|| Error::location(28680, "can't take $abs of long long min"))?,
        ),
        Number::Double(number) => Number::Double(number.abs()),
        Number::Decimal(number) => Number::Decimal(number.abs()),
    })
}
