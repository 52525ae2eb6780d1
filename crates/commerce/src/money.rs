//! Money: whole minor units of an ISO 4217 currency, exact percentages, splits whose parts add up to the whole.
//!
//! There is no floating point here. A percentage is an exact decimal ([`Rate`]); where a result is not a whole number of
//! minor units it is rounded half to even ([`Rate::of`]), which is the only rounding in this crate. A split rounds
//! nothing: the units that are left over go one each to the largest remainders, and among equals to the first parts.

use crate::error::{Error, Result};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// The currencies in use by ISO 4217, with how many digits their minor unit has; those with two are the rest.
const NO_DIGITS: &str = "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF";
const THREE_DIGITS: &str = "BHD IQD JOD KWD LYD OMR TND";
const FOUR_DIGITS: &str = "CLF UYW";
const TWO_DIGITS: &str = "AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BMD BND BOB BOV BRL BSD BTN BWP BYN BZD CAD \
CDF CHE CHF CHW CNY COP COU CRC CUP CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GTQ GYD HKD HNL \
HTG HUF IDR ILS INR IRR JMD KES KGS KHR KPW KYD KZT LAK LBP LKR LRD LSL MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK \
MXN MXV MYR MZN NAD NGN NIO NOK NPR NZD PAB PEN PGK PHP PKR PLN QAR RON RSD RUB SAR SBD SCR SDG SEK SGD SHP SLE SOS \
SRD SSP STN SVC SYP SZL THB TJS TMT TOP TRY TTD TWD TZS UAH USD USN UYU UZS VED VES WST XCD XCG YER ZAR ZMW ZWG";

/// A currency by its ISO 4217 code.
///
/// ```
/// use commerce::Currency;
/// assert_eq!("JPY".parse::<Currency>().unwrap().digits(), 0);
/// assert_eq!("EUR".parse::<Currency>().unwrap().digits(), 2);
/// assert!("eur".parse::<Currency>().is_err());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Currency([u8; 3]);

impl Currency {
    /// The code.
    pub fn code(&self) -> &str {
        std::str::from_utf8(&self.0).expect("only codes of the table are made, and those are ASCII")
    }

    /// How many digits its minor unit has: 2 for EUR, 0 for JPY, 3 for KWD.
    pub fn digits(&self) -> u32 {
        let code = self.code();
        let is = |table: &str| table.split_ascii_whitespace().any(|known| known == code);
        match () {
            () if is(NO_DIGITS) => 0,
            () if is(THREE_DIGITS) => 3,
            () if is(FOUR_DIGITS) => 4,
            () => 2,
        }
    }
}

impl FromStr for Currency {
    type Err = Error;

    fn from_str(text: &str) -> Result<Currency> {
        let known = [TWO_DIGITS, NO_DIGITS, THREE_DIGITS, FOUR_DIGITS];
        if !known.iter().any(|table| table.split_ascii_whitespace().any(|code| code == text)) {
            return Err(Error::invalid("currency", format!("`{text}` is no ISO 4217 code in use; an example is EUR")));
        }
        Ok(Currency(text.as_bytes().try_into().expect("the codes of the table have three letters")))
    }
}

impl fmt::Display for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

impl fmt::Debug for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

impl Serialize for Currency {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.serialize_str(self.code())
    }
}

impl<'de> Deserialize<'de> for Currency {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Currency, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// An amount of money.
///
/// ```
/// use commerce::Money;
/// let price = Money::new(1_999, "EUR".parse().unwrap());
/// assert_eq!(price.to_string(), "19.99 EUR");
/// assert_eq!(price.times(3).unwrap().amount_minor, 5_997);
/// assert!(price.plus(Money::new(1, "USD".parse().unwrap())).is_err());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Money {
    /// In minor units: cents for EUR, yen for JPY.
    pub amount_minor: i64,
    /// Of what.
    pub currency: Currency,
}

impl Money {
    /// An amount in minor units.
    pub fn new(amount_minor: i64, currency: Currency) -> Money {
        Money { amount_minor, currency }
    }

    /// Nothing of a currency.
    pub fn zero(currency: Currency) -> Money {
        Money { amount_minor: 0, currency }
    }

    fn with(self, amount_minor: Option<i64>) -> Result<Money> {
        let amount_minor = amount_minor.ok_or(Error::AmountTooLarge)?;
        Ok(Money { amount_minor, currency: self.currency })
    }

    /// That it is in the same currency as another amount.
    ///
    /// # Errors
    /// [`Error::CurrencyMismatch`].
    pub fn same_currency(self, other: Money) -> Result<()> {
        match self.currency == other.currency {
            true => Ok(()),
            false => Err(Error::CurrencyMismatch { left: self.currency, right: other.currency }),
        }
    }

    /// The sum.
    ///
    /// # Errors
    /// [`Error::CurrencyMismatch`], [`Error::AmountTooLarge`].
    pub fn plus(self, other: Money) -> Result<Money> {
        self.same_currency(other)?;
        self.with(self.amount_minor.checked_add(other.amount_minor))
    }

    /// The difference.
    ///
    /// # Errors
    /// [`Error::CurrencyMismatch`], [`Error::AmountTooLarge`].
    pub fn minus(self, other: Money) -> Result<Money> {
        self.same_currency(other)?;
        self.with(self.amount_minor.checked_sub(other.amount_minor))
    }

    /// So many times the amount.
    ///
    /// # Errors
    /// [`Error::AmountTooLarge`].
    pub fn times(self, quantity: i64) -> Result<Money> {
        self.with(self.amount_minor.checked_mul(quantity))
    }

    /// Parts in proportion to weights; they add up to the amount exactly.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a negative weight or weights that are all zero.
    pub fn split(self, weights: &[i64]) -> Result<Vec<Money>> {
        let parts = split(self.amount_minor, weights)?;
        Ok(parts.into_iter().map(|amount_minor| Money { amount_minor, currency: self.currency }).collect())
    }
}

impl fmt::Display for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.currency.digits() as usize;
        let sign = if self.amount_minor < 0 { "-" } else { "" };
        let units = self.amount_minor.unsigned_abs().to_string();
        let units = format!("{units:0>width$}", width = digits + 1);
        let (whole, minor) = units.split_at(units.len() - digits);
        let point = if digits > 0 { "." } else { "" };
        write!(f, "{sign}{whole}{point}{minor} {}", self.currency)
    }
}

/// Splits an amount in proportion to weights by largest remainders: the parts add up to the amount, each is within one
/// unit of its exact share, and a part of weight zero gets nothing.
///
/// # Errors
/// [`Error::Invalid`] for a negative weight or weights that are all zero.
///
/// ```
/// assert_eq!(commerce::split(100, &[1, 1, 1]).unwrap(), [34, 33, 33]);
/// assert_eq!(commerce::split(-100, &[1, 1, 1]).unwrap(), [-34, -33, -33]);
/// ```
pub fn split(amount: i64, weights: &[i64]) -> Result<Vec<i64>> {
    let total: i128 = weights.iter().map(|weight| i128::from(*weight)).sum();
    if weights.iter().any(|weight| *weight < 0) || total == 0 {
        return Err(Error::invalid("weights", "an amount is split by weights that are not negative and not all zero"));
    }
    let size = i128::from(amount).abs();
    let mut parts = Vec::with_capacity(weights.len());
    let mut remainders = Vec::with_capacity(weights.len());
    for (index, weight) in weights.iter().enumerate() {
        let share = size * i128::from(*weight);
        parts.push(share / total);
        remainders.push((share % total, index));
    }
    let left = size - parts.iter().sum::<i128>();
    remainders.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
    for (_, index) in remainders.into_iter().take(usize::try_from(left).expect("less than the number of parts")) {
        parts[index] += 1;
    }
    assert_eq!(parts.iter().sum::<i128>(), size, "the parts of a split add up to the whole");
    let sign = i128::from(amount.signum());
    Ok(parts.into_iter().map(|part| i64::try_from(part * sign).expect("a part is no larger than the whole")).collect())
}

/// An exact share of something, such as 12.5 %.
///
/// ```
/// use commerce::Rate;
/// let rate: Rate = "12.5".parse().unwrap();
/// assert_eq!(rate.of(1_000).unwrap(), 125);
/// assert_eq!(rate.of(100).unwrap(), 12); // 12.5 goes to the even neighbour
/// assert_eq!(rate.of(300).unwrap(), 38); // 37.5
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Rate {
    digits: i64,
    /// How many of the digits are behind the point of the percentage.
    scale: u32,
}

/// The most digits behind the point of a percentage.
pub const MAX_RATE_SCALE: u32 = 9;

impl Rate {
    /// That share of an amount, rounded half to even.
    ///
    /// # Errors
    /// [`Error::AmountTooLarge`].
    pub fn of(self, amount: i64) -> Result<i64> {
        let divisor = 100 * 10_i128.pow(self.scale);
        let product = i128::from(amount) * i128::from(self.digits);
        let (whole, rest) = (product.div_euclid(divisor), product.rem_euclid(divisor));
        let up = match (rest * 2).cmp(&divisor) {
            std::cmp::Ordering::Less => false,
            std::cmp::Ordering::Greater => true,
            std::cmp::Ordering::Equal => whole % 2 != 0,
        };
        i64::try_from(whole + i128::from(up)).map_err(|_| Error::AmountTooLarge)
    }
}

impl FromStr for Rate {
    type Err = Error;

    fn from_str(text: &str) -> Result<Rate> {
        let wrong = || Error::invalid("rate", format!("`{text}` is no percentage; an example is 12.5"));
        let (whole, part) = text.split_once('.').unwrap_or((text, ""));
        let plain = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
        let scale = part.len() as u32;
        if whole.is_empty() || !plain(whole) || !plain(part) || scale > MAX_RATE_SCALE || text.ends_with('.') {
            return Err(wrong());
        }
        let digits = format!("{whole}{part}").parse().map_err(|_| wrong())?;
        Ok(Rate { digits, scale })
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = format!("{:0>width$}", self.digits, width = self.scale as usize + 1);
        let (whole, part) = digits.split_at(digits.len() - self.scale as usize);
        write!(f, "{whole}{}{part}", if part.is_empty() { "" } else { "." })
    }
}

impl Serialize for Rate {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Rate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Rate, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_amount_is_shown_with_the_digits_of_its_currency() {
        for (minor, code, shown) in [
            (5, "EUR", "0.05 EUR"),
            (-1_234, "EUR", "-12.34 EUR"),
            (1_234, "JPY", "1234 JPY"),
            (1, "KWD", "0.001 KWD"),
            (0, "JPY", "0 JPY"),
            (i64::MIN, "EUR", "-92233720368547758.08 EUR"),
        ] {
            assert_eq!(Money::new(minor, code.parse().unwrap()).to_string(), shown);
        }
    }

    #[test]
    fn what_does_not_fit_is_refused_not_wrapped() {
        let most = Money::new(i64::MAX, "EUR".parse().unwrap());
        assert!(matches!(most.plus(Money::new(1, most.currency)), Err(Error::AmountTooLarge)));
        assert!(matches!(most.times(2), Err(Error::AmountTooLarge)));
        assert!(matches!("200".parse::<Rate>().unwrap().of(i64::MAX), Err(Error::AmountTooLarge)));
    }

    #[test]
    fn percentages_are_read_exactly_or_not_at_all() {
        for text in ["", ".", "1.", ".5", "-1", "1e3", "1.0000000001", "١"] {
            assert!(text.parse::<Rate>().is_err(), "{text}");
        }
        for text in ["0", "0.5", "12.50", "100"] {
            assert_eq!(text.parse::<Rate>().unwrap().to_string(), text);
        }
        assert_eq!("0.000000001".parse::<Rate>().unwrap().of(100_000_000_000).unwrap(), 1);
    }

    proptest! {
        #[test]
        fn parts_add_up_and_are_within_a_unit_of_their_share(
            amount in -1_000_000_000_i64..1_000_000_000,
            weights in proptest::collection::vec(0_i64..1_000_000, 1..20),
        ) {
            prop_assume!(weights.iter().sum::<i64>() > 0);
            let parts = split(amount, &weights).unwrap();
            prop_assert_eq!(parts.iter().sum::<i64>(), amount);
            let total: i128 = weights.iter().map(|weight| i128::from(*weight)).sum();
            for (part, weight) in parts.iter().zip(&weights) {
                let exact = i128::from(amount) * i128::from(*weight);
                prop_assert!((i128::from(*part) * total - exact).abs() < total);
                prop_assert!(*weight > 0 || *part == 0);
            }
        }

        #[test]
        fn a_rate_rounds_to_the_nearest_and_ties_to_even(amount in -1_000_000_i64..1_000_000, digits in 0_i64..2_000) {
            let rate = Rate { digits, scale: 1 };
            let exact = amount * digits; // in thousandths
            let got = rate.of(amount).unwrap();
            let off = (got * 1_000 - exact).abs();
            prop_assert!(off < 500 || off == 500 && got % 2 == 0, "{} of {} gave {}", rate, amount, got);
        }
    }
}
