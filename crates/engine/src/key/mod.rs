//! Index keys: BSON values as bytes whose byte order is BSON order.
//!
//! ```text
//!   key    = field field … field record-key           (an entry of an index)
//!   field  = tag payload                              ascending
//!          | !(tag payload)                           descending: every byte inverted
//!   number = tag, 8 bytes: greatest double not above it, mark, [exponent, digits, 0]      see number.rs
//!   string = tag, bytes with 00 as 00 FF, 00 01       the collation's sort key in place of the string if there is one
//!   object = tag, { value's tag, name as a string, value's payload }…, 00
//!   array  = tag, { value }…, 00
//! ```
//!
//! The encoding of a value is *prefix-free*: none is the beginning of another. So fields can be laid side by side
//! without lengths ([`skip`] finds the end of one), a prefix of a compound key is a byte prefix, and all keys that begin
//! with some fields are exactly the byte strings that begin with those fields' bytes.
//!
//! Values that compare as equal encode equally: `1`, `NumberLong(1)`, `1.0` and `NumberDecimal("1.00")` are one key.
//! What the key cannot tell, the *type bits* beside it do: one code per number or string in the key, in order, with the
//! usual ones (int32 for whole numbers that fit, double for others, string) left out at the end. [`Decoder`] reads both.

mod decode;
mod number;
#[cfg(test)]
mod tests;

pub use decode::Decoder;

use crate::document::collation::Collator;
use crate::document::value::value_bytes;
use crate::error::{Error, Result};
use bson::{RawArray, RawBsonRef, RawDocument};

/// The first byte of an encoded value: its type's place in the order of types.
mod tag {
    pub(super) const END: u8 = 0x00;
    pub(super) const MIN_KEY: u8 = 0x10;
    pub(super) const UNDEFINED: u8 = 0x18;
    pub(super) const NULL: u8 = 0x20;
    pub(super) const NUMBER: u8 = 0x28;
    pub(super) const STRING: u8 = 0x30;
    pub(super) const OBJECT: u8 = 0x38;
    pub(super) const ARRAY: u8 = 0x40;
    pub(super) const BINARY: u8 = 0x48;
    pub(super) const OBJECT_ID: u8 = 0x50;
    pub(super) const BOOLEAN: u8 = 0x58;
    pub(super) const DATE: u8 = 0x60;
    pub(super) const TIMESTAMP: u8 = 0x68;
    pub(super) const REGEX: u8 = 0x70;
    pub(super) const DB_POINTER: u8 = 0x78;
    pub(super) const CODE: u8 = 0x80;
    pub(super) const CODE_WITH_SCOPE: u8 = 0x88;
    pub(super) const MAX_KEY: u8 = 0xE0;
}

/// Codes of the type bits. Decimals are followed by their exponent, big endian, biased.
mod kind {
    pub(super) const USUAL: u8 = 0;
    pub(super) const INT64: u8 = 1;
    pub(super) const DOUBLE: u8 = 2;
    pub(super) const NEGATIVE_ZERO: u8 = 3;
    pub(super) const SYMBOL: u8 = 4;
    pub(super) const DECIMAL: u8 = 5;
    pub(super) const NEGATIVE_ZERO_DECIMAL: u8 = 6;
}

/// A key that is being built, field by field.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    bytes: Vec<u8>,
    types: Vec<u8>,
}

impl Key {
    /// No fields yet.
    pub fn new() -> Key {
        Key::default()
    }

    /// Appends a field.
    ///
    /// # Errors
    /// `InvalidBSON` (22) when nested bytes are malformed.
    pub fn push(&mut self, value: RawBsonRef<'_>, descending: bool, collator: Option<&Collator>) -> Result<()> {
        let from = self.bytes.len();
        encode_value(value, collator, &mut self.bytes, &mut self.types)?;
        if descending {
            invert(&mut self.bytes[from..]);
        }
        Ok(())
    }

    /// The key's bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The type bits, without the usual ones at the end; often empty.
    pub fn types(&self) -> &[u8] {
        // A decimal's exponent may look like the usual code, so what comes last is found from the front.
        let (mut at, mut end) = (0, 0);
        while at < self.types.len() {
            let width = kind_width(self.types[at]);
            if self.types[at] != kind::USUAL {
                end = at + width;
            }
            at += width;
        }
        &self.types[..end]
    }

    /// Bytes and type bits.
    pub fn into_parts(mut self) -> (Vec<u8>, Vec<u8>) {
        let length = self.types().len();
        self.types.truncate(length);
        (self.bytes, self.types)
    }
}

/// The bytes that a type code takes with what belongs to it.
fn kind_width(code: u8) -> usize {
    if matches!(code, kind::DECIMAL | kind::NEGATIVE_ZERO_DECIMAL) { 3 } else { 1 }
}

/// Appends one value, ascending, without type bits: for bounds and for the `_id` index.
///
/// # Errors
/// `InvalidBSON` (22) when nested bytes are malformed.
pub fn encode(value: RawBsonRef<'_>, collator: Option<&Collator>, out: &mut Vec<u8>) -> Result<()> {
    encode_value(value, collator, out, &mut Vec::new())
}

/// Inverts every byte: from ascending to descending and back.
pub fn invert(bytes: &mut [u8]) {
    for byte in bytes {
        *byte = !*byte;
    }
}

/// The length of the first field of a key.
///
/// # Errors
/// `InternalError` (1) when the bytes are no key.
pub fn skip(bytes: &[u8], descending: bool) -> Result<usize> {
    let mut reader = decode::Reader::new(bytes, descending);
    reader.skip_value()?;
    Ok(reader.position())
}

/// The tag byte that all values of a value's type begin with, and the one after it: the ends of the type's range.
pub fn type_range(value: RawBsonRef<'_>) -> (u8, u8) {
    let tag = tag_of(value);
    (tag, tag + 1)
}

/// Bytes below every value's encoding.
pub const LOWEST: &[u8] = &[0x01];
/// Bytes above every value's encoding.
pub const HIGHEST: &[u8] = &[0xF8];

fn tag_of(value: RawBsonRef<'_>) -> u8 {
    use RawBsonRef as B;
    match value {
        B::MinKey => tag::MIN_KEY,
        B::Undefined => tag::UNDEFINED,
        B::Null => tag::NULL,
        B::Int32(_) | B::Int64(_) | B::Double(_) | B::Decimal128(_) => tag::NUMBER,
        B::String(_) | B::Symbol(_) => tag::STRING,
        B::Document(_) => tag::OBJECT,
        B::Array(_) => tag::ARRAY,
        B::Binary(_) => tag::BINARY,
        B::ObjectId(_) => tag::OBJECT_ID,
        B::Boolean(_) => tag::BOOLEAN,
        B::DateTime(_) => tag::DATE,
        B::Timestamp(_) => tag::TIMESTAMP,
        B::RegularExpression(_) => tag::REGEX,
        B::DbPointer(_) => tag::DB_POINTER,
        B::JavaScriptCode(_) => tag::CODE,
        B::JavaScriptCodeWithScope(_) => tag::CODE_WITH_SCOPE,
        B::MaxKey => tag::MAX_KEY,
    }
}

fn encode_value(
    value: RawBsonRef<'_>,
    collator: Option<&Collator>,
    out: &mut Vec<u8>,
    types: &mut Vec<u8>,
) -> Result<()> {
    out.push(tag_of(value));
    encode_payload(value, collator, out, types)
}

fn encode_payload(
    value: RawBsonRef<'_>,
    collator: Option<&Collator>,
    out: &mut Vec<u8>,
    types: &mut Vec<u8>,
) -> Result<()> {
    use RawBsonRef as B;
    match value {
        B::MinKey | B::Undefined | B::Null | B::MaxKey => {}
        B::Int32(_) | B::Int64(_) | B::Double(_) | B::Decimal128(_) => number::encode(value, out, types),
        B::String(text) => {
            types.push(kind::USUAL);
            encode_text(text, collator, out);
        }
        B::Symbol(text) => {
            types.push(kind::SYMBOL);
            encode_text(text, collator, out);
        }
        B::Document(document) => encode_document(document, collator, out, types)?,
        B::Array(array) => encode_array(array, collator, out, types)?,
        B::Binary(binary) => {
            out.extend_from_slice(&length(binary.bytes.len())?);
            out.push(u8::from(binary.subtype));
            out.extend_from_slice(binary.bytes);
        }
        B::ObjectId(id) => out.extend_from_slice(&id.bytes()),
        B::Boolean(value) => out.push(u8::from(value)),
        B::DateTime(date) => {
            let flipped = (date.timestamp_millis() as u64) ^ (1 << 63);
            out.extend_from_slice(&flipped.to_be_bytes());
        }
        B::Timestamp(timestamp) => {
            out.extend_from_slice(&timestamp.time.to_be_bytes());
            out.extend_from_slice(&timestamp.increment.to_be_bytes());
        }
        B::RegularExpression(regex) => {
            encode_bytes(regex.pattern.as_str().as_bytes(), out);
            encode_bytes(regex.options.as_str().as_bytes(), out);
        }
        B::DbPointer(_) => {
            let bytes = value_bytes(value)?;
            out.extend_from_slice(&length(bytes.len())?);
            out.extend_from_slice(&bytes);
        }
        B::JavaScriptCode(code) => encode_bytes(code.as_bytes(), out),
        B::JavaScriptCodeWithScope(code) => {
            encode_bytes(code.code.as_bytes(), out);
            encode_document(code.scope, collator, out, types)?;
        }
    }
    Ok(())
}

fn encode_document(
    document: &RawDocument,
    collator: Option<&Collator>,
    out: &mut Vec<u8>,
    types: &mut Vec<u8>,
) -> Result<()> {
    for field in document {
        let (name, value) = field?;
        out.push(tag_of(value));
        encode_bytes(name.as_str().as_bytes(), out);
        encode_payload(value, collator, out, types)?;
    }
    out.push(tag::END);
    Ok(())
}

fn encode_array(array: &RawArray, collator: Option<&Collator>, out: &mut Vec<u8>, types: &mut Vec<u8>) -> Result<()> {
    for element in array {
        encode_value(element?, collator, out, types)?;
    }
    out.push(tag::END);
    Ok(())
}

fn encode_text(text: &str, collator: Option<&Collator>, out: &mut Vec<u8>) {
    match collator {
        None => encode_bytes(text.as_bytes(), out),
        Some(collator) => encode_bytes(&collator.sort_key(text), out),
    }
}

/// Bytes with an end that no other bytes begin with: `00` becomes `00 FF`, the end is `00 01`.
fn encode_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    let mut rest = bytes;
    while let Some(zero) = rest.iter().position(|byte| *byte == 0) {
        out.extend_from_slice(&rest[..zero]);
        out.extend_from_slice(&[0x00, 0xFF]);
        rest = &rest[zero + 1..];
    }
    out.extend_from_slice(rest);
    out.extend_from_slice(&[0x00, 0x01]);
}

fn length(bytes: usize) -> Result<[u8; 4]> {
    let length = u32::try_from(bytes).map_err(|_| Error::internal("a value longer than 4 GiB in an index key"))?;
    Ok(length.to_be_bytes())
}
