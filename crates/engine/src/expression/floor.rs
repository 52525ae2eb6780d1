//! `{$floor: number}`: the largest whole number that is less than or equal to it; the type stays.
//!
//! A decimal that is infinite or whose whole part has more than 34 digits gives NaN. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/aggregation/floor/>.

use super::Operator;
use super::numeric::unary;
use crate::document::Number;
use crate::document::decimal::Round;
use crate::error::Result;

pub(super) const OPERATOR: Operator =
    Operator { name: "$floor", parse: |argument, parser| unary("$floor", argument, parser, floor) };

fn floor(number: Number) -> Result<Number> {
    Ok(match number {
        Number::Double(number) => Number::Double(number.floor()),
        Number::Decimal(number) => Number::Decimal(number.quantize(0, Round::Floor)),
        other => other,
    })
}
