//! `{$ceil: number}`: the smallest whole number that is greater than or equal to it; the type stays.
//!
//! A decimal that is infinite or whose whole part has more than 34 digits gives NaN. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/aggregation/ceil/>.

use super::Operator;
use super::numeric::unary;
use crate::document::Number;
use crate::document::decimal::Round;
use crate::error::Result;

pub(super) const OPERATOR: Operator =
    Operator { name: "$ceil", parse: |argument, parser| unary("$ceil", argument, parser, ceil) };

fn ceil(number: Number) -> Result<Number> {
    Ok(match number {
        Number::Double(number) => Number::Double(number.ceil()),
        Number::Decimal(number) => Number::Decimal(number.quantize(0, Round::Ceiling)),
        other => other,
    })
}
