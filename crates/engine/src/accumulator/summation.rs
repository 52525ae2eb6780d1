//! `$sum`: the sum of the numbers; other values are passed over.
//!
//! Integers are summed exactly; the result is an int32 or int64 that holds it, or a double when none does. Doubles are
//! summed with twice their digits, so that the order hardly matters. With a decimal among them the result is a decimal.
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/aggregation/sum/>.

use super::{Accumulator, Options};
use crate::document::Value;
use crate::document::decimal::Decimal;
use crate::document::number::Number;
use crate::error::Result;

pub(super) fn start(_: &Options) -> Box<dyn Accumulator> {
    Box::new(Sum::default())
}

/// A running sum of numbers of all types, from which numbers may be taken again.
#[derive(Clone, Debug, Default)]
pub struct Sum {
    whole: i128,
    doubles: DoubleDouble,
    decimals: Option<Decimal>,
    int32s: u64,
    int64s: u64,
    double_count: u64,
    decimal_count: u64,
    nans: u64,
    /// The first decimal NaN, whose sign the result has.
    decimal_nan: Option<Decimal>,
    infinities: u64,
    negative_infinities: u64,
}

impl Sum {
    /// Adds a number.
    pub fn add(&mut self, number: Number) {
        self.change(number, true);
    }

    /// Takes a number that was added before.
    pub fn subtract(&mut self, number: Number) {
        self.change(number, false);
    }

    fn change(&mut self, number: Number, add: bool) {
        let step = |counter: &mut u64| if add { *counter += 1 } else { *counter -= 1 };
        match number {
            Number::Int32(_) => step(&mut self.int32s),
            Number::Int64(_) => step(&mut self.int64s),
            Number::Double(_) => step(&mut self.double_count),
            Number::Decimal(_) => step(&mut self.decimal_count),
        }
        if !number.is_finite() {
            if number.is_nan() {
                step(&mut self.nans);
                if let Number::Decimal(nan) = number {
                    self.decimal_nan.get_or_insert(nan);
                }
            } else if number.to_f64() > 0.0 {
                step(&mut self.infinities);
            } else {
                step(&mut self.negative_infinities);
            }
            return;
        }
        match number {
            Number::Int32(number) => self.whole += i128::from(if add { i64::from(number) } else { -i64::from(number) }),
            Number::Int64(number) => self.whole += if add { i128::from(number) } else { -i128::from(number) },
            Number::Double(number) => self.doubles.add(if add { number } else { -number }),
            Number::Decimal(number) => {
                let sum = self.decimals.unwrap_or(Decimal::ZERO);
                self.decimals = Some(if add { sum.add(number) } else { sum.subtract(number) });
            }
        }
        if self.decimal_count == 0 {
            self.decimals = None;
        }
        if self.double_count == 0 {
            self.doubles = DoubleDouble::default();
        }
    }

    /// How many numbers are in.
    pub fn count(&self) -> u64 {
        self.int32s + self.int64s + self.double_count + self.decimal_count
    }

    /// The sum as a double.
    pub fn to_f64(&self) -> f64 {
        if let Some(special) = self.special() {
            return special;
        }
        if self.has_decimal() {
            return self.to_decimal().to_f64();
        }
        let mut sum = self.doubles.clone();
        sum.add_whole(self.whole);
        sum.to_f64()
    }

    fn special(&self) -> Option<f64> {
        match (self.nans, self.infinities, self.negative_infinities) {
            (0, 0, 0) => None,
            (0, _, 0) => Some(f64::INFINITY),
            (0, 0, _) => Some(f64::NEG_INFINITY),
            _ => Some(f64::NAN),
        }
    }

    /// Whether a decimal is in.
    pub fn has_decimal(&self) -> bool {
        self.decimal_count > 0
    }

    /// The sum as a decimal.
    pub fn to_decimal(&self) -> Decimal {
        if let Some(special) = self.special() {
            return self.decimal_nan.filter(|_| special.is_nan()).unwrap_or(Decimal::from_f64(special));
        }
        let mut rest = self.doubles.clone();
        rest.add_whole(self.whole);
        self.decimals.unwrap_or(Decimal::ZERO).add(rest.to_decimal())
    }

    /// The sum, in the type that the numbers in it ask for.
    pub fn number(&self) -> Number {
        if self.has_decimal() {
            return Number::Decimal(self.to_decimal());
        }
        if self.double_count > 0 {
            return Number::Double(self.to_f64());
        }
        match i64::try_from(self.whole) {
            Ok(whole) if self.int64s > 0 => Number::Int64(whole),
            Ok(whole) => Number::int_or_long(whole),
            Err(_) => Number::Double(self.whole as f64),
        }
    }
}

impl Accumulator for Sum {
    fn add(&mut self, value: Value<'_>) -> Result<()> {
        if let Some(number) = value.get().and_then(Number::of) {
            Sum::add(self, number);
        }
        Ok(())
    }

    fn remove(&mut self, value: Value<'_>) -> Result<()> {
        if let Some(number) = value.get().and_then(Number::of) {
            self.subtract(number);
        }
        Ok(())
    }

    fn result(&self) -> Result<Value<'static>> {
        Ok(self.number().into())
    }

    fn size_bytes(&self) -> usize {
        size_of::<Sum>()
    }
}

/// A sum of doubles held in two of them: the rounded sum and what rounding lost.
#[derive(Clone, Debug, Default)]
struct DoubleDouble {
    sum: f64,
    lost: f64,
}

impl DoubleDouble {
    fn add(&mut self, number: f64) {
        let (sum, lost) = two_sum(self.sum, number);
        if sum.is_infinite() {
            (self.sum, self.lost) = (sum, 0.0);
            return;
        }
        let lost = self.lost + lost;
        self.sum = sum + lost;
        self.lost = lost - (self.sum - sum);
    }

    /// Adds an integer, in parts that doubles hold exactly.
    fn add_whole(&mut self, number: i128) {
        let high = number >> 48;
        let low = number - (high << 48);
        self.add(low as f64);
        self.add(high as f64 * 2f64.powi(48));
    }

    fn to_f64(&self) -> f64 {
        self.sum + self.lost
    }

    fn to_decimal(&self) -> Decimal {
        let sum = Decimal::from_f64_exact(self.sum);
        if self.lost == 0.0 { sum } else { sum.add(Decimal::from_f64_exact(self.lost)) }
    }
}

/// The rounded sum and what rounding lost.
fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let b_part = sum - a;
    (sum, (a - (sum - b_part)) + (b - b_part))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::RawBson;

    #[test]
    fn doubles_keep_what_a_large_one_would_swallow() {
        let mut sum = Sum::default();
        [1e100, 1.0, -1e100].into_iter().for_each(|number| sum.add(Number::Double(number)));
        assert_eq!(sum.to_f64(), 1.0);
    }

    #[test]
    fn integers_beyond_64_bits_come_back_when_the_sum_does() {
        let mut sum = Sum::default();
        sum.add(Number::Int64(i64::MAX));
        sum.add(Number::Int64(1));
        assert_eq!(RawBson::from(sum.number()), RawBson::Double(9_223_372_036_854_775_808.0));
        sum.add(Number::Int64(-1));
        assert_eq!(RawBson::from(sum.number()), RawBson::Int64(i64::MAX));
    }

    #[test]
    fn a_forgotten_decimal_or_infinity_leaves_no_trace() {
        let mut sum = Sum::default();
        sum.add(Number::Int32(1));
        sum.add(Number::Decimal(Decimal::ONE));
        sum.add(Number::Double(f64::INFINITY));
        sum.subtract(Number::Decimal(Decimal::ONE));
        sum.subtract(Number::Double(f64::INFINITY));
        assert_eq!(RawBson::from(sum.number()), RawBson::Int32(1));
    }
}
