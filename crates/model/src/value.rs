//! The small values of the language: rates, durations, sort keys, literals and field types.
//!
//! Each prints in one canonical way, which is also how it stands in canonical JSON.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::fmt;

/// A count per unit of time, such as `20_000/day`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// How many.
    pub count: f64,
    /// In how much time.
    pub unit: Unit,
}

/// A unit of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A second.
    Second,
    /// 60 seconds.
    Minute,
    /// 60 minutes.
    Hour,
    /// 24 hours.
    Day,
    /// 7 days.
    Week,
    /// 30 days.
    Month,
    /// 365 days.
    Year,
}

impl Unit {
    const ALL: [(Unit, &'static [&'static str]); 7] = [
        (Unit::Second, &["s", "sec", "second"]),
        (Unit::Minute, &["min", "m", "minute"]),
        (Unit::Hour, &["h", "hour"]),
        (Unit::Day, &["day", "d"]),
        (Unit::Week, &["week", "w"]),
        (Unit::Month, &["month"]),
        (Unit::Year, &["year", "y"]),
    ];

    /// Its length.
    pub fn seconds(self) -> f64 {
        match self {
            Unit::Second => 1.0,
            Unit::Minute => 60.0,
            Unit::Hour => 3600.0,
            Unit::Day => 86_400.0,
            Unit::Week => 604_800.0,
            Unit::Month => 2_592_000.0,
            Unit::Year => 31_536_000.0,
        }
    }

    fn parse(text: &str) -> Option<Unit> {
        Unit::ALL.iter().find(|(_, names)| names.contains(&text)).map(|(unit, _)| *unit)
    }

    fn name(self) -> &'static str {
        Unit::ALL.iter().find(|(unit, _)| *unit == self).map_or("s", |(_, names)| names[0])
    }
}

impl Rate {
    /// Reads `2000/s`, `20_000/day`, `1.5/h`.
    pub fn parse(text: &str) -> Option<Rate> {
        let (count, unit) = text.split_once('/')?;
        let count: f64 = count.trim().replace('_', "").parse().ok()?;
        if !count.is_finite() || count < 0.0 {
            return None;
        }
        Some(Rate { count, unit: Unit::parse(unit.trim())? })
    }

    /// The rate per second.
    pub fn per_second(self) -> f64 {
        self.count / self.unit.seconds()
    }

    /// The rate per day.
    pub fn per_day(self) -> f64 {
        self.per_second() * 86_400.0
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.count, self.unit.name())
    }
}

/// A length of time in whole milliseconds, such as `15m` or `30d`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Duration {
    /// Its length in milliseconds.
    pub ms: u64,
}

impl Duration {
    const UNITS: [(&'static str, u64); 5] =
        [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

    /// Reads `500ms`, `30s`, `15m`, `24h`, `30d`.
    pub fn parse(text: &str) -> Option<Duration> {
        let digits = text.find(|c: char| !c.is_ascii_digit() && c != '_')?;
        let count: u64 = text[..digits].replace('_', "").parse().ok()?;
        let unit = match text[digits..].trim() {
            "min" => "m",
            "day" | "days" => "d",
            unit => unit,
        };
        let (_, ms) = Duration::UNITS.iter().find(|(name, _)| *name == unit)?;
        Some(Duration { ms: count.checked_mul(*ms)? })
    }

    /// Its length in seconds.
    pub fn seconds(self) -> f64 {
        self.ms as f64 / 1000.0
    }
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, ms) =
            Duration::UNITS.iter().find(|(_, ms)| self.ms > 0 && self.ms.is_multiple_of(*ms)).unwrap_or(&("s", 1_000));
        write!(f, "{}{name}", self.ms / ms)
    }
}

/// One key of a sort: `createdAt` or `-createdAt`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SortKey {
    /// The field's path.
    pub path: String,
    /// Newest or largest first.
    pub descending: bool,
}

impl SortKey {
    /// Reads a key; a leading `-` means descending.
    pub fn parse(text: &str) -> Option<SortKey> {
        let (descending, path) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        (!path.is_empty()).then(|| SortKey { path: path.to_owned(), descending })
    }
}

impl fmt::Display for SortKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", if self.descending { "-" } else { "" }, self.path)
    }
}

macro_rules! as_text {
    ($($type:ty, $expected:literal;)*) => {$(
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                <$type>::parse(&text).ok_or_else(|| de::Error::invalid_value(de::Unexpected::Str(&text), &$expected))
            }
        }
    )*};
}

as_text! {
    Rate, "a rate such as 20_000/day";
    Duration, "a duration such as 15m or 30d";
    SortKey, "a field's path, with - before it for descending";
}

/// A constant in a filter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Literal {
    /// `#null`
    Null,
    /// `#true`, `#false`
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A number with a fraction.
    Double(f64),
    /// A text.
    Text(String),
}

impl fmt::Display for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Literal::Null => f.write_str("null"),
            Literal::Bool(value) => write!(f, "{value}"),
            Literal::Int(value) => write!(f, "{value}"),
            Literal::Double(value) => write!(f, "{value}"),
            Literal::Text(value) => write!(f, "{value:?}"),
        }
    }
}

/// What a field holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Type {
    /// UTF-8 text.
    String,
    /// A 32-bit integer.
    Int,
    /// A 64-bit integer; money in minor units.
    Long,
    /// A 64-bit float; never money.
    Double,
    /// A 128-bit decimal.
    Decimal,
    /// `true` or `false`.
    Bool,
    /// A moment in UTC.
    Date,
    /// 12 bytes, increasing with time.
    ObjectId,
    /// 16 bytes, subtype 4.
    Uuid,
    /// Bytes.
    Binary,
    /// A sub-document with the fields declared in it, or any.
    Object,
    /// Anything.
    Any,
}

impl Type {
    /// Every type with its name, which is also MongoDB's alias where it has one.
    pub const ALL: [(&'static str, Type); 12] = [
        ("string", Type::String),
        ("int", Type::Int),
        ("long", Type::Long),
        ("double", Type::Double),
        ("decimal", Type::Decimal),
        ("bool", Type::Bool),
        ("date", Type::Date),
        ("objectId", Type::ObjectId),
        ("uuid", Type::Uuid),
        ("binary", Type::Binary),
        ("object", Type::Object),
        ("any", Type::Any),
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        Type::ALL.iter().find(|(_, each)| *each == self).map_or("any", |(name, _)| name)
    }

    /// Whether values can be added up.
    pub fn is_number(self) -> bool {
        matches!(self, Type::Int | Type::Long | Type::Double | Type::Decimal)
    }

    /// The bytes of a value that has no declared size, without its field's key and type byte.
    pub fn bytes(self) -> u64 {
        match self {
            Type::String => 5 + 16,
            Type::Int => 4,
            Type::Long | Type::Double | Type::Date => 8,
            Type::Decimal => 16,
            Type::Bool => 1,
            Type::ObjectId => 12,
            Type::Uuid => 5 + 16,
            Type::Binary => 5 + 64,
            Type::Object | Type::Any => 5 + 40,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_read_and_printed_in_one_way() {
        let rate = Rate::parse("20_000/day").expect("a rate");
        assert_eq!(rate.to_string(), "20000/day");
        assert!((rate.per_second() - 0.231_481).abs() < 1e-6);
        assert_eq!(Rate::parse("1.5/hour").map(|rate| rate.to_string()), Some("1.5/h".into()));
        for bad in ["20", "x/s", "1/fortnight", "-1/s", "inf/s"] {
            assert_eq!(Rate::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_duration_prints_in_its_largest_whole_unit() {
        for (text, canonical) in [("90s", "90s"), ("120s", "2m"), ("24h", "1d"), ("500ms", "500ms"), ("0s", "0s")] {
            assert_eq!(Duration::parse(text).map(|duration| duration.to_string()), Some(canonical.into()), "{text}");
        }
        for bad in ["5", "s", "1 fortnight", ""] {
            assert_eq!(Duration::parse(bad), None, "{bad}");
        }
    }
}
