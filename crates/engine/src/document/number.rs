//! Numbers across int32, int64, double and decimal128: comparison, conversion and arithmetic as one kind.
//!
//! Results have MongoDB's types: the wider operand's, where int32 < int64 < double < decimal128; an int32 result that
//! does not fit becomes an int64, an int64 result that does not fit a double. A double that meets a decimal counts with
//! 15 significant digits ([`Number::to_decimal`]).

use crate::document::Value;
use crate::document::decimal::{Decimal, MAX_DIGITS, Parts, Round};
use bson::{RawBson, RawBsonRef};
use std::cmp::Ordering;

/// A number of any BSON type.
#[derive(Clone, Copy, Debug)]
pub enum Number {
    /// int32
    Int32(i32),
    /// int64
    Int64(i64),
    /// double
    Double(f64),
    /// decimal128
    Decimal(Decimal),
}

/// Compares two numbers exactly, whatever their types; NaN is below all others and equal to itself. What is no number
/// counts as NaN.
pub fn compare(a: RawBsonRef<'_>, b: RawBsonRef<'_>) -> Ordering {
    match (Number::of(a), Number::of(b)) {
        (Some(a), Some(b)) => a.compare(b),
        (a, b) => a.is_some().cmp(&b.is_some()),
    }
}

/// The whole number that a value holds exactly, whatever its number type; `None` for other types, fractions, NaN and
/// what 64 bits don't hold. For limits, sizes, positions and bit masks.
pub fn exact_i64(value: RawBsonRef<'_>) -> Option<i64> {
    Number::of(value)?.to_i64_exact()
}

/// As [`exact_i64`], for 32 bits.
pub fn exact_i32(value: RawBsonRef<'_>) -> Option<i32> {
    i32::try_from(exact_i64(value)?).ok()
}

impl Number {
    /// The number that a value is, or `None` for other types.
    pub fn of(value: RawBsonRef<'_>) -> Option<Number> {
        Some(match value {
            RawBsonRef::Int32(number) => Number::Int32(number),
            RawBsonRef::Int64(number) => Number::Int64(number),
            RawBsonRef::Double(number) => Number::Double(number),
            RawBsonRef::Decimal128(number) => Number::Decimal(number.into()),
            _ => return None,
        })
    }

    /// An int32 where it fits, else an int64.
    pub fn int_or_long(value: i64) -> Number {
        i32::try_from(value).map_or(Number::Int64(value), Number::Int32)
    }

    /// Exact numeric order; NaN is below all others and equal to itself.
    pub fn compare(self, other: Number) -> Ordering {
        use Number as N;
        match (self, other) {
            (N::Double(a), N::Double(b)) => compare_doubles(a, b),
            (N::Double(a), N::Int32(b)) => compare_doubles(a, f64::from(b)),
            (N::Int32(a), N::Double(b)) => compare_doubles(f64::from(a), b),
            (N::Double(a), N::Int64(b)) => compare_double_to_i64(a, b),
            (N::Int64(a), N::Double(b)) => compare_double_to_i64(b, a).reverse(),
            (N::Double(a), N::Decimal(b)) => compare_double_to_decimal(a, b),
            (N::Decimal(a), N::Double(b)) => compare_double_to_decimal(b, a).reverse(),
            (N::Decimal(a), b) => a.compare(b.to_decimal()),
            (a, N::Decimal(b)) => a.to_decimal().compare(b),
            (a, b) => a.to_i64_truncated().cmp(&b.to_i64_truncated()),
        }
    }

    /// Whether it is NaN.
    pub fn is_nan(self) -> bool {
        match self {
            Number::Double(number) => number.is_nan(),
            Number::Decimal(number) => number.is_nan(),
            Number::Int32(_) | Number::Int64(_) => false,
        }
    }

    /// Whether it is neither NaN nor infinite.
    pub fn is_finite(self) -> bool {
        match self {
            Number::Double(number) => number.is_finite(),
            Number::Decimal(number) => number.is_finite(),
            Number::Int32(_) | Number::Int64(_) => true,
        }
    }

    /// Whether it is zero, of either sign.
    pub fn is_zero(self) -> bool {
        match self {
            Number::Int32(number) => number == 0,
            Number::Int64(number) => number == 0,
            Number::Double(number) => number == 0.0,
            Number::Decimal(number) => number.is_zero(),
        }
    }

    /// Whether it is a decimal128.
    pub fn is_decimal(self) -> bool {
        matches!(self, Number::Decimal(_))
    }

    /// Whether it is an int32 or an int64.
    pub fn is_int(self) -> bool {
        matches!(self, Number::Int32(_) | Number::Int64(_))
    }

    /// The nearest double.
    pub fn to_f64(self) -> f64 {
        match self {
            Number::Int32(number) => f64::from(number),
            Number::Int64(number) => number as f64,
            Number::Double(number) => number,
            Number::Decimal(number) => number.to_f64(),
        }
    }

    /// The number as a decimal; a double keeps 15 significant digits.
    pub fn to_decimal(self) -> Decimal {
        match self {
            Number::Int32(number) => number.into(),
            Number::Int64(number) => number.into(),
            Number::Double(number) => Decimal::from_f64(number),
            Number::Decimal(number) => number,
        }
    }

    /// The number as a decimal; a double keeps all digits that fit.
    pub fn to_decimal_exact(self) -> Decimal {
        match self {
            Number::Double(number) => Decimal::from_f64_exact(number),
            other => other.to_decimal(),
        }
    }

    /// The whole number that this is exactly, or `None` for fractions, NaN and what 64 bits don't hold.
    pub fn to_i64_exact(self) -> Option<i64> {
        match self {
            Number::Int32(number) => Some(number.into()),
            Number::Int64(number) => Some(number),
            Number::Double(number) => double_to_i64(number).filter(|whole| *whole as f64 == number),
            Number::Decimal(number) => number.is_integer().then(|| number.to_i128_truncated())??.try_into().ok(),
        }
    }

    /// As [`Number::to_i64_exact`], for 32 bits.
    pub fn to_i32_exact(self) -> Option<i32> {
        i32::try_from(self.to_i64_exact()?).ok()
    }

    /// The integer part, or `None` for NaN and what 64 bits don't hold.
    pub fn to_i64_checked(self) -> Option<i64> {
        match self {
            Number::Int32(number) => Some(number.into()),
            Number::Int64(number) => Some(number),
            Number::Double(number) => double_to_i64(number),
            Number::Decimal(number) => number.to_i128_truncated()?.try_into().ok(),
        }
    }

    /// The whole number that an option takes it for, clamped to 64 bits: a double without its fraction, a decimal rounded to
    /// the nearest, ties to even.
    pub fn to_i64_option(self) -> i64 {
        match self {
            Number::Decimal(decimal) => Number::Decimal(decimal.round_to_integer(Round::HalfEven)).to_i64_truncated(),
            number => number.to_i64_truncated(),
        }
    }

    /// The integer part, clamped to 64 bits; NaN gives zero.
    pub fn to_i64_truncated(self) -> i64 {
        match self {
            Number::Int32(number) => number.into(),
            Number::Int64(number) => number,
            Number::Double(number) => number as i64,
            Number::Decimal(number) => match number.parts() {
                Parts::Nan => 0,
                parts => self.to_i64_checked().unwrap_or(match parts {
                    Parts::Finite { negative: true, .. } | Parts::Infinite { negative: true } => i64::MIN,
                    _ => i64::MAX,
                }),
            },
        }
    }

    /// The sum.
    #[allow(
        clippy::should_implement_trait,
        reason = "arithmetic reads alike for all operations, rounding ones included"
    )]
    pub fn add(self, other: Number) -> Number {
        self.combine(other, i64::checked_add, |a, b| a + b, Decimal::add)
    }

    /// The difference.
    pub fn subtract(self, other: Number) -> Number {
        self.combine(other, i64::checked_sub, |a, b| a - b, Decimal::subtract)
    }

    /// The product.
    pub fn multiply(self, other: Number) -> Number {
        self.combine(other, i64::checked_mul, |a, b| a * b, Decimal::multiply)
    }

    /// The sum, or `None` when an int64 does not hold it, as `$inc` wants it.
    pub fn checked_add(self, other: Number) -> Option<Number> {
        self.stay_integral(other, i64::checked_add).unwrap_or_else(|| Some(self.add(other)))
    }

    /// The product, or `None` when an int64 does not hold it, as `$mul` wants it.
    pub fn checked_multiply(self, other: Number) -> Option<Number> {
        self.stay_integral(other, i64::checked_mul).unwrap_or_else(|| Some(self.multiply(other)))
    }

    /// The quotient as a double, or as a decimal when either is one; the caller refuses a zero divisor first.
    pub fn divide(self, other: Number) -> Number {
        if self.is_decimal() || other.is_decimal() {
            return Number::Decimal(self.to_decimal().divide(other.to_decimal()));
        }
        Number::Double(self.to_f64() / other.to_f64())
    }

    /// The remainder with the dividend's sign; the caller refuses a zero divisor first.
    pub fn modulo(self, other: Number) -> Number {
        use Number as N;
        let divisor = |whole: i64| if whole == 0 { 1 } else { whole };
        match (self, other) {
            (N::Decimal(_), _) | (_, N::Decimal(_)) => N::Decimal(self.to_decimal().modulo(other.to_decimal())),
            (N::Double(_), _) | (_, N::Double(_)) => N::Double(self.to_f64() % other.to_f64()),
            (N::Int32(a), N::Int32(b)) => N::int_or_long(i64::from(a) % divisor(b.into())),
            (a, b) => N::Int64(a.to_i64_truncated().wrapping_rem(divisor(b.to_i64_truncated()))),
        }
    }

    /// The number with the other sign; the least int32 becomes an int64, the least int64 a double.
    pub fn negate(self) -> Number {
        match self {
            Number::Int32(number) => Number::int_or_long(-i64::from(number)),
            Number::Int64(number) => number.checked_neg().map_or(Number::Double(-(number as f64)), Number::Int64),
            Number::Double(number) => Number::Double(-number),
            Number::Decimal(number) => Number::Decimal(number.negate()),
        }
    }

    /// Rounds to `places` digits after the point (before it where negative), keeping the type; an int32 that outgrows its
    /// type becomes an int64. `None` when an int64 outgrows its type.
    pub fn round_to_places(self, places: i32, round: Round) -> Option<Number> {
        match self {
            Number::Int32(_) | Number::Int64(_) if places >= 0 => Some(self),
            Number::Int32(number) => round_integer(number.into(), places, round).map(Number::int_or_long),
            Number::Int64(number) => round_integer(number, places, round).map(Number::Int64),
            Number::Double(number) if !number.is_finite() || number == 0.0 => Some(self),
            Number::Double(number) => Some(Number::Double(round_double(number, places, round))),
            Number::Decimal(number) if !number.is_finite() => Some(self),
            Number::Decimal(number) => {
                let rounded = number.quantize(-places, round);
                // So many places that 34 digits don't reach: nothing is there to be rounded off.
                Some(Number::Decimal(if rounded.is_nan() { number } else { rounded }))
            }
        }
    }

    fn combine(
        self,
        other: Number,
        integral: fn(i64, i64) -> Option<i64>,
        double: fn(f64, f64) -> f64,
        decimal: fn(Decimal, Decimal) -> Decimal,
    ) -> Number {
        if self.is_decimal() || other.is_decimal() {
            return Number::Decimal(decimal(self.to_decimal(), other.to_decimal()));
        }
        match self.stay_integral(other, integral) {
            Some(Some(whole)) => whole,
            _ => Number::Double(double(self.to_f64(), other.to_f64())),
        }
    }

    /// `None` when an operand is no integer, `Some(None)` when the result does not fit.
    fn stay_integral(self, other: Number, integral: fn(i64, i64) -> Option<i64>) -> Option<Option<Number>> {
        if !(self.is_int() && other.is_int()) {
            return None;
        }
        let whole = integral(self.to_i64_truncated(), other.to_i64_truncated());
        let both_int32 = matches!((self, other), (Number::Int32(_), Number::Int32(_)));
        Some(whole.map(|whole| if both_int32 { Number::int_or_long(whole) } else { Number::Int64(whole) }))
    }
}

/// The double's integer part, where 64 bits hold it.
fn double_to_i64(number: f64) -> Option<i64> {
    // Both bounds are powers of two and so exact.
    (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&number).then_some(number as i64)
}

fn round_integer(number: i64, places: i32, round: Round) -> Option<i64> {
    let places = places.unsigned_abs();
    if places > MAX_DIGITS {
        return Some(0);
    }
    Decimal::from(number).quantize(places as i32, round).to_i128_truncated()?.try_into().ok()
}

fn round_double(number: f64, places: i32, round: Round) -> f64 {
    let rounded = Decimal::from_f64_exact(number).quantize(-places, round);
    // So many places that 34 digits don't reach: nothing is there to be rounded off.
    if rounded.is_nan() { number } else { rounded.to_f64() }
}

fn compare_doubles(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| (!a.is_nan()).cmp(&!b.is_nan()))
}

fn compare_double_to_i64(a: f64, b: i64) -> Ordering {
    match double_to_i64(a) {
        Some(whole) => whole.cmp(&b).then_with(|| compare_doubles(a, whole as f64)),
        None if a > 0.0 => Ordering::Greater,
        None => Ordering::Less,
    }
}

fn compare_double_to_decimal(a: f64, b: Decimal) -> Ordering {
    let rounded = Decimal::from_f64_exact(a);
    let order = rounded.compare(b);
    if order != Ordering::Equal || !a.is_finite() {
        return order;
    }
    // Equal in 34 digits: a double may have more of them, and then it lies beside its rounded form.
    let digits = |text: String| text.trim_start_matches('-').replace('.', "");
    let (exact, rounded) = (digits(format!("{a:.1080}")), digits(format_plain(rounded)));
    let order = exact.cmp(&rounded);
    if a < 0.0 { order.reverse() } else { order }
}

/// A finite decimal within a double's range, written with 1080 places as a double is above.
fn format_plain(number: Decimal) -> String {
    let Parts::Finite { coefficient, exponent, .. } = number.parts() else { return String::new() };
    let digits = coefficient.to_string();
    let zeros = (exponent + 1080).max(0).unsigned_abs() as usize;
    let text = format!("{digits}{}", "0".repeat(zeros));
    format!("{text:0>1081}")
}

impl From<Number> for RawBson {
    fn from(number: Number) -> RawBson {
        match number {
            Number::Int32(number) => RawBson::Int32(number),
            Number::Int64(number) => RawBson::Int64(number),
            Number::Double(number) => RawBson::Double(number),
            Number::Decimal(number) => RawBson::Decimal128(number.into()),
        }
    }
}

impl From<Number> for Value<'_> {
    fn from(number: Number) -> Self {
        Value::Owned(number.into())
    }
}

impl From<i32> for Number {
    fn from(number: i32) -> Number {
        Number::Int32(number)
    }
}

impl From<i64> for Number {
    fn from(number: i64) -> Number {
        Number::Int64(number)
    }
}

impl From<f64> for Number {
    fn from(number: f64) -> Number {
        Number::Double(number)
    }
}

impl From<Decimal> for Number {
    fn from(number: Decimal) -> Number {
        Number::Decimal(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decimal(text: &str) -> Number {
        Number::Decimal(text.parse().unwrap())
    }

    #[test]
    fn types_compare_exactly() {
        use Ordering::{Equal, Greater, Less};
        for (a, b, order) in [
            (Number::Int32(1), Number::Double(1.0), Equal),
            (Number::Int64(i64::MAX), Number::Double(9_223_372_036_854_775_808.0), Less),
            (Number::Int64(9_007_199_254_740_993), Number::Double(9_007_199_254_740_992.0), Greater),
            (Number::Double(f64::NAN), Number::Double(f64::NEG_INFINITY), Less),
            (Number::Double(f64::NAN), decimal("NaN"), Equal),
            (Number::Double(-0.0), Number::Int32(0), Equal),
            (Number::Double(0.1), decimal("0.1"), Greater),
            (Number::Double(0.5), decimal("0.50"), Equal),
            (Number::Double(-0.1), decimal("-0.1"), Less),
            (Number::Double(0.1), decimal("0.1000000000000000055511151231257827"), Greater),
            (Number::Double(f64::MAX), decimal("1E+6000"), Less),
            (Number::Double(5e-324), decimal("0"), Greater),
            (Number::Int64(i64::MAX), decimal("9223372036854775807.5"), Less),
            (decimal("1E+3"), Number::Int32(1000), Equal),
            (decimal("Infinity"), Number::Double(f64::INFINITY), Equal),
        ] {
            assert_eq!(a.compare(b), order, "{a:?} {b:?}");
            assert_eq!(b.compare(a), order.reverse(), "{b:?} {a:?}");
        }
    }

    #[test]
    fn results_widen_as_far_as_needed() {
        let show = |number: Number| format!("{number:?}");
        assert_eq!(show(Number::Int32(i32::MAX).add(Number::Int32(1))), "Int64(2147483648)");
        assert_eq!(show(Number::Int64(1).add(Number::Int32(1))), "Int64(2)");
        assert_eq!(show(Number::Int64(i64::MAX).add(Number::Int32(1))), "Double(9.223372036854776e18)");
        assert_eq!(show(Number::Int32(2).multiply(Number::Double(1.5))), "Double(3.0)");
        assert_eq!(show(Number::Double(0.1).add(decimal("1"))), "Decimal(Decimal(1.100000000000000))");
        assert_eq!(show(Number::Int32(7).divide(Number::Int32(2))), "Double(3.5)");
        assert_eq!(show(Number::Int32(-7).modulo(Number::Double(4.0))), "Double(-3.0)");
        assert_eq!(show(Number::Int64(7).modulo(Number::Double(2.5))), "Double(2.0)");
        assert_eq!(show(Number::Int32(i32::MIN).negate()), "Int64(2147483648)");
        assert!(Number::Int64(i64::MAX).checked_add(Number::Int32(1)).is_none());
    }

    #[test]
    fn places_before_and_after_the_point() {
        let show = |number: Number, places| format!("{:?}", number.round_to_places(places, Round::HalfEven));
        assert_eq!(show(Number::Int32(1250), -2), "Some(Int32(1200))");
        assert_eq!(show(Number::Double(2.5), 0), "Some(Double(2.0))");
        assert_eq!(show(Number::Double(1.005), 2), "Some(Double(1.0))");
        assert_eq!(show(decimal("1.235"), 2), "Some(Decimal(Decimal(1.24)))");
        assert_eq!(show(Number::Int64(i64::MAX), -1), "None");
    }
}
