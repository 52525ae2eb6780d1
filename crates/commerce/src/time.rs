//! Points in time: milliseconds in UTC, a BSON date in documents and RFC 3339 in texts.

use bson::{Bson, DateTime};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::time::Duration;

/// A point in time.
///
/// ```
/// let time = commerce::Time::from_millis(1_700_000_000_123);
/// assert_eq!(serde_json::to_string(&time).unwrap(), "\"2023-11-14T22:13:20.123Z\"");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Time(i64);

impl Time {
    /// Milliseconds since 1970.
    pub fn from_millis(millis: i64) -> Time {
        Time(millis)
    }

    /// Milliseconds since 1970.
    pub fn millis(self) -> i64 {
        self.0
    }

    /// Later by a duration.
    pub fn plus(self, duration: Duration) -> Time {
        Time(self.0.saturating_add(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)))
    }

    /// Earlier by a duration.
    pub fn minus(self, duration: Duration) -> Time {
        Time(self.0.saturating_sub(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)))
    }

    pub(crate) fn date(self) -> DateTime {
        DateTime::from_millis(self.0)
    }
}

impl From<DateTime> for Time {
    fn from(date: DateTime) -> Time {
        Time(date.timestamp_millis())
    }
}

impl From<Time> for DateTime {
    fn from(time: Time) -> DateTime {
        time.date()
    }
}

impl From<Time> for Bson {
    fn from(time: Time) -> Bson {
        Bson::DateTime(time.date())
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.date().try_to_rfc3339_string() {
            Ok(text) => f.write_str(&text),
            Err(_) => write!(f, "{} ms", self.0),
        }
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match serializer.is_human_readable() {
            true => serializer.collect_str(self),
            false => self.date().serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Time, D::Error> {
        if !deserializer.is_human_readable() {
            return Ok(DateTime::deserialize(deserializer)?.into());
        }
        let text = String::deserialize(deserializer)?;
        DateTime::parse_rfc3339_str(&text).map(Time::from).map_err(serde::de::Error::custom)
    }
}
