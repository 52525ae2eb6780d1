//! `$expMovingAvg`: an average in which older rows count less and less.
//!
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/aggregation/expMovingAvg/>.

use super::Rows;
use crate::document::Value;
use crate::document::number::Number;
use crate::error::Result;

/// How much the current row counts.
#[derive(Clone, Copy, Debug)]
pub enum Alpha {
    /// `2 / (N + 1)`.
    FromN(i64),
    /// As given, above 0 and below 1.
    Given(Number),
}

impl Alpha {
    fn number(self, decimal: bool) -> Number {
        match self {
            Alpha::FromN(n) if decimal => {
                Number::Decimal(Number::Int64(2).to_decimal().divide(Number::Int64(n.saturating_add(1)).to_decimal()))
            }
            Alpha::FromN(n) => Number::Double(2.0 / (n as f64 + 1.0)),
            Alpha::Given(alpha) => alpha,
        }
    }
}

pub(super) fn exponential_average(rows: &Rows<'_>, alpha: Alpha) -> Result<Vec<Value<'static>>> {
    let mut average: Option<Number> = None;
    let mut averages = Vec::with_capacity(rows.len());
    for value in rows.operands {
        if let Some(number) = value.get().and_then(Number::of) {
            average = Some(match average {
                None if number.is_decimal() => number,
                None => Number::Double(number.to_f64()),
                Some(before) => {
                    let alpha = alpha.number(number.is_decimal() || before.is_decimal());
                    number.multiply(alpha).add(before.multiply(Number::Int32(1).subtract(alpha)))
                }
            });
        }
        averages.push(average.map_or(Value::NULL, Value::from));
    }
    Ok(averages)
}
