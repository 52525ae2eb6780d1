//! Conversions between types, as `$convert` and the `$to…` operators make them.

use super::conversion_binary::{
    BinaryFormat, ByteOrder, binary_payload, binary_to_double, binary_to_integer, binary_to_text, number_to_binary,
    text_to_binary,
};
use super::conversion_text::{double_to_text, integer_to_text, text_to_decimal, text_to_double, text_to_integer};
use crate::Code;
use crate::document::date::{Zone, millis_of};
use crate::document::decimal::Decimal;
use crate::document::{Number, Value, date_text, type_name};
use crate::error::{Error, Result};
use bson::{DateTime, RawBson, RawBsonRef};

/// A type that values convert to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Target {
    Double,
    String,
    /// With its subtype.
    Binary(u8),
    ObjectId,
    Bool,
    Date,
    Int,
    Long,
    Decimal,
    /// A type that nothing converts to, by its name.
    Other(&'static str),
}

/// How a conversion is made where there are several ways.
#[derive(Clone, Copy, Debug)]
pub(super) struct Manner {
    pub(super) format: Option<BinaryFormat>,
    pub(super) byte_order: ByteOrder,
    /// The base of digits in a string: 2, 8, 10 or 16; `None` means 10 with everything that numbers may hold.
    pub(super) base: Option<u32>,
}

impl Default for Manner {
    fn default() -> Manner {
        Manner { format: Some(BinaryFormat::Auto), byte_order: ByteOrder::Little, base: None }
    }
}

/// The names and numbers of the types.
const TYPES: [(i32, &str, Target); 22] = [
    (0, "missing", Target::Other("missing")),
    (1, "double", Target::Double),
    (2, "string", Target::String),
    (3, "object", Target::Other("object")),
    (4, "array", Target::Other("array")),
    (5, "binData", Target::Binary(0)),
    (6, "undefined", Target::Other("undefined")),
    (7, "objectId", Target::ObjectId),
    (8, "bool", Target::Bool),
    (9, "date", Target::Date),
    (10, "null", Target::Other("null")),
    (11, "regex", Target::Other("regex")),
    (12, "dbPointer", Target::Other("dbPointer")),
    (13, "javascript", Target::Other("javascript")),
    (14, "symbol", Target::Other("symbol")),
    (15, "javascriptWithScope", Target::Other("javascriptWithScope")),
    (16, "int", Target::Int),
    (17, "timestamp", Target::Other("timestamp")),
    (18, "long", Target::Long),
    (19, "decimal", Target::Decimal),
    (-1, "minKey", Target::Other("minKey")),
    (127, "maxKey", Target::Other("maxKey")),
];

impl Target {
    /// The type that a name or a number means.
    pub(super) fn parse(value: RawBsonRef<'_>) -> Result<Target> {
        if let RawBsonRef::String(name) = value {
            let found = TYPES.iter().find(|entry| entry.1 == name);
            return found.map(|entry| entry.2).ok_or_else(|| Error::bad_value(format!("Unknown type name: {name}")));
        }
        let Some(number) = Number::of(value) else {
            return Err(Error::failed_to_parse(format!(
                "$convert's 'to' argument must be a string or number, but is {}",
                type_name(value)
            )));
        };
        let found = number.to_i32_exact().and_then(|number| TYPES.iter().find(|entry| entry.0 == number));
        found.map(|entry| entry.2).ok_or_else(|| {
            Error::failed_to_parse(format!(
                "In $convert, numeric value for 'to' does not correspond to a BSON type: {value:?}"
            ))
        })
    }

    fn name(self) -> &'static str {
        match self {
            Target::Double => "double",
            Target::String => "string",
            Target::Binary(_) => "binData",
            Target::ObjectId => "objectId",
            Target::Bool => "bool",
            Target::Date => "date",
            Target::Int => "int",
            Target::Long => "long",
            Target::Decimal => "decimal",
            Target::Other(name) => name,
        }
    }
}

/// A `ConversionFailure` (241).
pub(super) fn failure(message: impl Into<String>) -> Error {
    Error::new(Code::CONVERSION_FAILURE, message)
}

/// Converts a value that is not null.
///
/// # Errors
/// `ConversionFailure` (241) when the value does not convert; `Location4341115` without a format where one is needed;
/// `Location18537` for dates whose year has no four digits.
pub(super) fn convert(value: RawBsonRef<'_>, target: Target, manner: Manner) -> Result<Value<'static>> {
    let unsupported = || {
        failure(format!(
            "Unsupported conversion from {} to {} in $convert with no onError value",
            type_name(value),
            target.name()
        ))
    };
    match target {
        Target::Bool => Ok(Value::Borrowed(value).is_true().into()),
        Target::Int => {
            if matches!(value, RawBsonRef::Binary(binary) if binary.bytes.len() == 8) {
                return Err(failure("Failed to convert binData of length 8 to int: 1, 2 or 4 bytes are needed"));
            }
            let whole = to_integer(value, manner)?.ok_or_else(unsupported)?;
            match i32::try_from(whole) {
                _ if matches!(value, RawBsonRef::DateTime(_)) => Err(unsupported()),
                Ok(whole) => Ok(whole.into()),
                Err(_) => Err(overflow(value)),
            }
        }
        Target::Long => Ok(to_integer(value, manner)?.ok_or_else(unsupported)?.into()),
        Target::Double => Ok(to_double(value, manner)?.ok_or_else(unsupported)?.into()),
        Target::Decimal => Ok(Number::Decimal(to_decimal(value, manner)?.ok_or_else(unsupported)?).into()),
        Target::Date => Ok(DateTime::from_millis(to_date(value)?.ok_or_else(unsupported)?).into()),
        Target::String => Ok(to_text(value, manner)?.ok_or_else(unsupported)?.into()),
        Target::ObjectId => match value {
            RawBsonRef::ObjectId(id) => Ok(id.into()),
            RawBsonRef::String(text) => match bson::oid::ObjectId::parse_str(text) {
                Ok(id) => Ok(id.into()),
                Err(_) => Err(failure(format!(
                    "Failed to parse objectId '{text}' in $convert with no onError value: 24 hexadecimal digits are needed"
                ))),
            },
            _ => Err(unsupported()),
        },
        Target::Binary(subtype) => {
            let bytes = match value {
                RawBsonRef::Binary(binary) if u8::from(binary.subtype) == subtype => {
                    return Ok(Value::Owned(RawBson::from(value)));
                }
                RawBsonRef::Binary(_) => {
                    return Err(failure(
                        "Conversions between different binData subtypes are not supported in $convert with no onError value",
                    ));
                }
                RawBsonRef::String(text) => text_to_binary(text, subtype, needed(manner.format, value, target)?)?,
                number => number_to_binary(number, manner.byte_order).ok_or_else(unsupported)?,
            };
            Ok(Value::Owned(RawBson::Binary(bson::Binary { subtype: subtype.into(), bytes })))
        }
        Target::Other(_) => Err(unsupported()),
    }
}

fn needed(format: Option<BinaryFormat>, value: RawBsonRef<'_>, target: Target) -> Result<BinaryFormat> {
    format.ok_or_else(|| {
        Error::location(
            4341115,
            format!("Format must be specified when converting from '{}' to '{}'", type_name(value), target.name()),
        )
    })
}

fn overflow(value: RawBsonRef<'_>) -> Error {
    failure(format!("Conversion would overflow target type in $convert with no onError value: {value:?}"))
}

/// A whole number of 64 bits; `None` for types that don't convert.
fn to_integer(value: RawBsonRef<'_>, manner: Manner) -> Result<Option<i64>> {
    Ok(Some(match value {
        RawBsonRef::Boolean(truth) => truth.into(),
        RawBsonRef::DateTime(date) => date.timestamp_millis(),
        RawBsonRef::String(text) => text_to_integer(text, manner.base.unwrap_or(10))?,
        RawBsonRef::Binary(binary) => binary_to_integer(&binary_payload(binary), manner.byte_order)?,
        other => match Number::of(other) {
            None => return Ok(None),
            Some(number) if !number.is_finite() => {
                return Err(failure(
                    "Attempt to convert NaN or an infinite value to integer type in $convert with no onError value",
                ));
            }
            Some(number) => number.to_i64_checked().ok_or_else(|| overflow(value))?,
        },
    }))
}

fn to_double(value: RawBsonRef<'_>, manner: Manner) -> Result<Option<f64>> {
    Ok(Some(match value {
        RawBsonRef::Boolean(truth) => truth.into(),
        RawBsonRef::DateTime(date) => date.timestamp_millis() as f64,
        RawBsonRef::String(text) => match manner.base {
            Some(base) => text_to_integer(text, base)? as f64,
            None => text_to_double(text)?,
        },
        RawBsonRef::Binary(binary) => binary_to_double(&binary_payload(binary), manner.byte_order)?,
        other => match Number::of(other) {
            None => return Ok(None),
            Some(number) => {
                let double = number.to_f64();
                if double.is_infinite() && number.is_finite() {
                    return Err(overflow(value));
                }
                double
            }
        },
    }))
}

fn to_decimal(value: RawBsonRef<'_>, manner: Manner) -> Result<Option<Decimal>> {
    Ok(Some(match value {
        RawBsonRef::Boolean(truth) => i32::from(truth).into(),
        RawBsonRef::DateTime(date) => date.timestamp_millis().into(),
        RawBsonRef::String(text) => match manner.base {
            Some(base) => text_to_integer(text, base)?.into(),
            None => text_to_decimal(text)?,
        },
        other => match Number::of(other) {
            None => return Ok(None),
            Some(number) => number.to_decimal(),
        },
    }))
}

fn to_date(value: RawBsonRef<'_>) -> Result<Option<i64>> {
    match value {
        RawBsonRef::String(text) => date_text::parse(text, None).map(Some),
        RawBsonRef::Int32(_) => Ok(None),
        _ => match (millis_of(value), Number::of(value)) {
            (Some(millis), _) => Ok(Some(millis)),
            (None, Some(_)) => to_integer(value, Manner::default()),
            (None, None) => Ok(None),
        },
    }
}

fn to_text(value: RawBsonRef<'_>, manner: Manner) -> Result<Option<String>> {
    Ok(Some(match value {
        RawBsonRef::String(text) => text.to_owned(),
        RawBsonRef::Boolean(truth) => truth.to_string(),
        RawBsonRef::Int32(number) => integer_to_text(number.into(), manner.base),
        RawBsonRef::Int64(number) => integer_to_text(number, manner.base),
        RawBsonRef::Double(number) => match (manner.base, Number::Double(number).to_i64_exact()) {
            (Some(base), Some(whole)) => integer_to_text(whole, Some(base)),
            _ => double_to_text(number),
        },
        RawBsonRef::Decimal128(number) => Decimal::from(number).to_string(),
        RawBsonRef::ObjectId(id) => id.to_hex(),
        RawBsonRef::DateTime(date) => date_text::format_iso(date.timestamp_millis(), &Zone::Utc)?,
        RawBsonRef::Binary(binary) => binary_to_text(binary, needed(manner.format, value, Target::String)?)?,
        _ => return Ok(None),
    }))
}
