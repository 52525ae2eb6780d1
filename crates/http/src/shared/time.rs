//! Times: RFC 3339 in UTC outside, milliseconds since 1970 inside.

use bson::DateTime;

/// A time as RFC 3339 writes it, in UTC, with milliseconds.
pub(crate) fn text(time: DateTime) -> String {
    match jiff::Timestamp::from_millisecond(time.timestamp_millis()) {
        Ok(time) => format!("{time:.3}"),
        // Beyond the year 9999 there is no RFC 3339.
        Err(_) => "9999-12-31T23:59:59.999Z".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_rfc_3339_in_utc() {
        assert_eq!(text(DateTime::from_millis(0)), "1970-01-01T00:00:00.000Z");
        assert_eq!(text(DateTime::from_millis(1_767_225_599_001)), "2025-12-31T23:59:59.001Z");
    }
}
