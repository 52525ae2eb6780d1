//! `{$dateToString: {date, format, timezone, onNull}}`: a date as text.
//!
//! The default format is ISO 8601 with milliseconds, with a `Z` in UTC. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/aggregation/dateToString/>.

use super::date_operand::{FieldCodes, ZoneOperand, date_millis, named_fields, required};
use super::numeric::folded;
use super::{Compiled, Expression, Operator, Parser, Scope};
use crate::document::Value;
use crate::document::date_text::{check_format, format, format_iso};
use crate::error::{Error, Result};
use bson::RawBsonRef;

pub(super) const OPERATOR: Operator = Operator { name: "$dateToString", parse: parse_date_to_string };

const CODES: FieldCodes = FieldCodes { not_an_object: 18629, unknown_field: 18534 };

#[derive(Debug)]
struct DateToString {
    date: Compiled,
    format: Option<Compiled>,
    zone: ZoneOperand,
    on_null: Option<Compiled>,
}

fn parse_date_to_string(argument: RawBsonRef<'_>, parser: &mut Parser) -> Result<Compiled> {
    let names = ["date", "format", "timezone", "onNull"];
    let [date, format, zone, on_null] = named_fields("$dateToString", argument, names, &CODES, parser)?;
    let date = required(date, "$dateToString", "date", 18628)?;
    if let Some(RawBsonRef::String(format)) = format.as_ref().and_then(|format| format.constant()) {
        check_format(format, false)?;
    }
    folded(DateToString { date, format, zone: ZoneOperand::new(zone)?, on_null })
}

impl Expression for DateToString {
    fn evaluate<'a>(&'a self, scope: &Scope<'a>) -> Result<Value<'a>> {
        let date = self.date.evaluate(scope)?;
        let wanted = self.format.as_ref().map(|format| format.evaluate(scope)).transpose()?;
        if let Some(wanted) = &wanted {
            match wanted.or_null() {
                RawBsonRef::String(text) => check_format(text, false)?,
                _ if wanted.is_nullish() => {}
                _ => {
                    return Err(Error::location(
                        18533,
                        format!("$dateToString requires that 'format' be a string, found: {}", wanted.type_name()),
                    ));
                }
            }
        }
        let zone = self.zone.resolve(scope)?;
        if date.is_nullish() {
            return self.on_null.as_ref().map_or(Ok(Value::NULL), |on_null| on_null.evaluate(scope));
        }
        let Some(zone) = zone else { return Ok(Value::NULL) };
        let millis = match &wanted {
            Some(wanted) if wanted.is_nullish() => return Ok(Value::NULL),
            _ => date_millis(&date, "$dateToString", 16006)?,
        };
        match wanted.as_ref().and_then(|wanted| wanted.get()) {
            Some(RawBsonRef::String(text)) => Ok(format(millis, &zone, text)?.into()),
            _ => Ok(format_iso(millis, &zone)?.into()),
        }
    }

    fn each_operand(&self, visit: &mut dyn FnMut(&dyn Expression)) {
        visit(&*self.date);
        self.format.iter().for_each(|operand| visit(&**operand));
        self.zone.each_operand(visit);
        self.on_null.iter().for_each(|operand| visit(&**operand));
    }
}
