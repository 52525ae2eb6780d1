//! `{$dateToParts: {date, timezone, iso8601}}`: the parts of a date as an object.
//!
//! Null when an operand is null. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/aggregation/dateToParts/>.

use super::date_operand::{FieldCodes, ZoneOperand, date_millis, named_fields, required};
use super::numeric::folded;
use super::{Compiled, Expression, Operator, Parser, Scope};
use crate::document::date::Civil;
use crate::document::{Value, append};
use crate::error::{Error, Result};
use bson::{RawBsonRef, RawDocumentBuf};

pub(super) const OPERATOR: Operator = Operator { name: "$dateToParts", parse: parse_date_to_parts };

const CODES: FieldCodes = FieldCodes { not_an_object: 40524, unknown_field: 40520 };

#[derive(Debug)]
struct DateToParts {
    date: Compiled,
    zone: ZoneOperand,
    iso: Option<Compiled>,
}

fn parse_date_to_parts(argument: RawBsonRef<'_>, parser: &mut Parser) -> Result<Compiled> {
    let names = ["date", "timezone", "iso8601"];
    let [date, zone, iso] = named_fields("$dateToParts", argument, names, &CODES, parser)?;
    folded(DateToParts { date: required(date, "$dateToParts", "date", 40522)?, zone: ZoneOperand::new(zone)?, iso })
}

impl Expression for DateToParts {
    fn evaluate<'a>(&'a self, scope: &Scope<'a>) -> Result<Value<'a>> {
        let date = self.date.evaluate(scope)?;
        if date.is_nullish() {
            return Ok(Value::NULL);
        }
        let Some(zone) = self.zone.resolve(scope)? else { return Ok(Value::NULL) };
        let iso = match &self.iso {
            None => false,
            Some(operand) => match operand.evaluate(scope)? {
                value if value.is_nullish() => return Ok(Value::NULL),
                value => value.or_null().as_bool().ok_or_else(|| {
                    Error::location(40521, format!("iso8601 must evaluate to a bool, found {}", value.type_name()))
                })?,
            },
        };
        let millis = date_millis(&date, "$dateToParts", 16006)?;
        let civil = Civil::from_millis(zone.local_millis(millis));
        let (iso_year, iso_week) = civil.iso_week();
        let day = if iso {
            [("isoWeekYear", iso_year), ("isoWeek", iso_week), ("isoDayOfWeek", civil.iso_day_of_week())]
        } else {
            [("year", civil.year), ("month", civil.month), ("day", civil.day)]
        };
        let time = [
            ("hour", civil.hour),
            ("minute", civil.minute),
            ("second", civil.second),
            ("millisecond", civil.millisecond),
        ];
        let mut parts = RawDocumentBuf::new();
        for (name, value) in day.into_iter().chain(time) {
            append(&mut parts, name, RawBsonRef::Int32(value as i32))?;
        }
        Ok(parts.into())
    }

    fn each_operand(&self, visit: &mut dyn FnMut(&dyn Expression)) {
        visit(&*self.date);
        self.zone.each_operand(visit);
        self.iso.iter().for_each(|operand| visit(&**operand));
    }
}
