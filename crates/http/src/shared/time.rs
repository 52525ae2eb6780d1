//! Times: RFC 3339 in UTC outside, milliseconds since 1970 inside.

use crate::shared::problem::{INVALID_QUERY, Problem, Result};
use bson::DateTime;

/// A time as RFC 3339 writes it, in UTC, with milliseconds.
pub(crate) fn text(time: DateTime) -> String {
    match jiff::Timestamp::from_millisecond(time.timestamp_millis()) {
        Ok(time) => format!("{time:.3}"),
        // Beyond the year 9999 there is no RFC 3339.
        Err(_) => "9999-12-31T23:59:59.999Z".to_owned(),
    }
}

/// A time of a query parameter.
pub(crate) fn parse(name: &str, text: &str) -> Result<DateTime> {
    let time: jiff::Timestamp = text.parse().map_err(|_| {
        Problem::new(&INVALID_QUERY, format!("'{name}' must be a time of RFC 3339 such as 2026-01-31T12:00:00Z"))
    })?;
    Ok(DateTime::from_millis(time.as_millisecond()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_rfc_3339_in_utc() {
        assert_eq!(text(DateTime::from_millis(0)), "1970-01-01T00:00:00.000Z");
        assert_eq!(text(DateTime::from_millis(1_767_225_599_001)), "2025-12-31T23:59:59.001Z");
        assert_eq!(parse("from", "2026-01-01T01:00:00+01:00").unwrap().timestamp_millis(), 1_767_225_600_000);
        assert!(parse("from", "yesterday").is_err());
    }
}
