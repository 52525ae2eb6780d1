//! Dates: calendar fields, time zones, and arithmetic by units.
//!
//! A BSON date is a count of milliseconds since 1970-01-01T00:00:00Z in 64 bits, some 292 million years either way, far
//! beyond what calendar libraries hold. So the (proleptic Gregorian) calendar is computed here, and only time zone rules
//! come from `jiff` with its own copy of the time zone database. *Local* milliseconds are what a clock in the zone shows,
//! counted as if it were UTC.

use crate::error::{Error, Result};
use bson::RawBsonRef;
use jiff::tz::{AmbiguousOffset, TimeZone, TimeZoneDatabase};
use std::sync::LazyLock;

/// Milliseconds in a second.
pub const SECOND_MS: i64 = 1000;
/// Milliseconds in a minute.
pub const MINUTE_MS: i64 = 60 * SECOND_MS;
/// Milliseconds in an hour.
pub const HOUR_MS: i64 = 60 * MINUTE_MS;
/// Milliseconds in a day.
pub const DAY_MS: i64 = 24 * HOUR_MS;

/// The milliseconds since 1970 of a value that counts as a date: a date, a timestamp or an ObjectId.
pub fn millis_of(value: RawBsonRef<'_>) -> Option<i64> {
    match value {
        RawBsonRef::DateTime(date) => Some(date.timestamp_millis()),
        RawBsonRef::Timestamp(timestamp) => Some(i64::from(timestamp.time) * SECOND_MS),
        RawBsonRef::ObjectId(id) => {
            // The seconds in an ObjectId are signed.
            let bytes = id.bytes();
            Some(i64::from(i32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])) * SECOND_MS)
        }
        _ => None,
    }
}

/// A moment taken apart by the calendar.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Civil {
    /// The year; 0 is 1 BC.
    pub year: i64,
    /// 1 to 12.
    pub month: i64,
    /// 1 to 31.
    pub day: i64,
    /// 0 to 23.
    pub hour: i64,
    /// 0 to 59.
    pub minute: i64,
    /// 0 to 59.
    pub second: i64,
    /// 0 to 999.
    pub millisecond: i64,
}

impl Civil {
    /// The calendar fields of local milliseconds.
    pub fn from_millis(local: i64) -> Civil {
        let (days, rest) = (local.div_euclid(DAY_MS), local.rem_euclid(DAY_MS));
        let (year, month, day) = civil_from_days(days);
        Civil {
            year,
            month,
            day,
            hour: rest / HOUR_MS,
            minute: rest / MINUTE_MS % 60,
            second: rest / SECOND_MS % 60,
            millisecond: rest % SECOND_MS,
        }
    }

    /// The local milliseconds; fields out of their range carry over. `None` beyond 64 bits.
    pub fn to_millis(&self) -> Option<i64> {
        let month = i128::from(self.year) * 12 + i128::from(self.month) - 1;
        let year = i64::try_from(month.div_euclid(12)).ok()?;
        if year.abs() > 1_000_000_000 {
            return None;
        }
        let days = i128::from(days_from_civil(year, (month.rem_euclid(12) + 1) as i64, 1)) + i128::from(self.day) - 1;
        let millis = days * i128::from(DAY_MS)
            + i128::from(self.hour) * i128::from(HOUR_MS)
            + i128::from(self.minute) * i128::from(MINUTE_MS)
            + i128::from(self.second) * i128::from(SECOND_MS)
            + i128::from(self.millisecond);
        i64::try_from(millis).ok()
    }

    /// Days since 1970-01-01.
    pub fn days(&self) -> i64 {
        days_from_civil(self.year, self.month, self.day)
    }

    /// 1 to 366.
    pub fn day_of_year(&self) -> i64 {
        self.days() - days_from_civil(self.year, 1, 1) + 1
    }

    /// 1 for Sunday to 7 for Saturday.
    pub fn day_of_week(&self) -> i64 {
        (self.days() + 4).rem_euclid(7) + 1
    }

    /// 1 for Monday to 7 for Sunday.
    pub fn iso_day_of_week(&self) -> i64 {
        (self.days() + 3).rem_euclid(7) + 1
    }

    /// The week from 0 to 53; weeks begin on Sundays, and the first Sunday begins week 1.
    pub fn week(&self) -> i64 {
        (self.day_of_year() + 7 - self.day_of_week()) / 7
    }

    /// The ISO 8601 year and week: weeks begin on Mondays and belong to the year that their Thursday is in.
    pub fn iso_week(&self) -> (i64, i64) {
        let thursday = self.days() + 4 - self.iso_day_of_week();
        let (year, _, _) = civil_from_days(thursday);
        (year, (thursday - days_from_civil(year, 1, 1)) / 7 + 1)
    }
}

/// Days since 1970-01-01 of a day in an ISO 8601 week; out of their ranges, week and day carry over.
pub fn days_from_iso_week(year: i64, week: i64, day: i64) -> i64 {
    let fourth = days_from_civil(year, 1, 4);
    let monday = fourth - (fourth + 3).rem_euclid(7);
    monday + (week - 1) * 7 + day - 1
}

/// Days since 1970-01-01 of a day of the calendar; the month is from 1 to 12, the day carries over.
pub fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    // Years are counted from March, so that the leap day comes last, in cycles of 400 years.
    let year = if month <= 2 { year - 1 } else { year };
    let (cycle, year_of_cycle) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_cycle = year_of_cycle * 365 + year_of_cycle / 4 - year_of_cycle / 100 + day_of_year;
    cycle * 146_097 + day_of_cycle - 719_468
}

/// Year, month and day of a count of days since 1970-01-01.
pub fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (cycle, day_of_cycle) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_cycle = (day_of_cycle - day_of_cycle / 1_460 + day_of_cycle / 36_524 - day_of_cycle / 146_096) / 365;
    let day_of_year = day_of_cycle - (365 * year_of_cycle + year_of_cycle / 4 - year_of_cycle / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (year_of_cycle + cycle * 400 + i64::from(month <= 2), month, day)
}

/// The last day of a month, from 28 to 31.
pub fn last_day_of_month(year: i64, month: i64) -> i64 {
    let (next_year, next) = if month == 12 { (year + 1, 1) } else { (year, month + 1) };
    days_from_civil(next_year, next, 1) - days_from_civil(year, month, 1)
}

/// A time zone.
#[derive(Clone, Debug)]
pub enum Zone {
    /// Coordinated universal time.
    Utc,
    /// A fixed offset from UTC, in seconds to the east.
    Fixed(i64),
    /// A zone of the time zone database.
    Named(TimeZone),
}

static DATABASE: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);

impl Zone {
    /// Reads an Olson name (`Europe/Berlin`, as the database spells it), `UTC`, `GMT`, or an offset (`+05:30`, `-0530`, `+03`).
    ///
    /// # Errors
    /// `Location40485` for anything else.
    pub fn parse(text: &str) -> Result<Zone> {
        if matches!(text, "UTC" | "GMT") {
            return Ok(Zone::Utc);
        }
        if let Some(seconds) = parse_offset(text) {
            return Ok(Zone::Fixed(seconds));
        }
        match DATABASE.get(text) {
            Ok(zone) if zone.iana_name() == Some(text) => Ok(Zone::Named(zone)),
            _ => Err(Error::location(40485, format!("unrecognized time zone identifier: \"{text}\""))),
        }
    }

    /// Whether it is UTC itself, not only a zone that has the same time.
    pub fn is_utc(&self) -> bool {
        matches!(self, Zone::Utc)
    }

    /// Seconds to the east of UTC at a moment.
    pub fn offset_seconds(&self, millis: i64) -> i64 {
        match self {
            Zone::Utc => 0,
            Zone::Fixed(seconds) => *seconds,
            Zone::Named(zone) => {
                let least = jiff::Timestamp::MIN.as_millisecond();
                let most = jiff::Timestamp::MAX.as_millisecond();
                let moment = jiff::Timestamp::from_millisecond(millis.clamp(least, most));
                moment.map_or(0, |moment| zone.to_offset(moment).seconds().into())
            }
        }
    }

    /// What a clock in the zone shows at a moment.
    pub fn local_millis(&self, millis: i64) -> i64 {
        millis.saturating_add(self.offset_seconds(millis) * SECOND_MS)
    }

    /// The moment when a clock in the zone shows that; the earlier one of two, and the clock before the change where the
    /// change skips it. `None` beyond 64 bits.
    pub fn utc_millis(&self, local: i64) -> Option<i64> {
        let offset = match self {
            Zone::Utc => 0,
            Zone::Fixed(seconds) => *seconds,
            Zone::Named(zone) => named_offset(zone, local),
        };
        local.checked_sub(offset * SECOND_MS)
    }
}

fn named_offset(zone: &TimeZone, local: i64) -> i64 {
    let civil = Civil::from_millis(local);
    // Outside the years that the library knows the rules go on as at their edge.
    let year = civil.year.clamp(-9998, 9998) as i16;
    let date_time = jiff::civil::DateTime::new(
        year,
        civil.month as i8,
        (civil.day as i8).min(if year as i64 == civil.year { 31 } else { 28 }),
        civil.hour as i8,
        civil.minute as i8,
        civil.second as i8,
        0,
    );
    let Ok(date_time) = date_time else { return 0 };
    let offset = match zone.to_ambiguous_timestamp(date_time).offset() {
        AmbiguousOffset::Unambiguous { offset } => offset,
        AmbiguousOffset::Gap { before, .. } | AmbiguousOffset::Fold { before, .. } => before,
    };
    offset.seconds().into()
}

/// Reads `+hh`, `+hhmm` or `+hh:mm` (or with a minus) as seconds.
pub fn parse_offset(text: &str) -> Option<i64> {
    let (sign, digits) = match text.as_bytes() {
        [b'+', digits @ ..] => (1, digits),
        [b'-', digits @ ..] => (-1, digits),
        _ => return None,
    };
    let (hours, minutes): (&[u8], &[u8]) = match digits {
        hours if hours.len() == 2 => (hours, b"00"),
        [h1, h2, b':', m1, m2] => return offset_of(sign, &[*h1, *h2], &[*m1, *m2]),
        [hours @ .., _, _] if hours.len() == 2 => (hours, &digits[2..]),
        _ => return None,
    };
    offset_of(sign, hours, minutes)
}

fn offset_of(sign: i64, hours: &[u8], minutes: &[u8]) -> Option<i64> {
    let number = |digits: &[u8]| -> Option<i64> {
        digits.iter().all(u8::is_ascii_digit).then(|| std::str::from_utf8(digits).ok()?.parse().ok())?
    };
    Some(sign * (number(hours)? * 60 + number(minutes)?) * 60)
}

/// A unit of `$dateAdd`, `$dateDiff`, `$dateTrunc` and the like.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// `year`
    Year,
    /// `quarter`
    Quarter,
    /// `month`
    Month,
    /// `week`
    Week,
    /// `day`
    Day,
    /// `hour`
    Hour,
    /// `minute`
    Minute,
    /// `second`
    Second,
    /// `millisecond`
    Millisecond,
}

impl Unit {
    /// Reads a unit's name.
    ///
    /// # Errors
    /// `FailedToParse` (9) for an unknown name.
    pub fn parse(text: &str) -> Result<Unit> {
        Ok(match text {
            "year" => Unit::Year,
            "quarter" => Unit::Quarter,
            "month" => Unit::Month,
            "week" => Unit::Week,
            "day" => Unit::Day,
            "hour" => Unit::Hour,
            "minute" => Unit::Minute,
            "second" => Unit::Second,
            "millisecond" => Unit::Millisecond,
            _ => return Err(Error::failed_to_parse(format!("unknown time unit value: {text}"))),
        })
    }

    /// Milliseconds, for units of fixed length: up to an hour, because days have changes of the clock.
    fn fixed_ms(self) -> Option<i64> {
        match self {
            Unit::Hour => Some(HOUR_MS),
            Unit::Minute => Some(MINUTE_MS),
            Unit::Second => Some(SECOND_MS),
            Unit::Millisecond => Some(1),
            _ => None,
        }
    }

    /// Months, for units that are counted in them.
    fn months(self) -> Option<i64> {
        match self {
            Unit::Year => Some(12),
            Unit::Quarter => Some(3),
            Unit::Month => Some(1),
            _ => None,
        }
    }
}

/// A moment plus so many units; days and longer units keep the clock of the zone, months keep the day where they have it
/// and take their last day otherwise. `None` beyond 64 bits.
pub fn add(millis: i64, unit: Unit, amount: i64, zone: &Zone) -> Option<i64> {
    if let Some(unit_ms) = unit.fixed_ms() {
        return millis.checked_add(amount.checked_mul(unit_ms)?);
    }
    let local = zone.local_millis(millis);
    let Some(months) = unit.months() else {
        let days = if unit == Unit::Week { amount.checked_mul(7)? } else { amount };
        return zone.utc_millis(local.checked_add(days.checked_mul(DAY_MS)?)?);
    };
    let civil = Civil::from_millis(local);
    let month = (civil.year * 12 + civil.month - 1).checked_add(amount.checked_mul(months)?)?;
    let (year, month) = (month.div_euclid(12), month.rem_euclid(12) + 1);
    if year.abs() > 1_000_000_000 {
        return None;
    }
    let day = civil.day.min(last_day_of_month(year, month));
    zone.utc_millis(Civil { year, month, day, ..civil }.to_millis()?)
}

/// How many boundaries of a unit lie between two moments; `start_of_week` is 1 for Monday to 7 for Sunday. `None` beyond
/// 64 bits.
pub fn difference(start: i64, end: i64, unit: Unit, zone: &Zone, start_of_week: i64) -> Option<i64> {
    let days = |millis: i64| zone.local_millis(millis).div_euclid(DAY_MS);
    let months = |millis: i64| {
        let civil = Civil::from_millis(zone.local_millis(millis));
        civil.year * 12 + civil.month - 1
    };
    match unit {
        Unit::Millisecond => end.checked_sub(start),
        Unit::Second | Unit::Minute => {
            let unit_ms = unit.fixed_ms()?;
            Some(end.div_euclid(unit_ms) - start.div_euclid(unit_ms))
        }
        Unit::Hour => {
            // Real hours between the beginnings of two hours of the zone's clock.
            let hour = |millis: i64| {
                let offset = zone.offset_seconds(millis) * SECOND_MS;
                i128::from(zone.local_millis(millis).div_euclid(HOUR_MS)) * i128::from(HOUR_MS) - i128::from(offset)
            };
            i64::try_from((hour(end) - hour(start)).div_euclid(HOUR_MS.into())).ok()
        }
        Unit::Day => Some(days(end) - days(start)),
        Unit::Week => {
            let week = |millis: i64| (days(millis) + 4 - start_of_week).div_euclid(7);
            Some(week(end) - week(start))
        }
        Unit::Month => Some(months(end) - months(start)),
        Unit::Quarter => Some(months(end).div_euclid(3) - months(start).div_euclid(3)),
        Unit::Year => Some(months(end).div_euclid(12) - months(start).div_euclid(12)),
    }
}

/// The beginning of the bin of `bin_size` units that a moment is in; bins are counted from 2000-01-01 in the zone (weeks
/// from the first `start_of_week` from then on). `None` beyond 64 bits.
pub fn truncate(millis: i64, unit: Unit, bin_size: i64, zone: &Zone, start_of_week: i64) -> Option<i64> {
    const REFERENCE_DAYS: i64 = 10_957;
    const REFERENCE_MONTHS: i64 = 2000 * 12;
    let bin_start = |position: i64| Some(position - position.rem_euclid(bin_size));
    if let Some(unit_ms) = unit.fixed_ms() {
        let reference = zone.utc_millis(REFERENCE_DAYS * DAY_MS)?;
        let bin = i128::from(bin_size.checked_mul(unit_ms)?);
        let elapsed = (i128::from(millis) - i128::from(reference)).div_euclid(bin) * bin;
        return i64::try_from(i128::from(reference) + elapsed).ok();
    }
    let local = zone.local_millis(millis);
    let days = local.div_euclid(DAY_MS);
    let start = match unit {
        Unit::Day => bin_start(days - REFERENCE_DAYS)? + REFERENCE_DAYS,
        Unit::Week => {
            // 2000-01-01 was a Saturday, day 6.
            let reference = REFERENCE_DAYS + (start_of_week - 6).rem_euclid(7);
            let week = (days - reference).div_euclid(7);
            reference + bin_start(week)?.checked_mul(7)?
        }
        _ => {
            let civil = Civil::from_millis(local);
            let per_unit = unit.months()?;
            let position = (civil.year * 12 + civil.month - 1 - REFERENCE_MONTHS).div_euclid(per_unit);
            let months = bin_start(position)?.checked_mul(per_unit)?.checked_add(REFERENCE_MONTHS)?;
            if (months / 12).abs() > 1_000_000_000 {
                return None;
            }
            days_from_civil(months.div_euclid(12), months.rem_euclid(12) + 1, 1)
        }
    };
    zone.utc_millis(start.checked_mul(DAY_MS)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn millis(year: i64, month: i64, day: i64, hour: i64) -> i64 {
        Civil { year, month, day, hour, minute: 0, second: 0, millisecond: 0 }.to_millis().unwrap()
    }

    #[test]
    fn weeks_by_both_rules() {
        for (date, week, iso) in [
            ((2024, 1, 1), 0, (2024, 1)),
            ((2023, 1, 1), 1, (2022, 52)),
            ((2021, 1, 3), 1, (2020, 53)),
            ((2024, 12, 31), 52, (2025, 1)),
        ] {
            let civil = Civil::from_millis(millis(date.0, date.1, date.2, 0));
            assert_eq!((civil.week(), civil.iso_week()), (week, iso), "{date:?}");
        }
        assert_eq!(days_from_iso_week(1970, 1, 4), 0);
    }

    #[test]
    fn clocks_that_change() {
        let new_york = Zone::parse("America/New_York").unwrap();
        // A day later by the clock is 23 hours later.
        assert_eq!(add(millis(2021, 3, 13, 15), Unit::Day, 1, &new_york), Some(millis(2021, 3, 14, 14)));
        assert_eq!(add(millis(2021, 3, 13, 15), Unit::Hour, 24, &new_york), Some(millis(2021, 3, 14, 15)));
        // 02:30 was skipped, 01:30 came twice.
        assert_eq!(new_york.utc_millis(millis(2021, 3, 14, 2)), Some(millis(2021, 3, 14, 7)));
        assert_eq!(new_york.utc_millis(millis(2021, 11, 7, 1)), Some(millis(2021, 11, 7, 5)));
    }

    #[test]
    fn months_keep_the_day_where_they_have_it() {
        assert_eq!(add(millis(2020, 1, 31, 0), Unit::Month, 1, &Zone::Utc), Some(millis(2020, 2, 29, 0)));
        assert_eq!(add(millis(2020, 2, 29, 0), Unit::Year, 1, &Zone::Utc), Some(millis(2021, 2, 28, 0)));
        assert_eq!(add(0, Unit::Year, i64::MAX, &Zone::Utc), None);
    }

    #[test]
    fn zones_are_read_as_spelled() {
        for text in ["america/new_york", "Z", "", "+1", "+100:00", "America/Nowhere"] {
            assert_eq!(Zone::parse(text).unwrap_err().code.0, 40485, "{text}");
        }
        assert_eq!(parse_offset("-05:70"), Some(-(5 * 3600 + 70 * 60)));
        assert_eq!(parse_offset("+0530"), Some(19_800));
        assert_eq!(parse_offset("+03"), Some(10_800));
    }

    proptest! {
        #[test]
        fn the_calendar_inverts(local: i64) {
            let civil = Civil::from_millis(local);
            prop_assert_eq!(civil.to_millis(), Some(local));
            let (year, week) = civil.iso_week();
            prop_assert_eq!(days_from_iso_week(year, week, civil.iso_day_of_week()), civil.days());
        }

        #[test]
        fn a_bin_holds_its_moment(local in -1_000_000_000_000_000i64..1_000_000_000_000_000, size in 1i64..50) {
            for unit in [Unit::Year, Unit::Quarter, Unit::Month, Unit::Week, Unit::Day, Unit::Hour] {
                let start = truncate(local, unit, size, &Zone::Utc, 1).unwrap();
                let end = add(start, unit, size, &Zone::Utc).unwrap();
                prop_assert!(start <= local && local < end, "{unit:?} {start} {end}");
            }
        }
    }
}
