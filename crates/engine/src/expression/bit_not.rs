//! `{$bitNot: integer}`: the bitwise complement of an int32 or int64.
//!
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/aggregation/bitNot/>.

use super::Operator;
use super::numeric::unary;
use crate::document::Number;
use crate::error::{Error, Result};

pub(super) const OPERATOR: Operator =
    Operator { name: "$bitNot", parse: |argument, parser| unary("$bitNot", argument, parser, bit_not) };

fn bit_not(number: Number) -> Result<Number> {
    match number {
        Number::Int32(number) => Ok(Number::Int32(!number)),
        Number::Int64(number) => Ok(Number::Int64(!number)),
        _ => Err(Error::location(28765, "$bitNot only supports int and long operands")),
    }
}
