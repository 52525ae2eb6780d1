//! Numbers as text, for the conversions.

use super::conversion::failure;
use crate::document::decimal::Decimal;
use crate::error::{Error, Result};

fn unreadable(text: &str, reason: &str) -> Error {
    let shown: String = text.chars().take(100).collect();
    failure(format!("Failed to parse number '{shown}' in $convert with no onError value: {reason}"))
}

/// A number as MongoDB writes doubles: the shortest digits that give it back, with an exponent below 10^-4 and from 10^16 on.
pub(super) fn double_to_text(number: f64) -> String {
    if number.is_nan() {
        return "NaN".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "Infinity".to_owned() } else { "-Infinity".to_owned() };
    }
    let scientific = format!("{number:e}");
    let (mantissa, exponent) = scientific.split_once('e').expect("scientific notation has an exponent");
    let exponent: i32 = exponent.parse().expect("an exponent is a number");
    if number == 0.0 || (-4..16).contains(&exponent) {
        return format!("{number}");
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.abs())
}

/// A whole number's digits in a base.
pub(super) fn integer_to_text(number: i64, base: Option<u32>) -> String {
    let sign = if number < 0 { "-" } else { "" };
    let magnitude = number.unsigned_abs();
    match base {
        Some(2) => format!("{sign}{magnitude:b}"),
        Some(8) => format!("{sign}{magnitude:o}"),
        Some(16) => format!("{sign}{magnitude:X}"),
        _ => number.to_string(),
    }
}

/// Digits with an optional sign; no spaces, points or exponents.
pub(super) fn text_to_integer(text: &str, base: u32) -> Result<i64> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.chars().all(|digit| digit.is_digit(base)) {
        return Err(unreadable(text, "only digits and a sign are allowed"));
    }
    i64::from_str_radix(text, base).map_err(|_| unreadable(text, "Overflow"))
}

/// A decimal or hexadecimal floating-point number, an infinity or NaN.
pub(super) fn text_to_double(text: &str) -> Result<f64> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if text.starts_with("0x") {
        return Err(unreadable(text, "Illegal hexadecimal input"));
    }
    if let Some(digits) = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        let magnitude = hexadecimal(digits).ok_or_else(|| unreadable(text, "Did not consume whole string"))?;
        return Ok(if negative { -magnitude } else { magnitude });
    }
    let number: f64 = digits.parse().map_err(|_| unreadable(text, "Did not consume whole string"))?;
    let named = digits.starts_with(|first: char| first.is_ascii_alphabetic());
    let nonzero =
        digits.bytes().take_while(|byte| !byte.eq_ignore_ascii_case(&b'e')).any(|byte| (b'1'..=b'9').contains(&byte));
    if digits.starts_with(['+', '-']) || (!named && (number.is_infinite() || (number == 0.0 && nonzero))) {
        return Err(unreadable(text, "Out of range"));
    }
    Ok(if negative { -number } else { number })
}

/// `1.8p3`: hexadecimal digits and a power of two.
fn hexadecimal(text: &str) -> Option<f64> {
    let (digits, power) = match text.find(['p', 'P']) {
        Some(at) => (&text[..at], text[at + 1..].parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let mut value = 0.0f64;
    for digit in whole.chars().chain(fraction.chars()) {
        value = value * 16.0 + f64::from(digit.to_digit(16)?);
    }
    let scale = power.checked_sub(4 * i32::try_from(fraction.len()).ok()?)?;
    let result = value * 2f64.powi(scale);
    (result.is_finite() && (result != 0.0 || value == 0.0)).then_some(result)
}

/// A decimal number, an infinity or NaN; more than 34 digits are rounded.
pub(super) fn text_to_decimal(text: &str) -> Result<Decimal> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let named = matches!(digits.to_ascii_lowercase().as_str(), "nan" | "inf" | "infinity");
    if !named && !digits.starts_with(|first: char| first.is_ascii_digit() || first == '.') {
        return Err(unreadable(text, "no digits"));
    }
    let number: Decimal = text.parse().map_err(|_| unreadable(text, "it is no decimal number"))?;
    let nonzero =
        digits.bytes().take_while(|byte| !byte.eq_ignore_ascii_case(&b'e')).any(|byte| (b'1'..=b'9').contains(&byte));
    if !named && (!number.is_finite() || (number.is_zero() && nonzero)) {
        return Err(unreadable(text, "Conversion from string to decimal would overflow or underflow"));
    }
    Ok(if number.is_nan() && text.starts_with('-') { number.negate() } else { number })
}
