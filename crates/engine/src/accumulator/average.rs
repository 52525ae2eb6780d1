//! `$avg`: the mean of the numbers, null without any; other values are passed over.
//!
//! The result is a double, or a decimal when a decimal is among the numbers. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/aggregation/avg/>.

use super::summation::Sum;
use super::{Accumulator, Options};
use crate::document::Value;
use crate::document::decimal::Decimal;
use crate::document::number::Number;
use crate::error::Result;

pub(super) fn start(_: &Options) -> Box<dyn Accumulator> {
    Box::new(Average::default())
}

#[derive(Debug, Default)]
struct Average {
    sum: Sum,
}

impl Accumulator for Average {
    fn add(&mut self, value: Value<'_>) -> Result<()> {
        Accumulator::add(&mut self.sum, value)
    }

    fn remove(&mut self, value: Value<'_>) -> Result<()> {
        self.sum.remove(value)
    }

    fn result(&self) -> Result<Value<'static>> {
        let count = self.sum.count();
        if count == 0 {
            return Ok(Value::NULL);
        }
        if self.sum.has_decimal() {
            let (sum, count) = (self.sum.to_decimal(), Decimal::from(i64::try_from(count).unwrap_or(i64::MAX)));
            return Ok(Number::Decimal(if sum.is_nan() { sum } else { sum.divide(count) }).into());
        }
        Ok(Value::from(self.sum.to_f64() / count as f64))
    }

    fn size_bytes(&self) -> usize {
        size_of::<Average>()
    }
}
