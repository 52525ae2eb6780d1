//! Values as text, as `$toUpper`, `$toLower`, `$strcasecmp` and `$substr…` read their operand.

use crate::document::Value;
use crate::error::{Error, Result};
use bson::RawBsonRef;
use jiff::{Span, Timestamp, civil};
use std::borrow::Cow;

/// The value as text; null and missing are the empty string.
///
/// # Errors
/// `Location16007` for a value that is neither text, number, date, timestamp nor code.
pub(super) fn coerce<'v>(value: &'v Value<'_>) -> Result<Cow<'v, str>> {
    Ok(match value.or_null() {
        RawBsonRef::String(text) | RawBsonRef::Symbol(text) | RawBsonRef::JavaScriptCode(text) => Cow::Borrowed(text),
        RawBsonRef::Null | RawBsonRef::Undefined => Cow::Borrowed(""),
        RawBsonRef::Int32(number) => Cow::Owned(number.to_string()),
        RawBsonRef::Int64(number) => Cow::Owned(number.to_string()),
        RawBsonRef::Double(number) => Cow::Owned(six_digits(number)),
        RawBsonRef::Decimal128(number) => Cow::Owned(number.to_string()),
        RawBsonRef::DateTime(date) => Cow::Owned(iso(date.timestamp_millis())?),
        RawBsonRef::Timestamp(timestamp) => {
            let time = Timestamp::from_second(i64::from(timestamp.time)).expect("32 bits of seconds are in range");
            Cow::Owned(format!("{}:{}", time.strftime("%b %e %H:%M:%S"), timestamp.increment))
        }
        other => {
            return Err(Error::location(
                16007,
                format!("a value of type {} can't be read as a string here", crate::document::type_name(other)),
            ));
        }
    })
}

/// A date as `2024-01-31T23:59:59.999Z`.
fn iso(millis: i64) -> Result<String> {
    let refused = || Error::location(18537, "a date before year 0 or after 9999 has no text form");
    let day = civil::date(1970, 1, 1)
        .checked_add(Span::new().try_days(millis.div_euclid(MILLIS_A_DAY)).map_err(|_| refused())?)
        .ok()
        .filter(|day| day.year() >= 0)
        .ok_or_else(refused)?;
    let rest = millis.rem_euclid(MILLIS_A_DAY);
    let (minutes, millis) = (rest / 60_000, rest % 60_000);
    Ok(format!("{day}T{:02}:{:02}:{:02}.{:03}Z", minutes / 60, minutes % 60, millis / 1000, millis % 1000))
}

const MILLIS_A_DAY: i64 = 86_400_000;

/// A double with six significant digits, in exponent form when it is very small or has more digits before the point.
fn six_digits(number: f64) -> String {
    if number.is_nan() {
        return "nan".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    let scientific = format!("{number:.5e}");
    let (digits, exponent) = scientific.split_once('e').expect("the exponent form holds an 'e'");
    let exponent: i32 = exponent.parse().expect("an exponent is an integer");
    if (-4..6).contains(&exponent) {
        return without_trailing_zeros(&format!("{number:.*}", (5 - exponent) as usize)).to_owned();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", without_trailing_zeros(digits), exponent.abs())
}

fn without_trailing_zeros(digits: &str) -> &str {
    if digits.contains('.') { digits.trim_end_matches('0').trim_end_matches('.') } else { digits }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_have_six_significant_digits() {
        for (number, text) in [
            (3.0, "3"),
            (1.234_567_89, "1.23457"),
            (999_999.0, "999999"),
            (999_999.5, "1e+06"),
            (1e-5, "1e-05"),
            (0.0001, "0.0001"),
            (-0.0, "-0"),
            (5e-324, "4.94066e-324"),
            (f64::MAX, "1.79769e+308"),
        ] {
            assert_eq!(six_digits(number), text);
        }
    }
}
