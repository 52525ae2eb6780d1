//! What the date operators share: named fields, dates, time zones, units.

use super::{Compiled, Expression, Parser, Scope, parse};
use crate::document::Value;
use crate::document::date::{Unit, Zone, millis_of};
use crate::error::{Error, Result};
use bson::RawBsonRef;
use std::borrow::Cow;

/// The codes of an operator whose argument is an object with known fields.
pub(super) struct FieldCodes {
    /// The argument is no object.
    pub(super) not_an_object: i32,
    /// A field is not known.
    pub(super) unknown_field: i32,
}

/// Parses an object's fields in the order of `names`.
pub(super) fn named_fields<const N: usize>(
    operator: &str,
    argument: RawBsonRef<'_>,
    names: [&str; N],
    codes: &FieldCodes,
    parser: &mut Parser,
) -> Result<[Option<Compiled>; N]> {
    let RawBsonRef::Document(document) = argument else {
        return Err(Error::location(
            codes.not_an_object,
            format!("{operator} only supports an object as its argument"),
        ));
    };
    let mut fields = [const { None }; N];
    for field in document {
        let (name, value) = field?;
        let Some(position) = names.iter().position(|known| *known == name.as_str()) else {
            return Err(Error::location(
                codes.unknown_field,
                format!("Unrecognized argument to {operator}: {}", name.as_str()),
            ));
        };
        fields[position] = Some(parse(value, parser)?);
    }
    Ok(fields)
}

/// A required field.
pub(super) fn required(field: Option<Compiled>, operator: &str, name: &str, code: i32) -> Result<Compiled> {
    field.ok_or_else(|| Error::location(code, format!("{operator} requires '{name}'")))
}

/// The milliseconds of a date, timestamp or ObjectId.
pub(super) fn date_millis(value: &Value<'_>, operator: &str, code: i32) -> Result<i64> {
    millis_of(value.or_null()).ok_or_else(|| {
        Error::location(
            code,
            format!("{operator} requires a date, a timestamp or an ObjectId, not {}", value.type_name()),
        )
    })
}

/// The time zone of a date operator: absent, known at parsing, or computed.
#[derive(Debug)]
pub(super) enum ZoneOperand {
    /// None was given: UTC.
    Absent,
    /// A constant, parsed once.
    Constant(Zone),
    /// Evaluated anew each time.
    Computed(Compiled),
}

impl ZoneOperand {
    pub(super) fn new(operand: Option<Compiled>) -> Result<ZoneOperand> {
        let Some(operand) = operand else { return Ok(ZoneOperand::Absent) };
        match operand.constant() {
            Some(RawBsonRef::String(text)) => Ok(ZoneOperand::Constant(Zone::parse(text)?)),
            _ => Ok(ZoneOperand::Computed(operand)),
        }
    }

    /// The zone; `None` when its expression gives null or nothing.
    pub(super) fn resolve(&self, scope: &Scope<'_>) -> Result<Option<Cow<'_, Zone>>> {
        match self {
            ZoneOperand::Absent => Ok(Some(Cow::Owned(Zone::Utc))),
            ZoneOperand::Constant(zone) => Ok(Some(Cow::Borrowed(zone))),
            ZoneOperand::Computed(operand) => {
                let value = operand.evaluate(scope)?;
                match value.or_null() {
                    RawBsonRef::String(text) => Ok(Some(Cow::Owned(Zone::parse(text)?))),
                    _ if value.is_nullish() => Ok(None),
                    _ => Err(Error::location(
                        40517,
                        format!("timezone must evaluate to a string, found {}", value.type_name()),
                    )),
                }
            }
        }
    }

    /// Visits the computed operand.
    pub(super) fn each_operand(&self, visit: &mut dyn FnMut(&dyn Expression)) {
        if let ZoneOperand::Computed(operand) = self {
            visit(&**operand);
        }
    }
}

/// The unit that a value names.
pub(super) fn unit(value: &Value<'_>, operator: &str) -> Result<Unit> {
    match value.or_null() {
        RawBsonRef::String(text) => Unit::parse(text),
        _ => Err(Error::location(
            5439013,
            format!("{operator} requires 'unit' to be a string, but got {}", value.type_name()),
        )),
    }
}

/// The first day of a week that a value names, from 1 for Monday to 7 for Sunday.
pub(super) fn start_of_week(value: &Value<'_>, operator: &str) -> Result<i64> {
    let RawBsonRef::String(text) = value.or_null() else {
        return Err(Error::location(
            5439015,
            format!("{operator} requires 'startOfWeek' to be a string, but got {}", value.type_name()),
        ));
    };
    const DAYS: [&str; 7] = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
    let text_lower = text.to_ascii_lowercase();
    match DAYS.iter().position(|day| *day == text_lower || day[..3] == text_lower) {
        Some(position) => Ok(position as i64 + 1),
        None => Err(Error::location(
            5439016,
            format!("{operator} parameter 'startOfWeek' value cannot be recognized as a day of a week: {text}"),
        )),
    }
}
