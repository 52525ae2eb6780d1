//! `$stdDevPop`, `$stdDevSamp`: the standard deviation of the numbers, of a population or of a sample of it; other values
//! are passed over.
//!
//! Null without a number, and for a sample with a single one. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/aggregation/stdDevPop/> and `stdDevSamp`.

use super::Accumulator;
use super::summation::Sum;
use crate::document::Value;
use crate::document::number::Number;
use crate::error::Result;

pub(super) fn start(sample: bool) -> Box<dyn Accumulator> {
    Box::new(StdDev { sample, count: 0, mean: 0.0, squares: 0.0 })
}

pub(super) fn start_removable(sample: bool) -> Box<dyn Accumulator> {
    Box::new(SlidingStdDev { sample, count: 0, sum: Sum::default(), squares: Sum::default(), infinite: 0 })
}

/// Welford's running mean and sum of squared differences.
#[derive(Debug)]
struct StdDev {
    sample: bool,
    count: u64,
    mean: f64,
    squares: f64,
}

impl Accumulator for StdDev {
    fn add(&mut self, value: Value<'_>) -> Result<()> {
        let Some(number) = value.get().and_then(Number::of) else { return Ok(()) };
        let number = number.to_f64();
        self.count += 1;
        let delta = number - self.mean;
        if delta != 0.0 {
            self.mean += delta / self.count as f64;
            self.squares += delta * (number - self.mean);
        }
        Ok(())
    }

    fn result(&self) -> Result<Value<'static>> {
        Ok(match self.count - u64::from(self.sample && self.count > 0) {
            0 => Value::NULL,
            _ if self.squares.is_nan() => Value::from(f64::NAN),
            count => Value::from((self.squares / count as f64).sqrt()),
        })
    }

    fn size_bytes(&self) -> usize {
        size_of::<StdDev>()
    }
}

/// The same from sums that values can be taken out of again.
#[derive(Debug)]
struct SlidingStdDev {
    sample: bool,
    count: u64,
    sum: Sum,
    squares: Sum,
    infinite: u64,
}

impl SlidingStdDev {
    /// What a number adds to the squared differences of `count` others that sum up to `sum`.
    fn share(&self, number: f64) -> f64 {
        let count = self.count as f64;
        let delta = count * number - self.sum.to_f64();
        delta * delta / (count * (count + 1.0))
    }
}

impl Accumulator for SlidingStdDev {
    fn add(&mut self, value: Value<'_>) -> Result<()> {
        let Some(number) = value.get().and_then(Number::of) else { return Ok(()) };
        if !number.is_finite() {
            self.infinite += 1;
            return Ok(());
        }
        if self.count > 0 {
            self.squares.add(Number::Double(self.share(number.to_f64())));
        }
        self.count += 1;
        self.sum.add(number);
        Ok(())
    }

    fn remove(&mut self, value: Value<'_>) -> Result<()> {
        let Some(number) = value.get().and_then(Number::of) else { return Ok(()) };
        if !number.is_finite() {
            self.infinite -= 1;
            return Ok(());
        }
        self.count -= 1;
        self.sum.subtract(number);
        if self.count == 0 {
            self.squares = Sum::default();
        } else {
            // What is taken adds up beside what was added, so that the sum keeps its digits.
            self.squares.add(Number::Double(-self.share(number.to_f64())));
        }
        Ok(())
    }

    fn result(&self) -> Result<Value<'static>> {
        if self.infinite > 0 {
            return Ok(Value::NULL);
        }
        Ok(match self.count - u64::from(self.sample && self.count > 0) {
            0 => Value::NULL,
            _ if self.count == 1 => Value::from(0),
            count => Value::from((self.squares.to_f64().max(0.0) / count as f64).sqrt()),
        })
    }

    fn size_bytes(&self) -> usize {
        size_of::<SlidingStdDev>()
    }
}
