//! Dates as text: `$dateToString`'s formats, `$dateFromString`'s formats, and free-form reading.
//!
//! Free-form reading takes what people and programs write for a whole date: ISO 8601 in its variants, dates with slashes,
//! names of months and days in any order, a time, an offset or a zone. It is deliberately no more clever than that: words
//! like "tomorrow" and dates without a year are refused.

use crate::document::date::{
    Civil, MINUTE_MS, SECOND_MS, Zone, days_from_civil, days_from_iso_week, last_day_of_month, parse_offset,
};
use crate::error::{Code, Error, Result};

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/// Refuses a format that [`fn@format`] (or [`parse_with_format`] when `parsing`) does not know.
///
/// # Errors
/// `Location18535` for a lone `%` at the end, `Location18536` for an unknown letter.
pub fn check_format(format: &str, parsing: bool) -> Result<()> {
    let known = if parsing { "bBdGHjLmMSuVYzZ%" } else { "bBdGHjLmMSuUVwYzZ%" };
    let mut letters = format.chars();
    while let Some(letter) = letters.next() {
        if letter != '%' {
            continue;
        }
        match letters.next() {
            None => return Err(Error::location(18535, "Unmatched '%' at end of format string")),
            Some(letter) if !known.contains(letter) => {
                return Err(Error::location(18536, format!("Invalid format character '%{letter}' in format string")));
            }
            Some(_) => {}
        }
    }
    Ok(())
}

/// Writes a date by a format that [`check_format`] accepts.
///
/// # Errors
/// `Location18537` for years outside 0 to 9999.
pub fn format(millis: i64, zone: &Zone, format: &str) -> Result<String> {
    let civil = Civil::from_millis(zone.local_millis(millis));
    if !(0..=9999).contains(&civil.year) {
        return Err(Error::location(
            18537,
            format!(
                "Could not convert date to string: date component was outside the supported range of 0-9999: {}",
                civil.year
            ),
        ));
    }
    let mut text = String::with_capacity(format.len() + 16);
    let mut letters = format.chars();
    while let Some(letter) = letters.next() {
        if letter == '%' {
            push_field(&mut text, letters.next().unwrap_or('%'), &civil, zone.offset_seconds(millis) / 60);
        } else {
            text.push(letter);
        }
    }
    Ok(text)
}

/// ISO 8601 with milliseconds, with a `Z` when the zone is UTC.
///
/// # Errors
/// As [`fn@format`].
pub fn format_iso(millis: i64, zone: &Zone) -> Result<String> {
    format(millis, zone, if zone.is_utc() { "%Y-%m-%dT%H:%M:%S.%LZ" } else { "%Y-%m-%dT%H:%M:%S.%L" })
}

fn push_field(text: &mut String, letter: char, civil: &Civil, offset_minutes: i64) {
    use std::fmt::Write;
    let written = match letter {
        'b' => write!(text, "{}", &MONTHS[civil.month as usize - 1][..3]),
        'B' => write!(text, "{}", MONTHS[civil.month as usize - 1]),
        'd' => write!(text, "{:02}", civil.day),
        'G' => write!(text, "{:04}", civil.iso_week().0),
        'H' => write!(text, "{:02}", civil.hour),
        'j' => write!(text, "{:03}", civil.day_of_year()),
        'L' => write!(text, "{:03}", civil.millisecond),
        'm' => write!(text, "{:02}", civil.month),
        'M' => write!(text, "{:02}", civil.minute),
        'S' => write!(text, "{:02}", civil.second),
        'u' => write!(text, "{}", civil.iso_day_of_week()),
        'U' => write!(text, "{:02}", civil.week()),
        'V' => write!(text, "{:02}", civil.iso_week().1),
        'w' => write!(text, "{}", civil.day_of_week()),
        'Y' => write!(text, "{:04}", civil.year),
        'z' => {
            let sign = if offset_minutes < 0 { '-' } else { '+' };
            write!(text, "{sign}{:02}{:02}", offset_minutes.abs() / 60, offset_minutes.abs() % 60)
        }
        'Z' => write!(text, "{offset_minutes}"),
        other => write!(text, "{other}"),
    };
    written.expect("writing to a string does not fail");
}

/// What was read of a date so far.
#[derive(Debug, Default)]
struct Fields {
    year: Option<i64>,
    month: Option<i64>,
    day: Option<i64>,
    /// Counted from 0, as MongoDB reads `%j`.
    day_of_year: Option<i64>,
    iso_year: Option<i64>,
    iso_week: Option<i64>,
    iso_day: Option<i64>,
    time: Option<(i64, i64, i64, i64)>,
    offset_seconds: Option<i64>,
    zone: Option<Zone>,
}

/// Reads a date by a format that [`check_format`] accepts for parsing.
///
/// # Errors
/// `ConversionFailure` (241) when the text does not follow the format, or carries an offset beside a zone that is not UTC.
pub fn parse_with_format(text: &str, format: &str, zone: Option<&Zone>) -> Result<i64> {
    let fail = |reason: &str| failure(text, reason);
    let mut fields = Fields::default();
    let mut rest = text;
    let mut letters = format.chars();
    while let Some(letter) = letters.next() {
        if letter == '%' {
            let letter = letters.next().unwrap_or('%');
            rest = read_field(&mut fields, letter, rest).ok_or_else(|| fail("it does not follow the format"))?;
        } else {
            rest = rest.strip_prefix(letter).ok_or_else(|| fail("it does not follow the format"))?;
        }
    }
    if !rest.is_empty() {
        return Err(fail("trailing data"));
    }
    if fields.year.is_none() && fields.iso_year.is_none() {
        return Err(fail("an incomplete date/time string has been found, with elements missing: the year"));
    }
    fields.finish(text, zone)
}

/// Reads one field and gives the rest of the text.
fn read_field<'a>(fields: &mut Fields, letter: char, text: &'a str) -> Option<&'a str> {
    let time = fields.time.get_or_insert_default();
    let (slot, digits) = match letter {
        'H' => (&mut time.0, 1..=2),
        'M' => (&mut time.1, 1..=2),
        'S' => (&mut time.2, 1..=2),
        'L' => (&mut time.3, 1..=3),
        'd' => (fields.day.get_or_insert_default(), 1..=2),
        'm' => (fields.month.get_or_insert_default(), 1..=2),
        'Y' => (fields.year.get_or_insert_default(), 4..=4),
        'j' => (fields.day_of_year.get_or_insert_default(), 1..=3),
        'G' => (fields.iso_year.get_or_insert_default(), 4..=4),
        'V' => (fields.iso_week.get_or_insert_default(), 1..=2),
        'u' => (fields.iso_day.get_or_insert_default(), 1..=1),
        'b' | 'B' => {
            let (month, rest) = read_month(text)?;
            fields.month = Some(month);
            return Some(rest);
        }
        'z' => {
            let (seconds, rest) = read_offset(text)?;
            fields.offset_seconds = Some(seconds);
            return Some(rest);
        }
        'Z' => {
            let sign = if text.starts_with('-') { -1 } else { 1 };
            let (minutes, rest) = read_number(text.strip_prefix(['+', '-']).unwrap_or(text), 1..=4)?;
            fields.offset_seconds = Some(sign * minutes * 60);
            return Some(rest);
        }
        other => return text.strip_prefix(other),
    };
    let (number, rest) = read_number(text, digits)?;
    *slot = number;
    Some(rest)
}

/// Reads a date written in any of the usual ways.
///
/// # Errors
/// `ConversionFailure` (241) when it is no whole date, or carries an offset beside a zone that is not UTC.
pub fn parse(text: &str, zone: Option<&Zone>) -> Result<i64> {
    let mut fields = Fields::default();
    let mut rest = skip_blanks(text);
    while !rest.is_empty() {
        let next = read_token(&mut fields, rest).ok_or_else(|| failure(text, "unexpected character"))?;
        rest = skip_blanks(next);
    }
    let whole = match (fields.year, fields.month, fields.day) {
        (Some(_), Some(_), Some(_)) => true,
        (Some(_), None, None) => fields.day_of_year.is_some(),
        _ => fields.iso_week.is_some(),
    };
    if !whole {
        return Err(failure(text, "an incomplete date/time string has been found, with elements missing"));
    }
    fields.finish(text, zone)
}

fn skip_blanks(text: &str) -> &str {
    text.trim_start_matches([' ', '\t', '\n', '\r', ',', '\0', '\u{a0}'])
}

/// Reads one element of a free-form date; the longest form of each kind is tried first.
fn read_token<'a>(fields: &mut Fields, text: &'a str) -> Option<&'a str> {
    if let Some(rest) = read_time(fields, text) {
        return Some(rest);
    }
    if let Some(rest) = read_numeric_date(fields, text) {
        return Some(rest);
    }
    if (fields.time.is_some() || fields.day.is_some())
        && let Some(rest) = read_zone(fields, text)
    {
        return Some(rest);
    }
    if let Some((month, rest)) = read_month(text) {
        set(&mut fields.month, month)?;
        return Some(rest.strip_prefix('.').unwrap_or(rest));
    }
    if let Some(rest) = DAYS.iter().find_map(|day| read_word(text, day)) {
        return Some(rest.strip_prefix('.').unwrap_or(rest));
    }
    let (number, rest) = read_number(text, 1..=4)?;
    if ends_number(rest) && text.len() - rest.len() == 4 {
        set(&mut fields.year, number)?;
        return Some(rest);
    }
    let suffix = ["st", "nd", "rd", "th"].iter().find_map(|suffix| rest.strip_prefix(suffix));
    let rest = suffix.unwrap_or(rest);
    if text.len() - rest.len() > 4 || !ends_number(rest) {
        return None;
    }
    set(&mut fields.day, number)?;
    Some(rest.strip_prefix('-').unwrap_or(rest))
}

fn ends_number(rest: &str) -> bool {
    !rest.starts_with(|next: char| next.is_ascii_digit() || next == ':')
}

/// Fills a field that nothing filled yet.
fn set<T>(slot: &mut Option<T>, value: T) -> Option<()> {
    if slot.is_some() {
        return None;
    }
    *slot = Some(value);
    Some(())
}

/// `2024-06-15`, `2024/6/15`, `6/15/2024`, `15-06-2024`, `15.06.2024`, `20240615`, `2024-W24-6`, `2024-167`.
fn read_numeric_date<'a>(fields: &mut Fields, text: &'a str) -> Option<&'a str> {
    let (negative, digits) = match text.strip_prefix(['-', '+']) {
        Some(rest) if fields.year.is_none() && fields.time.is_none() => (text.starts_with('-'), rest),
        Some(_) => return None,
        None => (false, text),
    };
    if let Some((number, rest)) = read_number(digits, 8..=8)
        && ends_number(rest)
    {
        return fill_date(fields, number / 10_000, number / 100 % 100, number % 100, rest);
    }
    if let Some((year, rest)) = read_number(digits, 4..=4) {
        let year = if negative { -year } else { year };
        return read_after_year(fields, year, rest);
    }
    let (first, rest) = read_number(digits, 1..=2)?;
    let separator = rest.chars().next().filter(|separator| matches!(separator, '/' | '-' | '.'))?;
    let (second, rest) = read_number(rest.strip_prefix(separator)?, 1..=2)?;
    let (year, rest) = read_number(rest.strip_prefix(separator)?, 4..=4)?;
    let (month, day) = if separator == '/' { (first, second) } else { (second, first) };
    fill_date(fields, year, month, day, rest)
}

fn read_after_year<'a>(fields: &mut Fields, year: i64, text: &'a str) -> Option<&'a str> {
    let dashed = text.strip_prefix('-').unwrap_or(text);
    if let Some(week) = dashed.strip_prefix('W') {
        let (week, rest) = read_number(week, 2..=2)?;
        set(&mut fields.iso_year, year)?;
        set(&mut fields.iso_week, week)?;
        let day = read_number(rest.strip_prefix('-').unwrap_or(rest), 1..=1);
        set(&mut fields.iso_day, day.map_or(1, |day| day.0))?;
        return Some(day.map_or(rest, |day| day.1));
    }
    if let Some((day_of_year, rest)) = text.strip_prefix('-').and_then(|text| read_number(text, 3..=3))
        && ends_number(rest)
    {
        set(&mut fields.year, year)?;
        set(&mut fields.day_of_year, day_of_year - 1)?;
        return Some(rest);
    }
    let separator = text.chars().next().filter(|separator| matches!(separator, '/' | '-'))?;
    let (month, rest) = read_number(text.strip_prefix(separator)?, 1..=2)?;
    let (day, rest) = read_number(rest.strip_prefix(separator)?, 1..=2)?;
    fill_date(fields, year, month, day, rest)
}

fn fill_date<'a>(fields: &mut Fields, year: i64, month: i64, day: i64, rest: &'a str) -> Option<&'a str> {
    set(&mut fields.year, year)?;
    set(&mut fields.month, month)?;
    set(&mut fields.day, day)?;
    // A `T` belongs to a time, which has to follow.
    match rest.strip_prefix(['T', 't']) {
        Some(time) if time.starts_with(|next: char| next.is_ascii_digit()) => read_time(fields, rest),
        Some(_) => None,
        None => Some(rest),
    }
}

/// `12:30`, `12:30:45`, `12:30:45.123`, `T123045`, each with `am` or `pm` behind.
fn read_time<'a>(fields: &mut Fields, text: &'a str) -> Option<&'a str> {
    let (marked, digits) = text.strip_prefix(['T', 't']).map_or((false, text), |digits| (true, digits));
    if marked && let Some((number, rest)) = read_number(digits, 6..=6) {
        return fill_time(fields, (number / 10_000, number / 100 % 100, number % 100), rest);
    }
    let (hour, rest) = read_number(digits, 1..=2)?;
    let Some(minutes) = rest.strip_prefix(':') else {
        // An hour alone needs its half of the day.
        let half = skip_blanks(rest).get(..2)?.to_ascii_lowercase();
        return matches!(half.as_str(), "am" | "pm").then(|| fill_time(fields, (hour, 0, 0), rest))?;
    };
    let (minute, rest) = read_number(minutes, 2..=2)?;
    match rest.strip_prefix(':').and_then(|seconds| read_number(seconds, 2..=2)) {
        Some((second, rest)) => fill_time(fields, (hour, minute, second), rest),
        None if rest.starts_with(':') => None,
        None => fill_time(fields, (hour, minute, 0), rest),
    }
}

fn fill_time<'a>(fields: &mut Fields, time: (i64, i64, i64), rest: &'a str) -> Option<&'a str> {
    let (mut hour, minute, second) = time;
    let (mut millisecond, mut rest) = (0, rest);
    if let Some(fraction) = rest.strip_prefix(['.', ',']).filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    {
        let end = fraction.find(|next: char| !next.is_ascii_digit()).unwrap_or(fraction.len());
        millisecond = format!("{:0<3}", &fraction[..end])[..3].parse().ok()?;
        rest = &fraction[end..];
    }
    let half = skip_blanks(rest).get(..2).map(str::to_ascii_lowercase);
    if let Some(half) = half.filter(|half| matches!(half.as_str(), "am" | "pm")) {
        if !(1..=12).contains(&hour) {
            return None;
        }
        hour = hour % 12 + if half == "pm" { 12 } else { 0 };
        rest = &skip_blanks(rest)[2..];
    }
    if rest.starts_with(|next: char| next.is_ascii_digit()) {
        return None;
    }
    set(&mut fields.time, (hour, minute, second, millisecond))?;
    Some(rest)
}

/// `Z`, an offset, or the name of a zone.
fn read_zone<'a>(fields: &mut Fields, text: &'a str) -> Option<&'a str> {
    if let Some((seconds, rest)) = read_offset(text) {
        set(&mut fields.offset_seconds, seconds)?;
        return Some(rest);
    }
    let end = text.find(|next: char| !(next.is_ascii_alphanumeric() || "/_+-".contains(next))).unwrap_or(text.len());
    let (word, rest) = text.split_at(end);
    if word.starts_with(|first: char| !first.is_ascii_alphabetic()) || read_month(word).is_some() {
        return None;
    }
    if let Some(seconds) = abbreviation(word) {
        set(&mut fields.offset_seconds, seconds)?;
        return Some(rest);
    }
    set(&mut fields.zone, Zone::parse(word).ok()?)?;
    Some(rest)
}

/// The offsets of the abbreviations in common use.
fn abbreviation(word: &str) -> Option<i64> {
    let hours = match word.to_ascii_uppercase().as_str() {
        "Z" | "UTC" | "GMT" => 0,
        "EST" | "CDT" => -5,
        "EDT" => -4,
        "CST" | "MDT" => -6,
        "MST" | "PDT" => -7,
        "PST" => -8,
        "CET" => 1,
        "CEST" | "EET" => 2,
        "EEST" | "MSK" => 3,
        "JST" => 9,
        _ => return None,
    };
    Some(hours * 3600)
}

/// `+05:30`, `+0530`, `+05`, `+5`.
fn read_offset(text: &str) -> Option<(i64, &str)> {
    if !text.starts_with(['+', '-']) {
        return None;
    }
    for length in [6, 5, 3] {
        if let Some(seconds) = text.get(..length).and_then(parse_offset) {
            return (!text[length..].starts_with(|next: char| next.is_ascii_digit()))
                .then_some((seconds, &text[length..]));
        }
    }
    let (hours, rest) = read_number(&text[1..], 1..=1)?;
    Some((if text.starts_with('-') { -hours * 3600 } else { hours * 3600 }, rest))
}

fn read_month(text: &str) -> Option<(i64, &str)> {
    let month = MONTHS.iter().enumerate().find_map(|(index, name)| {
        let rest = read_word(text, name)?;
        Some((index as i64 + 1, rest))
    });
    month.or_else(|| Some((9, read_word(text, "Sept")?)))
}

/// A name in full or by its first three letters, in any case, and the rest behind it.
fn read_word<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    for length in [name.len(), 3] {
        let Some(start) = text.get(..length) else { continue };
        let rest = &text[length..];
        if start.eq_ignore_ascii_case(&name[..length]) && !rest.starts_with(|next: char| next.is_alphabetic()) {
            return Some(rest);
        }
    }
    None
}

/// As many digits as there are, up to the most allowed.
fn read_number(text: &str, digits: std::ops::RangeInclusive<usize>) -> Option<(i64, &str)> {
    let count = text.bytes().take(*digits.end()).take_while(u8::is_ascii_digit).count();
    if count < *digits.start() {
        return None;
    }
    Some((text[..count].parse().ok()?, &text[count..]))
}

fn failure(text: &str, reason: &str) -> Error {
    Error::new(Code::CONVERSION_FAILURE, format!("Error parsing date string '{text}': {reason}"))
}

impl Fields {
    /// The moment that the fields name.
    fn finish(self, text: &str, zone: Option<&Zone>) -> Result<i64> {
        let fail = |reason: &str| failure(text, reason);
        let has_zone = self.offset_seconds.is_some() || self.zone.is_some();
        if has_zone && zone.is_some_and(|zone| !zone.is_utc()) {
            return Err(fail(
                "you cannot pass in a date/time string with time zone information together with a timezone argument",
            ));
        }
        let days = self.days().ok_or_else(|| fail("the parsed date was invalid"))?;
        let (hour, minute, second, millisecond) = self.time.unwrap_or_default();
        if hour > 24 || minute > 59 || second > 60 || (hour == 24 && (minute, second, millisecond) != (0, 0, 0)) {
            return Err(fail("the parsed time was invalid"));
        }
        let seconds = days * 86_400 + hour * 3600 + minute * (MINUTE_MS / SECOND_MS) + second;
        let local = seconds * SECOND_MS + millisecond;
        let utc = match (self.offset_seconds, &self.zone, zone) {
            (Some(offset), _, _) => Some(local - offset * SECOND_MS),
            (None, Some(zone), _) | (None, None, Some(zone)) => zone.utc_millis(local),
            (None, None, None) => Some(local),
        };
        utc.ok_or_else(|| fail("the parsed date was out of range"))
    }

    /// The day, as days since 1970.
    fn days(&self) -> Option<i64> {
        if let Some(year) = self.iso_year {
            let (week, day) = (self.iso_week.unwrap_or(1), self.iso_day.unwrap_or(1));
            return ((1..=53).contains(&week) && (1..=7).contains(&day)).then(|| days_from_iso_week(year, week, day));
        }
        let year = self.year?;
        if let Some(day_of_year) = self.day_of_year {
            return (0..=366).contains(&day_of_year).then(|| days_from_civil(year, 1, 1) + day_of_year);
        }
        let (month, day) = (self.month.unwrap_or(1), self.day.unwrap_or(1));
        let valid = (1..=12).contains(&month) && (1..=last_day_of_month(year, month.clamp(1, 12))).contains(&day);
        valid.then(|| days_from_civil(year, month, day))
    }
}
