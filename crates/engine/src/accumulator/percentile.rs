//! `$percentile`, `$median`: values at given places of the sorted numbers; other values are passed over.
//!
//! `approximate` and `discrete` give a number that is there, `continuous` one between two. `approximate` is exact here: the
//! numbers are kept. Results are doubles, null without a number. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/aggregation/percentile/> and `median`.

use super::{Accumulator, Options, array_of};
use crate::document::Value;
use crate::document::number::Number;
use crate::error::Result;
use bson::RawBsonRef;

/// How a percentile between two values is found.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Method {
    /// As `Discrete`; kept apart because that is what most write.
    #[default]
    Approximate,
    /// The lower one.
    Discrete,
    /// Between them, in proportion.
    Continuous,
}

impl Method {
    /// The method of that name.
    pub fn named(name: &str) -> Option<Method> {
        Some(match name {
            "approximate" => Method::Approximate,
            "discrete" => Method::Discrete,
            "continuous" => Method::Continuous,
            _ => return None,
        })
    }
}

pub(super) fn start(options: &Options, median: bool) -> Box<dyn Accumulator> {
    let percentiles = if median { vec![0.5] } else { options.percentiles.clone() };
    Box::new(Percentile { median, percentiles, method: options.method, numbers: Vec::new() })
}

#[derive(Debug)]
struct Percentile {
    median: bool,
    percentiles: Vec<f64>,
    method: Method,
    numbers: Vec<f64>,
}

impl Accumulator for Percentile {
    fn add(&mut self, value: Value<'_>) -> Result<()> {
        if let Some(number) = value.get().and_then(Number::of) {
            let number = number.to_f64();
            if !number.is_nan() {
                self.numbers.push(number);
            }
        }
        Ok(())
    }

    fn result(&self) -> Result<Value<'static>> {
        let mut sorted = self.numbers.clone();
        sorted.sort_by(f64::total_cmp);
        let at = |p: f64| at_percentile(&sorted, p, self.method).map_or(RawBsonRef::Null, RawBsonRef::Double);
        if self.median {
            return Ok(Value::from(at(0.5)).into_owned());
        }
        Ok(array_of(self.percentiles.iter().map(|p| at(*p))))
    }

    fn size_bytes(&self) -> usize {
        size_of::<Percentile>() + self.numbers.len() * size_of::<f64>()
    }
}

/// The value at a percentile of sorted numbers; `None` without a number.
fn at_percentile(sorted: &[f64], p: f64, method: Method) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    if method == Method::Continuous {
        let place = p * last as f64;
        let (low, high) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
        let part = place - place.floor();
        return Some(if part == 0.0 || low == high { low } else { low + part * (high - low) });
    }
    let place = (p * sorted.len() as f64).ceil() as usize;
    Some(sorted[place.saturating_sub(1).min(last)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_of_few_numbers() {
        let sorted = [1.0, 2.0, 3.0, 4.0];
        assert_eq!(at_percentile(&sorted, 0.5, Method::Discrete), Some(2.0));
        assert_eq!(at_percentile(&sorted, 0.5, Method::Continuous), Some(2.5));
        assert_eq!(at_percentile(&sorted, 0.0, Method::Approximate), Some(1.0));
        assert_eq!(at_percentile(&sorted, 1.0, Method::Continuous), Some(4.0));
        assert_eq!(at_percentile(&[], 0.5, Method::Discrete), None);
    }
}
