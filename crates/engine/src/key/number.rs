//! Numbers of all four types as one ordered encoding.
//!
//! Eight bytes hold the greatest double that is not above the number, sortable; a mark says whether that double *is* the
//! number. If not (an int64 beyond 2^53, most decimals), the number's own decimal digits follow: all numbers with the
//! same double below them have the same sign, so their digits, by exponent and then left to right, order them exactly.

use super::kind;
use bson::{Decimal128, RawBsonRef};
use std::cmp::Ordering;

/// The double is the number.
pub(super) const EXACT: u8 = 0x01;
/// Digits follow.
pub(super) const DIGITS: u8 = 0x02;
/// Added to a decimal exponent to make it positive.
pub(super) const EXPONENT_BIAS: i32 = 0x4000;
const DECIMAL_BIAS: i32 = 6176;
const MAX_COEFFICIENT: u128 = 9_999_999_999_999_999_999_999_999_999_999_999;

/// Appends a number's payload and its type code.
pub(super) fn encode(value: RawBsonRef<'_>, out: &mut Vec<u8>, types: &mut Vec<u8>) {
    match value {
        RawBsonRef::Int32(number) => {
            types.push(kind::USUAL);
            exact(f64::from(number), out);
        }
        RawBsonRef::Int64(number) => {
            types.push(kind::INT64);
            encode_i64(number, out);
        }
        RawBsonRef::Double(number) => {
            types.push(match number {
                _ if number == 0.0 && number.is_sign_negative() => kind::NEGATIVE_ZERO,
                _ if is_int32(number) => kind::DOUBLE,
                _ => kind::USUAL,
            });
            exact(number, out);
        }
        RawBsonRef::Decimal128(number) => encode_decimal(&number, out, types),
        _ => unreachable!("only numbers have the number tag"),
    }
}

/// Whether a double is a whole number that an int32 holds: then int32 is the usual type.
pub(super) fn is_int32(number: f64) -> bool {
    number.fract() == 0.0 && number >= f64::from(i32::MIN) && number <= f64::from(i32::MAX)
}

fn exact(number: f64, out: &mut Vec<u8>) {
    out.extend_from_slice(&sortable(number).to_be_bytes());
    out.push(EXACT);
}

/// A double's bits so that they order as unsigned integers; NaN is lowest, both zeros are one.
pub(super) fn sortable(number: f64) -> u64 {
    if number.is_nan() {
        return 0;
    }
    let bits = if number == 0.0 { 0 } else { number.to_bits() };
    if bits >> 63 == 1 { !bits } else { bits ^ (1 << 63) }
}

/// The double of [`sortable`] bits.
pub(super) fn from_sortable(bits: u64) -> f64 {
    match bits {
        0 => f64::NAN,
        _ if bits >> 63 == 1 => f64::from_bits(bits ^ (1 << 63)),
        _ => f64::from_bits(!bits),
    }
}

fn encode_i64(number: i64, out: &mut Vec<u8>) {
    let nearest = number as f64;
    match (nearest as i128).cmp(&i128::from(number)) {
        Ordering::Equal => exact(nearest, out),
        order => {
            let floor = if order == Ordering::Greater { nearest.next_down() } else { nearest };
            inexact(floor, &Decimal::from_integer(number), out);
        }
    }
}

fn encode_decimal(number: &Decimal128, out: &mut Vec<u8>, types: &mut Vec<u8>) {
    let decimal = match Parsed::of(number) {
        Parsed::NaN => {
            types.extend_from_slice(&[kind::DECIMAL, 0, 0]);
            return exact(f64::NAN, out);
        }
        Parsed::Infinite { negative } => {
            types.extend_from_slice(&[kind::DECIMAL, 0, 0]);
            return exact(if negative { f64::NEG_INFINITY } else { f64::INFINITY }, out);
        }
        Parsed::Finite(decimal) => decimal,
    };
    let negative_zero = decimal.negative && decimal.coefficient == 0;
    types.push(if negative_zero { kind::NEGATIVE_ZERO_DECIMAL } else { kind::DECIMAL });
    let exponent = u16::try_from(decimal.exponent + DECIMAL_BIAS).expect("a decimal's exponent is within its bias");
    types.extend_from_slice(&exponent.to_be_bytes());
    if decimal.coefficient == 0 {
        return exact(0.0, out);
    }
    let text = format!("{}{}e{}", if decimal.negative { "-" } else { "" }, decimal.coefficient, decimal.exponent);
    let nearest: f64 = text.parse().expect("a decimal number's text");
    let nearest = if nearest == 0.0 { 0.0 } else { nearest };
    match compare_double(nearest, &decimal) {
        Ordering::Equal => exact(nearest, out),
        Ordering::Less => inexact(nearest, &decimal, out),
        Ordering::Greater => inexact(nearest.next_down(), &decimal, out),
    }
}

fn inexact(floor: f64, number: &Decimal, out: &mut Vec<u8>) {
    out.extend_from_slice(&sortable(floor).to_be_bytes());
    out.push(DIGITS);
    let from = out.len();
    let digits = number.coefficient.to_string();
    let leading = number.exponent + digits.len() as i32 - 1 + EXPONENT_BIAS;
    out.extend_from_slice(&u16::try_from(leading).expect("exponents are within the bias").to_be_bytes());
    let digits = digits.trim_end_matches('0').as_bytes();
    for pair in digits.chunks(2) {
        let tens = (pair[0] - b'0') * 10;
        let ones = pair.get(1).map_or(0, |digit| digit - b'0');
        out.push(tens + ones + 1);
    }
    out.push(0);
    if number.negative {
        super::invert(&mut out[from..]);
    }
}

/// How a double stands to a decimal, exactly.
fn compare_double(double: f64, decimal: &Decimal) -> Ordering {
    if double.is_infinite() {
        return if double > 0.0 { Ordering::Greater } else { Ordering::Less };
    }
    if double == 0.0 {
        return if decimal.negative { Ordering::Greater } else { Ordering::Less };
    }
    // 41 digits of the double, rounded: when they differ from the decimal's 34 or fewer, they already decide. Otherwise
    // all digits do, of which a double has at most 767.
    let order = match compare_digits(&format!("{:.40e}", double.abs()), decimal) {
        Ordering::Equal => compare_digits(&format!("{:.767e}", double.abs()), decimal),
        order => order,
    };
    if decimal.negative { order.reverse() } else { order }
}

fn compare_digits(scientific: &str, decimal: &Decimal) -> Ordering {
    let (mantissa, exponent) = scientific.split_once('e').expect("scientific notation");
    let exponent: i32 = exponent.parse().expect("scientific notation");
    let digits: String = mantissa.chars().filter(|digit| *digit != '.').collect();
    let own = decimal.coefficient.to_string();
    let own_exponent = decimal.exponent + own.len() as i32 - 1;
    exponent
        .cmp(&own_exponent)
        .then_with(|| digits.trim_end_matches('0').as_bytes().cmp(own.trim_end_matches('0').as_bytes()))
}

/// A finite decimal: ± coefficient × 10^exponent.
pub(super) struct Decimal {
    pub(super) negative: bool,
    pub(super) coefficient: u128,
    pub(super) exponent: i32,
}

enum Parsed {
    NaN,
    Infinite { negative: bool },
    Finite(Decimal),
}

impl Parsed {
    fn of(number: &Decimal128) -> Parsed {
        let bits = u128::from_le_bytes(number.bytes());
        let negative = bits >> 127 == 1;
        let top = (bits >> 122) & 0b1_1111;
        if top == 0b1_1111 {
            return Parsed::NaN;
        }
        if top == 0b1_1110 {
            return Parsed::Infinite { negative };
        }
        let large = top >> 3 == 0b11; // a coefficient beyond 34 digits, read as zero
        let exponent = if large { bits >> 111 } else { bits >> 113 } & 0x3FFF;
        let coefficient = if large { 0 } else { bits & ((1 << 113) - 1) };
        let coefficient = if coefficient > MAX_COEFFICIENT { 0 } else { coefficient };
        Parsed::Finite(Decimal { negative, coefficient, exponent: exponent as i32 - DECIMAL_BIAS })
    }
}

impl Decimal {
    fn from_integer(number: i64) -> Decimal {
        Decimal { negative: number < 0, coefficient: u128::from(number.unsigned_abs()), exponent: 0 }
    }

    /// The exact decimal of a double that is known to have one of at most 34 digits.
    pub(super) fn from_double(number: f64) -> Decimal {
        let text = format!("{:.40e}", number.abs());
        let (mantissa, exponent) = text.split_once('e').expect("scientific notation");
        let exponent: i32 = exponent.parse().expect("scientific notation");
        let digits: String = mantissa.chars().filter(|digit| *digit != '.').collect();
        let digits = digits.trim_end_matches('0');
        let coefficient = digits.parse().unwrap_or(0);
        Decimal { negative: number < 0.0, coefficient, exponent: exponent + 1 - digits.len() as i32 }
    }

    /// The decimal with the exponent that the type bits give (biased), which only shifts zeros.
    pub(super) fn to_decimal128(&self, biased_exponent: u16, negative_zero: bool) -> Decimal128 {
        let target = i32::from(biased_exponent) - DECIMAL_BIAS;
        let mut coefficient = self.coefficient;
        if coefficient != 0 {
            for _ in target..self.exponent {
                coefficient = coefficient.saturating_mul(10);
            }
            for _ in self.exponent..target {
                coefficient /= 10;
            }
        }
        let negative = if coefficient == 0 { negative_zero } else { self.negative };
        let bits = (u128::from(negative) << 127) | (u128::from(biased_exponent) << 113) | coefficient;
        Decimal128::from_bytes(bits.to_le_bytes())
    }
}
