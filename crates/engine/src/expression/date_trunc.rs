//! `{$dateTrunc: {date, unit, binSize, timezone, startOfWeek}}`: the beginning of the bin that a date is in.
//!
//! Bins of `binSize` units are counted from 2000-01-01 in the time zone. Null when an operand is null. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/aggregation/dateTrunc/>.

use super::date_diff::constant_null;
use super::date_operand::{FieldCodes, ZoneOperand, date_millis, named_fields, required, start_of_week, unit};
use super::numeric::folded;
use super::{Compiled, Expression, Literal, Operator, Parser, Scope};
use crate::document::date::{HOUR_MS, MINUTE_MS, SECOND_MS, Unit, truncate};
use crate::document::{Value, number};
use crate::error::{Error, Result};
use bson::{DateTime, RawBsonRef};

pub(super) const OPERATOR: Operator = Operator { name: "$dateTrunc", parse: parse_date_trunc };

const NAME: &str = "$dateTrunc";
const CODES: FieldCodes = FieldCodes { not_an_object: 5439007, unknown_field: 5439008 };
const SUNDAY: i64 = 7;
/// The largest bin of days and longer units.
const MAX_BIN_SIZE: i64 = 100_000_000_000;

#[derive(Debug)]
struct DateTrunc {
    date: Compiled,
    unit: Compiled,
    bin_size: Option<Compiled>,
    zone: ZoneOperand,
    start_of_week: Option<Compiled>,
}

fn parse_date_trunc(argument: RawBsonRef<'_>, parser: &mut Parser) -> Result<Compiled> {
    let names = ["date", "unit", "binSize", "timezone", "startOfWeek"];
    let [date, unit, bin_size, zone, start_of_week] = named_fields(NAME, argument, names, &CODES, parser)?;
    let parsed = DateTrunc {
        date: required(date, NAME, "date", 5439009)?,
        unit: required(unit, NAME, "unit", 5439010)?,
        bin_size,
        zone: ZoneOperand::new(zone)?,
        start_of_week,
    };
    if parsed.date.constant().is_none() && constant_null(parsed.start_of_week.as_ref()) {
        return Ok(Box::new(Literal::new(RawBsonRef::Null)));
    }
    folded(parsed)
}

fn bin_size(value: &Value<'_>, unit: Unit) -> Result<i64> {
    let size = number::exact_i64(value.or_null()).ok_or_else(|| {
        Error::location(
            5439017,
            format!("$dateTrunc requires 'binSize' to be a 64-bit integer, not {}", value.type_name()),
        )
    })?;
    if size <= 0 {
        return Err(Error::location(5439018, "$dateTrunc requires 'binSize' to be greater than 0"));
    }
    let (most, code) = match unit {
        Unit::Millisecond => (i64::MAX, 0),
        Unit::Second => (i64::MAX / SECOND_MS, 5439000),
        Unit::Minute => (i64::MAX / MINUTE_MS, 5439001),
        Unit::Hour => (i64::MAX / HOUR_MS, 5439002),
        Unit::Day => (MAX_BIN_SIZE, 5439003),
        Unit::Week => (MAX_BIN_SIZE, 5439004),
        Unit::Month | Unit::Quarter => (MAX_BIN_SIZE, 5439005),
        Unit::Year => (MAX_BIN_SIZE, 5439006),
    };
    if size > most {
        return Err(Error::location(
            code,
            format!("$dateTrunc unsupported 'binSize' value {size} for the unit: at most {most}"),
        ));
    }
    Ok(size)
}

impl Expression for DateTrunc {
    fn evaluate<'a>(&'a self, scope: &Scope<'a>) -> Result<Value<'a>> {
        let (date, unit_value) = (self.date.evaluate(scope)?, self.unit.evaluate(scope)?);
        let size = self.bin_size.as_ref().map(|operand| operand.evaluate(scope)).transpose()?;
        if date.is_nullish() || unit_value.is_nullish() || size.as_ref().is_some_and(Value::is_nullish) {
            return Ok(Value::NULL);
        }
        let Some(zone) = self.zone.resolve(scope)? else { return Ok(Value::NULL) };
        let unit = unit(&unit_value, NAME)?;
        let first_day = match &self.start_of_week {
            Some(operand) if unit == Unit::Week => match operand.evaluate(scope)? {
                value if value.is_nullish() => return Ok(Value::NULL),
                value => start_of_week(&value, NAME)?,
            },
            _ => SUNDAY,
        };
        let millis = date_millis(&date, NAME, 5166307)?;
        let size = size.map_or(Ok(1), |size| bin_size(&size, unit))?;
        match truncate(millis, unit, size, &zone, first_day) {
            Some(millis) => Ok(DateTime::from_millis(millis).into()),
            None => Err(Error::location(5976500, "$dateTrunc overflowed")),
        }
    }

    fn each_operand(&self, visit: &mut dyn FnMut(&dyn Expression)) {
        visit(&*self.date);
        visit(&*self.unit);
        self.bin_size.iter().for_each(|operand| visit(&**operand));
        self.zone.each_operand(visit);
        self.start_of_week.iter().for_each(|operand| visit(&**operand));
    }
}
