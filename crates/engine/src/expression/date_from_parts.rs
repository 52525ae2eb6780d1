//! `{$dateFromParts: {year, month, day, hour, minute, second, millisecond, timezone}}`, or with `isoWeekYear`, `isoWeek` and
//! `isoDayOfWeek`: the date with these parts.
//!
//! Parts out of their range carry over. Null when a part is null. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/aggregation/dateFromParts/>.

use super::date_operand::{FieldCodes, ZoneOperand, named_fields};
use super::numeric::folded;
use super::{Compiled, Expression, Operator, Parser, Scope};
use crate::document::date::{Civil, DAY_MS, days_from_iso_week};
use crate::document::{Value, number};
use crate::error::{Error, Result};
use bson::{DateTime, RawBsonRef};

pub(super) const OPERATOR: Operator = Operator { name: "$dateFromParts", parse: parse_date_from_parts };

const CODES: FieldCodes = FieldCodes { not_an_object: 40519, unknown_field: 40518 };
/// The most that months, days, hours and minutes may carry over, either way.
const MAX_CARRY: i64 = 32_767;

#[derive(Debug)]
struct DateFromParts {
    /// Year, month and day, or those of ISO 8601.
    day: [Option<Compiled>; 3],
    iso: bool,
    time: [Option<Compiled>; 4],
    zone: ZoneOperand,
}

fn parse_date_from_parts(argument: RawBsonRef<'_>, parser: &mut Parser) -> Result<Compiled> {
    let names = [
        "year",
        "month",
        "day",
        "isoWeekYear",
        "isoWeek",
        "isoDayOfWeek",
        "hour",
        "minute",
        "second",
        "millisecond",
        "timezone",
    ];
    let fields = named_fields("$dateFromParts", argument, names, &CODES, parser)?;
    let [year, month, day, iso_year, iso_week, iso_day, hour, minute, second, millisecond, zone] = fields;
    if year.is_none() && iso_year.is_none() {
        return Err(Error::location(40516, "$dateFromParts requires either 'year' or 'isoWeekYear' to be present"));
    }
    if year.is_some() && (iso_year.is_some() || iso_week.is_some() || iso_day.is_some()) {
        return Err(Error::location(40489, "$dateFromParts does not allow mixing ordinary dates with ISO dates"));
    }
    if iso_year.is_some() && (month.is_some() || day.is_some()) {
        return Err(Error::location(40525, "$dateFromParts does not allow mixing ISO dates with ordinary dates"));
    }
    let iso = iso_year.is_some();
    let day = if iso { [iso_year, iso_week, iso_day] } else { [year, month, day] };
    folded(DateFromParts { day, iso, time: [hour, minute, second, millisecond], zone: ZoneOperand::new(zone)? })
}

/// A part's value, its default when it is absent, `None` when it is null.
fn part(operand: Option<&Compiled>, name: &str, default: i64, scope: &Scope<'_>) -> Result<Option<i64>> {
    let Some(operand) = operand else { return Ok(Some(default)) };
    let value = operand.evaluate(scope)?;
    if value.is_nullish() {
        return Ok(None);
    }
    match number::exact_i64(value.or_null()) {
        Some(number) if i32::try_from(number).is_ok() || matches!(name, "second" | "millisecond") => Ok(Some(number)),
        _ => Err(Error::location(
            40515,
            format!(
                "'{name}' must evaluate to an integer, found {} with value {:?}",
                value.type_name(),
                value.or_null()
            ),
        )),
    }
}

impl DateFromParts {
    fn names(&self) -> [&'static str; 3] {
        if self.iso { ["isoWeekYear", "isoWeek", "isoDayOfWeek"] } else { ["year", "month", "day"] }
    }

    /// The local milliseconds of the parts.
    fn local_millis(&self, day: [i64; 3], time: [i64; 4]) -> Result<Option<i64>> {
        let names = self.names();
        if !(1..=9999).contains(&day[0]) {
            let code = if self.iso { 31095 } else { 40523 };
            return Err(Error::location(
                code,
                format!("'{}' must evaluate to an integer in the range 1 to 9999, found {}", names[0], day[0]),
            ));
        }
        let carried = [(names[1], day[1]), (names[2], day[2]), ("hour", time[0]), ("minute", time[1])];
        if let Some((name, value)) = carried.iter().find(|part| part.1.abs() > MAX_CARRY) {
            return Err(Error::location(
                31034,
                format!("'{name}' must evaluate to a value in the range [-{MAX_CARRY}, {MAX_CARRY}]; value {value}"),
            ));
        }
        let [hour, minute, second, millisecond] = time;
        let civil = if self.iso {
            let Some(start) = days_from_iso_week(day[0], day[1], day[2]).checked_mul(DAY_MS) else { return Ok(None) };
            Civil { hour, minute, second, millisecond, ..Civil::from_millis(start) }
        } else {
            Civil { year: day[0], month: day[1], day: day[2], hour, minute, second, millisecond }
        };
        Ok(civil.to_millis())
    }
}

impl Expression for DateFromParts {
    fn evaluate<'a>(&'a self, scope: &Scope<'a>) -> Result<Value<'a>> {
        let (mut day, mut time) = ([0; 3], [0; 4]);
        let names = self.names();
        for (index, operand) in self.day.iter().enumerate() {
            match part(operand.as_ref(), names[index], 1, scope)? {
                Some(value) => day[index] = value,
                None => return Ok(Value::NULL),
            }
        }
        for (index, operand) in self.time.iter().enumerate() {
            let name = ["hour", "minute", "second", "millisecond"][index];
            match part(operand.as_ref(), name, 0, scope)? {
                Some(value) => time[index] = value,
                None => return Ok(Value::NULL),
            }
        }
        let Some(zone) = self.zone.resolve(scope)? else { return Ok(Value::NULL) };
        match self.local_millis(day, time)?.and_then(|local| zone.utc_millis(local)) {
            Some(millis) => Ok(DateTime::from_millis(millis).into()),
            None => Err(Error::new(crate::Code::OVERFLOW, "Overflow casting from a lower-precision duration")),
        }
    }

    fn each_operand(&self, visit: &mut dyn FnMut(&dyn Expression)) {
        self.day.iter().chain(&self.time).flatten().for_each(|operand| visit(&**operand));
        self.zone.each_operand(visit);
    }
}
