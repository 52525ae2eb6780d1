//! `{$dateFromString: {dateString, format, timezone, onError, onNull}}`: text read as a date.
//!
//! Without a format, any usual way of writing a whole date is read. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/aggregation/dateFromString/>.

use super::date_operand::{FieldCodes, ZoneOperand, named_fields, required};
use super::numeric::folded;
use super::{Compiled, Expression, Operator, Parser, Scope};
use crate::Code;
use crate::document::Value;
use crate::document::date::Zone;
use crate::document::date_text::{check_format, parse as parse_date, parse_with_format};
use crate::error::{Error, Result};
use bson::{DateTime, RawBsonRef};

pub(super) const OPERATOR: Operator = Operator { name: "$dateFromString", parse: parse_date_from_string };

const CODES: FieldCodes = FieldCodes { not_an_object: 40540, unknown_field: 40541 };

#[derive(Debug)]
struct DateFromString {
    text: Compiled,
    format: Option<Compiled>,
    zone: ZoneOperand,
    on_error: Option<Compiled>,
    on_null: Option<Compiled>,
}

fn parse_date_from_string(argument: RawBsonRef<'_>, parser: &mut Parser) -> Result<Compiled> {
    let names = ["dateString", "format", "timezone", "onError", "onNull"];
    let [text, format, zone, on_error, on_null] = named_fields("$dateFromString", argument, names, &CODES, parser)?;
    folded(DateFromString {
        text: required(text, "$dateFromString", "dateString", 40542)?,
        format,
        zone: ZoneOperand::new(zone)?,
        on_error,
        on_null,
    })
}

fn read(text: &Value<'_>, format: Option<&str>, zone: Option<&Zone>) -> Result<i64> {
    let RawBsonRef::String(written) = text.or_null() else {
        return Err(Error::new(
            Code::CONVERSION_FAILURE,
            format!("$dateFromString requires that 'dateString' be a string, found: {}", text.type_name()),
        ));
    };
    match format {
        Some(format) => parse_with_format(written, format, zone),
        None => parse_date(written, zone),
    }
}

impl Expression for DateFromString {
    fn evaluate<'a>(&'a self, scope: &Scope<'a>) -> Result<Value<'a>> {
        let text = self.text.evaluate(scope)?;
        let format = self.format.as_ref().map(|format| format.evaluate(scope)).transpose()?;
        let wanted = match format.as_ref().map(|format| format.or_null()) {
            None => None,
            Some(RawBsonRef::String(wanted)) => {
                check_format(wanted, true)?;
                Some(wanted)
            }
            Some(RawBsonRef::Null | RawBsonRef::Undefined) => None,
            Some(other) => {
                return Err(Error::location(
                    40684,
                    format!(
                        "$dateFromString requires that 'format' be a string, found: {}",
                        crate::document::type_name(other)
                    ),
                ));
            }
        };
        let zone = self.zone.resolve(scope)?;
        if text.is_nullish() {
            return self.on_null.as_ref().map_or(Ok(Value::NULL), |on_null| on_null.evaluate(scope));
        }
        let Some(zone) = zone else { return Ok(Value::NULL) };
        if format.as_ref().is_some_and(Value::is_nullish) {
            return Ok(Value::NULL);
        }
        let zone = (!matches!(self.zone, ZoneOperand::Absent)).then_some(&*zone);
        match (read(&text, wanted, zone), &self.on_error) {
            (Ok(millis), _) => Ok(DateTime::from_millis(millis).into()),
            (Err(error), Some(on_error)) if error.code == Code::CONVERSION_FAILURE => on_error.evaluate(scope),
            (Err(error), _) => Err(error),
        }
    }

    fn each_operand(&self, visit: &mut dyn FnMut(&dyn Expression)) {
        visit(&*self.text);
        self.zone.each_operand(visit);
        [&self.format, &self.on_error, &self.on_null].into_iter().flatten().for_each(|operand| visit(&**operand));
    }
}
