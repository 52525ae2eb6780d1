//! Decimal128: exact, correctly rounded decimals of 34 digits.
//!
//! BSON stores the *binary integer* encoding of IEEE 754: sign, exponent, and the coefficient as one integer. [`Decimal`]
//! keeps those bits; comparison and conversion work on its [`Parts`], and arithmetic is decNumber's (crate `dec`), which
//! takes the same parts as units of three digits.
//!
//! ```text
//!  127 126            113 112                                             0
//! | s |  exponent+6176   |                 coefficient                     |   coefficients of 34 digits need 113 bits
//! | s | 11110 …          |                                                 |   infinity
//! | s | 11111 …          |                                                 |   NaN
//! ```
//!
//! A second form with `11` at bits 126 and 125 holds coefficients beyond 34 digits, which count as zero.

use bson::Decimal128;
use dec::{Context, Rounding};
use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

/// Digits of a coefficient.
pub const MAX_DIGITS: u32 = 34;
/// The largest exponent of the coefficient's last digit.
pub const MAX_EXPONENT: i32 = 6111;
/// The smallest exponent of the coefficient's last digit.
pub const MIN_EXPONENT: i32 = -6176;

const MAX_COEFFICIENT: u128 = 9_999_999_999_999_999_999_999_999_999_999_999;
const BIAS: i32 = 6176;
const COEFFICIENT_BITS: u32 = 113;
/// Units of three digits: 36 digits, enough for 34.
const UNITS: usize = 12;
/// Units for transcendental functions, which are computed with 45 digits and rounded once to 34.
const WIDE_UNITS: usize = 16;
const WIDE_DIGITS: usize = 45;

/// A decimal number of up to 34 digits, an infinity or NaN.
#[derive(Clone, Copy)]
pub struct Decimal {
    bits: u128,
}

/// A decimal taken apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Parts {
    /// `±coefficient · 10^exponent`.
    Finite {
        /// Whether the sign bit is set (also for zero).
        negative: bool,
        /// At most 34 digits.
        coefficient: u128,
        /// From [`MIN_EXPONENT`] to [`MAX_EXPONENT`].
        exponent: i32,
    },
    /// Plus or minus infinity.
    Infinite {
        /// Whether it is minus infinity.
        negative: bool,
    },
    /// Not a number.
    Nan,
}

/// How digits are dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Round {
    /// To the nearest, ties to the even digit.
    HalfEven,
    /// Toward zero.
    Down,
    /// Toward minus infinity.
    Floor,
    /// Toward plus infinity.
    Ceiling,
}

impl From<Round> for Rounding {
    fn from(round: Round) -> Rounding {
        match round {
            Round::HalfEven => Rounding::HalfEven,
            Round::Down => Rounding::Down,
            Round::Floor => Rounding::Floor,
            Round::Ceiling => Rounding::Ceiling,
        }
    }
}

impl Decimal {
    /// Zero with exponent 0.
    pub const ZERO: Decimal = Decimal { bits: (BIAS as u128) << COEFFICIENT_BITS };
    /// One with exponent 0.
    pub const ONE: Decimal = Decimal { bits: Decimal::ZERO.bits + 1 };
    /// Quiet NaN.
    pub const NAN: Decimal = Decimal { bits: 0b1_1111 << 122 };
    /// Plus infinity.
    pub const INFINITY: Decimal = Decimal { bits: 0b1_1110 << 122 };
    /// Minus infinity.
    pub const NEGATIVE_INFINITY: Decimal = Decimal { bits: 0b11_1110 << 122 };

    /// A finite decimal.
    ///
    /// # Panics
    /// When the coefficient or the exponent is out of range: callers round first.
    pub fn finite(negative: bool, coefficient: u128, exponent: i32) -> Decimal {
        assert!(coefficient <= MAX_COEFFICIENT, "a coefficient has at most 34 digits");
        assert!((MIN_EXPONENT..=MAX_EXPONENT).contains(&exponent), "an exponent is in decimal128's range");
        let exponent = u128::from((exponent + BIAS).unsigned_abs());
        Decimal { bits: u128::from(negative) << 127 | exponent << COEFFICIENT_BITS | coefficient }
    }

    /// The parts; the inverse of [`Decimal::finite`].
    pub fn parts(self) -> Parts {
        let negative = self.bits >> 127 == 1;
        let top = self.bits >> 122 & 0b1_1111;
        if top == 0b1_1111 {
            return Parts::Nan;
        }
        if top == 0b1_1110 {
            return Parts::Infinite { negative };
        }
        let (exponent, coefficient) = if top >> 3 == 0b11 {
            (self.bits >> (COEFFICIENT_BITS - 2), 0)
        } else {
            (self.bits >> COEFFICIENT_BITS, self.bits & ((1 << COEFFICIENT_BITS) - 1))
        };
        let coefficient = if coefficient > MAX_COEFFICIENT { 0 } else { coefficient };
        Parts::Finite { negative, coefficient, exponent: (exponent & 0x3fff) as i32 - BIAS }
    }

    /// Whether it is NaN.
    pub fn is_nan(self) -> bool {
        self.parts() == Parts::Nan
    }

    /// Whether it is plus or minus infinity.
    pub fn is_infinite(self) -> bool {
        matches!(self.parts(), Parts::Infinite { .. })
    }

    /// Whether it is neither NaN nor infinite.
    pub fn is_finite(self) -> bool {
        matches!(self.parts(), Parts::Finite { .. })
    }

    /// Whether it is a zero of any sign and exponent.
    pub fn is_zero(self) -> bool {
        matches!(self.parts(), Parts::Finite { coefficient: 0, .. })
    }

    /// Whether its sign bit is set; false for NaN.
    pub fn is_negative(self) -> bool {
        match self.parts() {
            Parts::Finite { negative, .. } | Parts::Infinite { negative } => negative,
            Parts::Nan => false,
        }
    }

    /// The double's value with 15 significant digits: what MongoDB's arithmetic and `$toDecimal` make of a double.
    pub fn from_f64(value: f64) -> Decimal {
        Decimal::from_f64_digits(value, 15)
    }

    /// The double's exact value, rounded to 34 digits only where it has more.
    pub fn from_f64_exact(value: f64) -> Decimal {
        let rounded = Decimal::from_f64_digits(value, MAX_DIGITS as usize);
        let Parts::Finite { negative, mut coefficient, mut exponent } = rounded.parts() else { return rounded };
        while exponent < 0 && coefficient % 10 == 0 && coefficient != 0 {
            coefficient /= 10;
            exponent += 1;
        }
        Decimal::finite(negative, coefficient, exponent)
    }

    fn from_f64_digits(value: f64, digits: usize) -> Decimal {
        if value.is_nan() {
            return Decimal::NAN;
        }
        if value.is_infinite() {
            return if value < 0.0 { Decimal::NEGATIVE_INFINITY } else { Decimal::INFINITY };
        }
        if value == 0.0 {
            return Decimal::finite(value.is_sign_negative(), 0, 0);
        }
        // A whole number that fits is exact, whatever the digits asked for, and keeps exponent 0 in the exact form.
        if digits == MAX_DIGITS as usize && value.fract() == 0.0 && value.abs() < 1e34 {
            return Decimal::finite(value < 0.0, value.abs() as u128, 0);
        }
        let text = format!("{:.*e}", digits - 1, value.abs());
        let (mantissa, exponent) = text.split_once('e').expect("scientific notation has an exponent");
        let mantissa: String = mantissa.chars().filter(char::is_ascii_digit).collect();
        let coefficient: u128 = mantissa.parse().expect("a mantissa is digits");
        let exponent: i32 = exponent.parse().expect("an exponent is digits");
        Decimal::finite(value < 0.0, coefficient, exponent - (digits as i32 - 1))
    }

    /// The nearest double; infinite beyond the range.
    pub fn to_f64(self) -> f64 {
        match self.parts() {
            Parts::Nan => f64::NAN,
            Parts::Infinite { negative: false } => f64::INFINITY,
            Parts::Infinite { negative: true } => f64::NEG_INFINITY,
            Parts::Finite { negative, coefficient, exponent } => {
                let magnitude: f64 =
                    format!("{coefficient}e{exponent}").parse().expect("digits and an exponent are a double");
                if negative { -magnitude } else { magnitude }
            }
        }
    }

    /// The integer part, or `None` when it is not finite or beyond 128 bits.
    pub fn to_i128_truncated(self) -> Option<i128> {
        let Parts::Finite { negative, coefficient, exponent } = self.parts() else { return None };
        let magnitude = if exponent >= 0 {
            if coefficient == 0 { 0 } else { coefficient.checked_mul(10u128.checked_pow(exponent.unsigned_abs())?)? }
        } else {
            10u128.checked_pow(exponent.unsigned_abs()).map_or(0, |scale| coefficient / scale)
        };
        let magnitude = i128::try_from(magnitude).ok()?;
        Some(if negative { -magnitude } else { magnitude })
    }

    /// Whether it is a whole number.
    pub fn is_integer(self) -> bool {
        let Parts::Finite { coefficient, exponent, .. } = self.parts() else { return false };
        exponent >= 0
            || coefficient == 0
            || 10u128.checked_pow(exponent.unsigned_abs()).is_some_and(|scale| coefficient % scale == 0)
    }

    /// Numeric order; NaN is below all others and equal to itself, zeros are equal.
    pub fn compare(self, other: Decimal) -> Ordering {
        let (a, b) = (self.parts(), other.parts());
        let (Parts::Finite { .. }, Parts::Finite { .. }) = (a, b) else {
            return rank(a).cmp(&rank(b));
        };
        match (rank(a), rank(b)) {
            (a, b) if a != b => a.cmp(&b),
            (0, _) => Ordering::Equal,
            (rank, _) => {
                let order = compare_magnitudes(a, b);
                if rank < 0 { order.reverse() } else { order }
            }
        }
    }

    /// The sum.
    #[allow(
        clippy::should_implement_trait,
        reason = "arithmetic reads alike for all operations, rounding ones included"
    )]
    pub fn add(self, other: Decimal) -> Decimal {
        self.binary(other, |context, a, b| context.add(a, b))
    }

    /// The difference.
    pub fn subtract(self, other: Decimal) -> Decimal {
        self.binary(other, |context, a, b| context.sub(a, b))
    }

    /// The product.
    pub fn multiply(self, other: Decimal) -> Decimal {
        self.binary(other, |context, a, b| context.mul(a, b))
    }

    /// The quotient; infinite or NaN for a zero divisor.
    pub fn divide(self, other: Decimal) -> Decimal {
        self.binary(other, |context, a, b| context.div(a, b))
    }

    /// The remainder with the dividend's sign, exact however far apart the two are.
    pub fn modulo(self, other: Decimal) -> Decimal {
        let (
            Parts::Finite { negative, coefficient, exponent },
            Parts::Finite { coefficient: divisor, exponent: divisor_exponent, .. },
        ) = (self.parts(), other.parts())
        else {
            return match (self.parts(), other.parts()) {
                (Parts::Finite { .. }, Parts::Infinite { .. }) => self,
                _ => Decimal::NAN,
            };
        };
        if divisor == 0 {
            return Decimal::NAN;
        }
        let least = exponent.min(divisor_exponent);
        if exponent >= divisor_exponent {
            let scale = power_modulo(exponent - divisor_exponent, divisor);
            return Decimal::finite(negative, multiply_modulo(coefficient % divisor, scale, divisor), least);
        }
        match 10u128
            .checked_pow((divisor_exponent - exponent).unsigned_abs())
            .and_then(|scale| divisor.checked_mul(scale))
        {
            Some(divisor) => Decimal::finite(negative, coefficient % divisor, least),
            None => self,
        }
    }

    /// The square root; NaN below zero.
    pub fn sqrt(self) -> Decimal {
        self.unary(|context, value| context.sqrt(value))
    }

    /// e to this power.
    pub fn exp(self) -> Decimal {
        self.wide(|context, value| context.exp(value)).shortened()
    }

    /// The natural logarithm; NaN below zero.
    pub fn ln(self) -> Decimal {
        self.wide(|context, value| context.ln(value)).shortened()
    }

    /// The logarithm to base ten; NaN below zero.
    pub fn log10(self) -> Decimal {
        self.wide(|context, value| context.log10(value)).shortened()
    }

    /// This number to the power of another.
    pub fn pow(self, exponent: Decimal) -> Decimal {
        let power: dec::Decimal<WIDE_UNITS> = exponent.number();
        self.wide(|context, value| context.pow(value, &power))
    }

    /// The same value with exactly `exponent`, rounding; NaN when 34 digits don't reach.
    pub fn quantize(self, exponent: i32, round: Round) -> Decimal {
        if !(MIN_EXPONENT..=MAX_EXPONENT).contains(&exponent) {
            return Decimal::NAN;
        }
        let quantum: dec::Decimal<UNITS> = Decimal::finite(false, 1, exponent).number();
        let mut context = context::<UNITS>(MAX_DIGITS as usize);
        context.set_rounding(round.into());
        let mut value: dec::Decimal<UNITS> = self.number();
        context.quantize(&mut value, &quantum);
        Decimal::from_number(&value)
    }

    /// Rounds to a whole number; what already is one stays as it stands.
    pub fn round_to_integer(self, round: Round) -> Decimal {
        let mut context = context::<UNITS>(MAX_DIGITS as usize);
        context.set_rounding(round.into());
        let mut value: dec::Decimal<UNITS> = self.number();
        context.round(&mut value);
        Decimal::from_number(&value)
    }

    /// The same number without its sign.
    pub fn abs(self) -> Decimal {
        Decimal { bits: self.bits & !(1 << 127) }
    }

    /// The same number with the other sign.
    pub fn negate(self) -> Decimal {
        Decimal { bits: self.bits ^ 1 << 127 }
    }

    fn unary(self, operation: impl FnOnce(&mut Context<dec::Decimal<UNITS>>, &mut dec::Decimal<UNITS>)) -> Decimal {
        let mut value = self.number();
        operation(&mut context(MAX_DIGITS as usize), &mut value);
        Decimal::from_number(&value)
    }

    fn binary(
        self,
        other: Decimal,
        operation: impl FnOnce(&mut Context<dec::Decimal<UNITS>>, &mut dec::Decimal<UNITS>, &dec::Decimal<UNITS>),
    ) -> Decimal {
        self.unary(|context, value| operation(context, value, &other.number()))
    }

    fn wide(
        self,
        operation: impl FnOnce(&mut Context<dec::Decimal<WIDE_UNITS>>, &mut dec::Decimal<WIDE_UNITS>),
    ) -> Decimal {
        let mut value: dec::Decimal<WIDE_UNITS> = self.number();
        let mut wide = context(WIDE_DIGITS);
        wide.set_clamp(false);
        wide.set_max_exponent(999_999).expect("the exponent is in decNumber's range");
        wide.set_min_exponent(-999_999).expect("the exponent is in decNumber's range");
        operation(&mut wide, &mut value);
        Decimal::rounded(value)
    }

    /// A whole number without zeros after the point; others stay as they stand.
    fn shortened(self) -> Decimal {
        match self.parts() {
            Parts::Finite { coefficient: 1.., exponent: ..0, .. } if self.is_integer() => self.quantize(0, Round::Down),
            _ => self,
        }
    }

    /// A number of any size, rounded to 34 digits and decimal128's exponents.
    pub(super) fn rounded<const N: usize>(mut number: dec::Decimal<N>) -> Decimal {
        context::<N>(MAX_DIGITS as usize).plus(&mut number);
        Decimal::from_number(&number)
    }

    /// decNumber's form.
    pub(super) fn number<const N: usize>(self) -> dec::Decimal<N> {
        let (negative, mut coefficient, exponent) = match self.parts() {
            Parts::Nan => return dec::Decimal::nan(),
            Parts::Infinite { negative } => {
                let infinity = dec::Decimal::infinity();
                return if negative { -infinity } else { infinity };
            }
            Parts::Finite { negative, coefficient, exponent } => (negative, coefficient, exponent),
        };
        let digits = coefficient.checked_ilog10().map_or(1, |log| log + 1);
        let mut units = [0u16; N];
        for unit in &mut units {
            *unit = (coefficient % 1000) as u16;
            coefficient /= 1000;
        }
        dec::Decimal::from_raw_parts(digits, exponent, if negative { NEGATIVE_BIT } else { 0 }, units)
    }

    fn from_number<const N: usize>(number: &dec::Decimal<N>) -> Decimal {
        if number.is_nan() {
            return Decimal::NAN;
        }
        if number.is_infinite() {
            return if number.is_negative() { Decimal::NEGATIVE_INFINITY } else { Decimal::INFINITY };
        }
        let (digits, exponent, bits, units) = number.to_raw_parts();
        let used = (digits as usize).div_ceil(3);
        let coefficient = units[..used].iter().rev().fold(0u128, |sum, unit| sum * 1000 + u128::from(*unit));
        Decimal::finite(bits & NEGATIVE_BIT != 0, coefficient, exponent)
    }
}

/// decNumber's sign bit.
const NEGATIVE_BIT: u8 = 0x80;

/// A context with decimal128's exponents and that many digits, rounding half to even.
fn context<const N: usize>(digits: usize) -> Context<dec::Decimal<N>> {
    let mut context = Context::<dec::Decimal<N>>::default();
    context.set_precision(digits).expect("the units hold that many digits");
    context.set_rounding(Rounding::HalfEven);
    context.set_max_exponent(6144).expect("the exponent is in decNumber's range");
    context.set_min_exponent(-6143).expect("the exponent is in decNumber's range");
    context.set_clamp(true);
    context
}

/// Orders what can be ordered by kind and sign alone: NaN, -infinity, below zero, zero, above zero, infinity.
fn rank(parts: Parts) -> i8 {
    match parts {
        Parts::Nan => -3,
        Parts::Infinite { negative: true } => -2,
        Parts::Infinite { negative: false } => 2,
        Parts::Finite { coefficient: 0, .. } => 0,
        Parts::Finite { negative: true, .. } => -1,
        Parts::Finite { negative: false, .. } => 1,
    }
}

/// Compares two finite numbers other than zero without their signs.
fn compare_magnitudes(a: Parts, b: Parts) -> Ordering {
    let (Parts::Finite { coefficient: a, exponent: a_exponent, .. }, Parts::Finite { coefficient: b, exponent, .. }) =
        (a, b)
    else {
        return Ordering::Equal;
    };
    let adjusted = |coefficient: u128, exponent: i32| coefficient.ilog10() as i32 + exponent;
    adjusted(a, a_exponent).cmp(&adjusted(b, exponent)).then_with(|| {
        // The first digits have the same weight, so that scaling stays within 34 digits.
        let scale = 10u128.pow((a_exponent - exponent).unsigned_abs());
        if a_exponent > exponent { (a * scale).cmp(&b) } else { a.cmp(&(b * scale)) }
    })
}

/// `10^power mod modulus`.
fn power_modulo(power: i32, modulus: u128) -> u128 {
    let (mut result, mut base, mut power) = (1 % modulus, 10 % modulus, power);
    while power > 0 {
        if power & 1 == 1 {
            result = multiply_modulo(result, base, modulus);
        }
        base = multiply_modulo(base, base, modulus);
        power >>= 1;
    }
    result
}

/// `a · b mod modulus`, for a modulus of at most 113 bits.
fn multiply_modulo(a: u128, mut b: u128, modulus: u128) -> u128 {
    if let Some(product) = a.checked_mul(b) {
        return product % modulus;
    }
    let (mut result, mut a) = (0, a % modulus);
    while b > 0 {
        if b & 1 == 1 {
            result = (result + a) % modulus;
        }
        a = (a << 1) % modulus;
        b >>= 1;
    }
    result
}

impl From<i64> for Decimal {
    fn from(value: i64) -> Decimal {
        Decimal::finite(value < 0, u128::from(value.unsigned_abs()), 0)
    }
}

impl From<i32> for Decimal {
    fn from(value: i32) -> Decimal {
        Decimal::from(i64::from(value))
    }
}

impl From<Decimal128> for Decimal {
    fn from(value: Decimal128) -> Decimal {
        Decimal { bits: u128::from_le_bytes(value.bytes()) }
    }
}

impl From<Decimal> for Decimal128 {
    fn from(value: Decimal) -> Decimal128 {
        Decimal128::from_bytes(value.bits.to_le_bytes())
    }
}

/// A text that is no decimal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NotADecimal;

impl FromStr for Decimal {
    type Err = NotADecimal;

    /// Reads `1.5`, `-1E+3`, `Infinity`, `NaN`; more than 34 digits are rounded half to even.
    fn from_str(text: &str) -> Result<Decimal, NotADecimal> {
        let mut context = context::<UNITS>(MAX_DIGITS as usize);
        let number = context.parse(text).map_err(|_| NotADecimal)?;
        Ok(Decimal::from_number(&number))
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (negative, coefficient, exponent) = match self.parts() {
            Parts::Nan => return f.write_str("NaN"),
            Parts::Infinite { negative } => return f.write_str(if negative { "-Infinity" } else { "Infinity" }),
            Parts::Finite { negative, coefficient, exponent } => (negative, coefficient, exponent),
        };
        let digits = coefficient.to_string();
        let adjusted = exponent + digits.len() as i32 - 1;
        if negative {
            f.write_str("-")?;
        }
        if exponent > 0 || adjusted < -6 {
            f.write_str(&digits[..1])?;
            if digits.len() > 1 {
                write!(f, ".{}", &digits[1..])?;
            }
            return write!(f, "E{adjusted:+}");
        }
        if exponent == 0 {
            return f.write_str(&digits);
        }
        let point = adjusted + 1;
        if point > 0 {
            write!(f, "{}.{}", &digits[..point as usize], &digits[point as usize..])
        } else {
            write!(f, "0.{}{digits}", "0".repeat(point.unsigned_abs() as usize))
        }
    }
}

impl fmt::Debug for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Decimal({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decimal(text: &str) -> Decimal {
        text.parse().unwrap()
    }

    #[test]
    fn sign_exponent_and_kind_survive() {
        for text in [
            "0",
            "-0",
            "0E-6176",
            "-0E+6111",
            "1.50",
            "1E+3",
            "-1E-6176",
            "9.999999999999999999999999999999999E+6144",
            "Infinity",
            "-Infinity",
            "NaN",
            "0.000001",
            "1E-7",
            "-123456789012345678901234567890.1234",
        ] {
            let number = decimal(text);
            assert_eq!(number.to_string(), text);
            let stored = Decimal128::from(number);
            assert_eq!(stored.to_string(), text);
            assert_eq!(stored.bytes(), text.parse::<Decimal128>().unwrap().bytes());
        }
    }

    #[test]
    fn results_are_rounded_half_to_even() {
        let nines = decimal("9999999999999999999999999999999999");
        assert_eq!(nines.add(decimal("0.5")).to_string(), "1.000000000000000000000000000000000E+34");
        assert_eq!(nines.add(decimal("0.4")).to_string(), "9999999999999999999999999999999999");
        assert_eq!(decimal("1").divide(decimal("3")).to_string(), "0.3333333333333333333333333333333333");
        assert_eq!(decimal("1.10").multiply(decimal("2.0")).to_string(), "2.200");
        assert_eq!(decimal("2").sqrt().to_string(), "1.414213562373095048801688724209698");
        assert_eq!(decimal("1").exp().to_string(), "2.718281828459045235360287471352662");
        assert_eq!(decimal("10").ln().to_string(), "2.302585092994045684017991454684364");
        assert_eq!(decimal("9E+6144").multiply(decimal("10")).to_string(), "Infinity");
        assert_eq!(decimal("1").divide(decimal("0")).to_string(), "Infinity");
        assert_eq!(decimal("-1").sqrt().to_string(), "NaN");
        assert_eq!(decimal("2.5").quantize(0, Round::HalfEven).to_string(), "2");
        assert_eq!(decimal("-2.5").quantize(0, Round::Floor).to_string(), "-3");
    }

    #[test]
    fn doubles_keep_fifteen_digits_or_all() {
        assert_eq!(Decimal::from_f64(0.1).to_string(), "0.100000000000000");
        assert_eq!(Decimal::from_f64(1.0).to_string(), "1.00000000000000");
        assert_eq!(Decimal::from_f64_exact(0.1).to_string(), "0.1000000000000000055511151231257827");
        assert_eq!(Decimal::from_f64_exact(1.5).to_string(), "1.5");
        assert_eq!(Decimal::from_f64_exact(-3.0).to_string(), "-3");
        assert_eq!(decimal("0.1").to_f64(), 0.1);
        assert_eq!(decimal("1E+400").to_f64(), f64::INFINITY);
    }

    #[test]
    fn remainders_are_exact_however_far_apart() {
        assert_eq!(decimal("1E+6000").modulo(decimal("7")).compare(decimal("1")), Ordering::Equal);
        assert_eq!(decimal("-7.5").modulo(decimal("2")).to_string(), "-1.5");
        assert_eq!(decimal("1E-6000").modulo(decimal("3")).to_string(), "1E-6000");
        assert!(decimal("1").modulo(decimal("0")).is_nan());
    }

    proptest! {
        #[test]
        fn integers_order_as_integers(a: i64, b: i64, shift in 0i32..15) {
            let scaled = Decimal::finite(b < 0, u128::from(b.unsigned_abs()) * 10u128.pow(shift.unsigned_abs()), -shift);
            prop_assert_eq!(Decimal::from(a).compare(scaled), a.cmp(&b));
            prop_assert_eq!(scaled.to_i128_truncated(), Some(i128::from(b)));
            prop_assert!(scaled.is_integer());
        }
    }
}
