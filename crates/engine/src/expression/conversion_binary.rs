//! Binary data as text and numbers, for the conversions.

use super::conversion::failure;
use super::operand::{MAX_STRING_BYTES, check_length};
use crate::document::Value;
use crate::error::{Error, Result};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use bson::{RawBinaryRef, RawBsonRef};
use std::borrow::Cow;

/// The text form of binary data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum BinaryFormat {
    /// A UUID's dashed form for UUIDs, base64 for the rest.
    Auto,
    Base64,
    Base64Url,
    Hex,
    Utf8,
    Uuid,
}

impl BinaryFormat {
    /// The format of a `format` option that is not null.
    pub(super) fn parse(value: &Value<'_>) -> Result<BinaryFormat> {
        let RawBsonRef::String(name) = value.or_null() else {
            return Err(Error::location(
                4341114,
                format!("$convert requires that 'format' be a string, found: {}", value.type_name()),
            ));
        };
        Ok(match name {
            "auto" => BinaryFormat::Auto,
            "base64" => BinaryFormat::Base64,
            "base64url" => BinaryFormat::Base64Url,
            "hex" => BinaryFormat::Hex,
            "utf8" => BinaryFormat::Utf8,
            "uuid" => BinaryFormat::Uuid,
            _ => return Err(Error::location(4341125, format!("Invalid 'format' argument for $convert: {name}"))),
        })
    }
}

/// The order of a number's bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ByteOrder {
    Little,
    Big,
}

impl ByteOrder {
    /// The order of a `byteOrder` option that is not null.
    pub(super) fn parse(value: &Value<'_>) -> Result<ByteOrder> {
        match value.or_null() {
            RawBsonRef::String("little") => Ok(ByteOrder::Little),
            RawBsonRef::String("big") => Ok(ByteOrder::Big),
            RawBsonRef::String(other) => {
                Err(Error::location(9130002, format!("Invalid 'byteOrder' argument for $convert: {other}")))
            }
            _ => Err(Error::location(
                9130001,
                format!("$convert requires that 'byteOrder' be a string, found: {}", value.type_name()),
            )),
        }
    }
}

const UUID_SUBTYPE: u8 = 4;
const OLD_BINARY_SUBTYPE: u8 = 2;

/// The bytes as they are stored: the old binary subtype has its length in front once more.
pub(super) fn binary_payload(binary: RawBinaryRef<'_>) -> Cow<'_, [u8]> {
    if u8::from(binary.subtype) != OLD_BINARY_SUBTYPE {
        return Cow::Borrowed(binary.bytes);
    }
    let mut bytes = (binary.bytes.len() as i32).to_le_bytes().to_vec();
    bytes.extend_from_slice(binary.bytes);
    Cow::Owned(bytes)
}

/// A signed integer of 1, 2, 4 or 8 bytes.
pub(super) fn binary_to_integer(bytes: &[u8], order: ByteOrder) -> Result<i64> {
    if !matches!(bytes.len(), 1 | 2 | 4 | 8) {
        return Err(failure(format!(
            "Failed to convert binData of length {} to an integer: 1, 2, 4 or 8 bytes are needed",
            bytes.len()
        )));
    }
    let mut bytes = bytes.to_vec();
    if order == ByteOrder::Big {
        bytes.reverse();
    }
    let fill = if bytes.last().is_some_and(|top| *top >= 0x80) { 0xff } else { 0 };
    let mut whole = [fill; 8];
    whole[..bytes.len()].copy_from_slice(&bytes);
    Ok(i64::from_le_bytes(whole))
}

/// A floating-point number of 4 or 8 bytes.
pub(super) fn binary_to_double(bytes: &[u8], order: ByteOrder) -> Result<f64> {
    let little = order == ByteOrder::Little;
    if let Ok(bytes) = <[u8; 8]>::try_from(bytes) {
        return Ok(if little { f64::from_le_bytes(bytes) } else { f64::from_be_bytes(bytes) });
    }
    if let Ok(bytes) = <[u8; 4]>::try_from(bytes) {
        return Ok(if little { f32::from_le_bytes(bytes) } else { f32::from_be_bytes(bytes) }.into());
    }
    Err(failure(format!("Failed to convert binData of length {} to a double: 4 or 8 bytes are needed", bytes.len())))
}

/// The bytes of an int, a long or a double; `None` for other types.
pub(super) fn number_to_binary(value: RawBsonRef<'_>, order: ByteOrder) -> Option<Vec<u8>> {
    let mut bytes = match value {
        RawBsonRef::Int32(number) => number.to_le_bytes().to_vec(),
        RawBsonRef::Int64(number) => number.to_le_bytes().to_vec(),
        RawBsonRef::Double(number) => number.to_le_bytes().to_vec(),
        _ => return None,
    };
    if order == ByteOrder::Big {
        bytes.reverse();
    }
    Some(bytes)
}

/// Binary data as text.
pub(super) fn binary_to_text(binary: RawBinaryRef<'_>, format: BinaryFormat) -> Result<String> {
    let bytes = binary_payload(binary);
    let is_uuid = u8::from(binary.subtype) == UUID_SUBTYPE && bytes.len() == 16;
    let length = match format {
        BinaryFormat::Hex => bytes.len() * 2,
        BinaryFormat::Utf8 => 0,
        _ => bytes.len().div_ceil(3) * 4,
    };
    if length >= MAX_STRING_BYTES {
        return Err(failure("Resulting string exceeds maximum size (16MB) in $convert with no onError value"));
    }
    match format {
        BinaryFormat::Auto | BinaryFormat::Uuid if is_uuid => Ok(uuid_text(&bytes)),
        BinaryFormat::Uuid => Err(failure("Failed to convert binData to a UUID string: it is no UUID of 16 bytes")),
        BinaryFormat::Auto | BinaryFormat::Base64 => Ok(STANDARD.encode(&bytes)),
        BinaryFormat::Base64Url => Ok(URL_SAFE_NO_PAD.encode(&bytes)),
        BinaryFormat::Hex => Ok(hex::encode_upper(&bytes)),
        BinaryFormat::Utf8 => match String::from_utf8(bytes.into_owned()) {
            Ok(text) => {
                check_length(text.len())?;
                Ok(text)
            }
            Err(_) => Err(failure("BinData does not represent a valid UTF-8 string in $convert with no onError value")),
        },
    }
}

/// The bytes that a text stands for.
pub(super) fn text_to_binary(text: &str, subtype: u8, format: BinaryFormat) -> Result<Vec<u8>> {
    let wrong = |form: &str| failure(format!("Input string is not a valid {form} in $convert with no onError value"));
    match (format, subtype) {
        (BinaryFormat::Uuid | BinaryFormat::Auto, UUID_SUBTYPE) => parse_uuid(text).ok_or_else(|| wrong("UUID string")),
        (BinaryFormat::Uuid, _) => Err(failure("Only the UUID subtype (4) is allowed with the UUID format")),
        (BinaryFormat::Auto, _) => Err(failure("'auto' is no format to convert a string to binData by")),
        (_, UUID_SUBTYPE) => Err(failure("Only the UUID format is allowed with the UUID subtype (4)")),
        (BinaryFormat::Base64, _) => STANDARD.decode(text).map_err(|_| wrong("base64 string")),
        (BinaryFormat::Base64Url, _) => {
            URL_SAFE_NO_PAD.decode(text.trim_end_matches('=')).map_err(|_| wrong("base64url string"))
        }
        (BinaryFormat::Hex, _) => hex::decode(text).map_err(|_| wrong("hex string")),
        (BinaryFormat::Utf8, _) => Ok(text.as_bytes().to_vec()),
    }
}

fn uuid_text(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(36);
    for (index, byte) in bytes.iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        text.push_str(&format!("{byte:02x}"));
    }
    text
}

fn parse_uuid(text: &str) -> Option<Vec<u8>> {
    let dashes = text.len() == 36 && [8, 13, 18, 23].iter().all(|at| text.as_bytes()[*at] == b'-');
    let digits = text.replace('-', "");
    (dashes && digits.len() == 32).then(|| hex::decode(digits).ok())?
}
