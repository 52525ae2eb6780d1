//! What the operators that give one part of a date share.
//!
//! They take a date, `[date]`, or `{date, timezone}`; null gives null.

use super::date_operand::{ZoneOperand, date_millis};
use super::numeric::folded;
use super::{Compiled, Expression, Parser, Scope, parse};
use crate::document::Value;
use crate::document::date::Civil;
use crate::error::{Error, Result};
use bson::{RawBsonRef, RawDocument};

#[derive(Debug)]
struct DatePart {
    name: &'static str,
    date: Compiled,
    zone: ZoneOperand,
    part: fn(&Civil) -> Value<'static>,
}

/// Parses an operator that gives a part of a date.
pub(super) fn date_part(
    name: &'static str,
    argument: RawBsonRef<'_>,
    parser: &mut Parser,
    part: fn(&Civil) -> Value<'static>,
) -> Result<Compiled> {
    let (date, zone) = match argument {
        RawBsonRef::Document(document) if !is_operator(document)? => parse_fields(name, document, parser)?,
        RawBsonRef::Array(array) => {
            let mut elements = array.into_iter();
            match (elements.next(), elements.next()) {
                (Some(date), None) => (parse(date?, parser)?, None),
                _ => {
                    return Err(Error::location(
                        40536,
                        format!("{name} accepts exactly one argument if given an array"),
                    ));
                }
            }
        }
        date => (parse(date, parser)?, None),
    };
    folded(DatePart { name, date, zone: ZoneOperand::new(zone)?, part })
}

fn is_operator(document: &RawDocument) -> Result<bool> {
    match document.iter().next() {
        Some(field) => Ok(field?.0.as_str().starts_with('$')),
        None => Ok(false),
    }
}

fn parse_fields(name: &str, document: &RawDocument, parser: &mut Parser) -> Result<(Compiled, Option<Compiled>)> {
    let (mut date, mut zone) = (None, None);
    for field in document {
        let (field, value) = field?;
        match field.as_str() {
            "date" => date = Some(parse(value, parser)?),
            "timezone" => zone = Some(parse(value, parser)?),
            other => {
                return Err(Error::location(40535, format!("unrecognized option to {name}: \"{other}\"")));
            }
        }
    }
    let date = date.ok_or_else(|| Error::location(40539, format!("missing 'date' argument to {name}")))?;
    Ok((date, zone))
}

impl Expression for DatePart {
    fn evaluate<'a>(&'a self, scope: &Scope<'a>) -> Result<Value<'a>> {
        let date = self.date.evaluate(scope)?;
        if date.is_nullish() {
            return Ok(Value::NULL);
        }
        let Some(zone) = self.zone.resolve(scope)? else { return Ok(Value::NULL) };
        let millis = date_millis(&date, self.name, 16006)?;
        Ok((self.part)(&Civil::from_millis(zone.local_millis(millis))))
    }

    fn each_operand(&self, visit: &mut dyn FnMut(&dyn Expression)) {
        visit(&*self.date);
        self.zone.each_operand(visit);
    }
}
