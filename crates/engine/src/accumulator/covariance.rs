//! `$covariancePop`, `$covarianceSamp`: the covariance of pairs `[x, y]`, of a population or of a sample of it; what is no
//! pair of numbers is passed over.
//!
//! Null without a pair, and for a sample with a single one. Pairs that are not finite make the result infinite or NaN as
//! long as they are in. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/aggregation/covariancePop/> and `covarianceSamp`.

use super::Accumulator;
use super::summation::Sum;
use crate::document::Value;
use crate::document::number::Number;
use crate::error::Result;
use bson::RawBsonRef;

pub(super) fn start(sample: bool) -> Box<dyn Accumulator> {
    Box::new(Covariance { sample, count: 0, x: Sum::default(), y: Sum::default(), product: Sum::default() })
}

/// The sum of `(x - mean of x before) · (y - mean of y after)` over the pairs as they came.
#[derive(Debug)]
struct Covariance {
    sample: bool,
    count: i32,
    x: Sum,
    y: Sum,
    product: Sum,
}

impl Covariance {
    fn mean(&self, sum: &Sum) -> Number {
        match self.count {
            0 => Number::Int32(0),
            count => sum.number().divide(Number::Double(count.into())),
        }
    }
}

fn pair(value: &Value<'_>) -> Option<(Number, Number)> {
    let Some(RawBsonRef::Array(array)) = value.get() else { return None };
    let mut parts = array.into_iter().map(|part| part.ok().and_then(Number::of));
    match (parts.next(), parts.next(), parts.next()) {
        (Some(Some(x)), Some(Some(y)), None) => Some((x, y)),
        _ => None,
    }
}

impl Accumulator for Covariance {
    fn add(&mut self, value: Value<'_>) -> Result<()> {
        let Some((x, y)) = pair(&value) else { return Ok(()) };
        if !x.is_finite() || !y.is_finite() {
            self.product.add(x.add(y));
            return Ok(());
        }
        let from_mean = x.subtract(self.mean(&self.x));
        self.count += 1;
        self.x.add(x);
        self.y.add(y);
        if self.count > 1 {
            self.product.add(from_mean.multiply(y.subtract(self.mean(&self.y))));
        }
        Ok(())
    }

    fn remove(&mut self, value: Value<'_>) -> Result<()> {
        let Some((x, y)) = pair(&value) else { return Ok(()) };
        if !x.is_finite() || !y.is_finite() {
            self.product.subtract(x.add(y));
            return Ok(());
        }
        let from_mean = y.subtract(self.mean(&self.y));
        self.count -= 1;
        self.x.subtract(x);
        self.y.subtract(y);
        if self.count > 0 {
            let share = x.subtract(self.mean(&self.x)).multiply(from_mean);
            self.product.subtract(share);
        }
        Ok(())
    }

    fn result(&self) -> Result<Value<'static>> {
        Ok(match self.count - i32::from(self.sample) {
            count if count <= 0 => Value::NULL,
            _ if self.count == 1 => Value::from(0.0),
            count => self.product.number().divide(Number::Double(count.into())).into(),
        })
    }

    fn size_bytes(&self) -> usize {
        size_of::<Covariance>()
    }
}
