//! Reading keys back: values for covered plans, ends of fields for everybody else.

use super::number::{self, DIGITS, Decimal, EXACT, EXPONENT_BIAS};
use super::{kind, tag};
use crate::error::{Error, Result};
use bson::oid::ObjectId;
use bson::raw::CString;
use bson::spec::BinarySubtype;
use bson::{Binary, Decimal128, RawArrayBuf, RawBson, RawDocumentBuf, RawJavaScriptCodeWithScope, Regex, Timestamp};

/// Reads a key's fields one after the other.
#[derive(Debug)]
pub struct Decoder<'a> {
    bytes: &'a [u8],
    types: &'a [u8],
}

impl<'a> Decoder<'a> {
    /// A decoder over a key and its type bits.
    pub fn new(bytes: &'a [u8], types: &'a [u8]) -> Decoder<'a> {
        Decoder { bytes, types }
    }

    /// The next field's value. A key made with a collation gives sort keys where the strings were: don't ask.
    ///
    /// # Errors
    /// `InternalError` (1) when the bytes are no key.
    pub fn next(&mut self, descending: bool) -> Result<RawBson> {
        let mut reader = Reader::new(self.bytes, descending);
        let value = reader.value(&mut self.types)?;
        self.bytes = &self.bytes[reader.position()..];
        Ok(value)
    }

    /// What is left: the record key once all fields are read.
    pub fn rest(&self) -> &'a [u8] {
        self.bytes
    }
}

/// Reads bytes, inverted where the field is descending.
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    mask: u8,
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8], descending: bool) -> Reader<'a> {
        Reader { bytes, at: 0, mask: if descending { 0xFF } else { 0 } }
    }

    pub(super) fn position(&self) -> usize {
        self.at
    }

    fn byte(&mut self) -> Result<u8> {
        let byte = self.bytes.get(self.at).ok_or_else(broken)?;
        self.at += 1;
        Ok(byte ^ self.mask)
    }

    fn take(&mut self, length: usize) -> Result<Vec<u8>> {
        let end = self.at.checked_add(length).ok_or_else(broken)?;
        let bytes = self.bytes.get(self.at..end).ok_or_else(broken)?;
        self.at = end;
        Ok(bytes.iter().map(|byte| byte ^ self.mask).collect())
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        Ok(self.take(N)?.try_into().expect("as many as were taken"))
    }

    fn advance(&mut self, length: usize) -> Result<()> {
        self.at = self.at.checked_add(length).filter(|end| *end <= self.bytes.len()).ok_or_else(broken)?;
        Ok(())
    }

    /// Bytes up to their end mark.
    fn escaped(&mut self) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        loop {
            match self.byte()? {
                0 => match self.byte()? {
                    0xFF => bytes.push(0),
                    0x01 => return Ok(bytes),
                    _ => return Err(broken()),
                },
                byte => bytes.push(byte),
            }
        }
    }

    fn skip_escaped(&mut self) -> Result<()> {
        loop {
            if self.byte()? == 0 && self.byte()? == 0x01 {
                return Ok(());
            }
        }
    }

    fn text(&mut self) -> Result<String> {
        String::from_utf8(self.escaped()?).map_err(|_| broken())
    }

    fn c_string(&mut self) -> Result<CString> {
        CString::try_from(self.text()?).map_err(|_| broken())
    }

    pub(super) fn skip_value(&mut self) -> Result<()> {
        let tag = self.byte()?;
        self.skip_payload(tag)
    }

    fn skip_payload(&mut self, tag: u8) -> Result<()> {
        match tag {
            tag::MIN_KEY | tag::UNDEFINED | tag::NULL | tag::MAX_KEY => Ok(()),
            tag::NUMBER => {
                self.advance(8)?;
                if self.byte()? == EXACT {
                    return Ok(());
                }
                self.digits().map(|_| ())
            }
            tag::STRING | tag::CODE => self.skip_escaped(),
            tag::OBJECT => self.skip_document(),
            tag::ARRAY => loop {
                match self.byte()? {
                    tag::END => return Ok(()),
                    tag => self.skip_payload(tag)?,
                }
            },
            tag::BINARY => {
                let length = u32::from_be_bytes(self.array()?);
                self.advance(length as usize + 1)
            }
            tag::DB_POINTER => {
                let length = u32::from_be_bytes(self.array()?);
                self.advance(length as usize)
            }
            tag::OBJECT_ID => self.advance(12),
            tag::BOOLEAN => self.advance(1),
            tag::DATE | tag::TIMESTAMP => self.advance(8),
            tag::REGEX => {
                self.skip_escaped()?;
                self.skip_escaped()
            }
            tag::CODE_WITH_SCOPE => {
                self.skip_escaped()?;
                self.skip_document()
            }
            _ => Err(broken()),
        }
    }

    fn skip_document(&mut self) -> Result<()> {
        loop {
            match self.byte()? {
                tag::END => return Ok(()),
                tag => {
                    self.skip_escaped()?;
                    self.skip_payload(tag)?;
                }
            }
        }
    }

    fn value(&mut self, types: &mut &[u8]) -> Result<RawBson> {
        let tag = self.byte()?;
        self.payload(tag, types)
    }

    fn payload(&mut self, tag: u8, types: &mut &[u8]) -> Result<RawBson> {
        Ok(match tag {
            tag::MIN_KEY => RawBson::MinKey,
            tag::UNDEFINED => RawBson::Undefined,
            tag::NULL => RawBson::Null,
            tag::MAX_KEY => RawBson::MaxKey,
            tag::NUMBER => self.number(types)?,
            tag::STRING => match next_kind(types)? {
                (kind::SYMBOL, _) => RawBson::Symbol(self.text()?),
                _ => RawBson::String(self.text()?),
            },
            tag::OBJECT => RawBson::Document(self.document(types)?),
            tag::ARRAY => self.elements(types)?,
            tag::BINARY => {
                let length = u32::from_be_bytes(self.array()?);
                let subtype = BinarySubtype::from(self.byte()?);
                RawBson::Binary(Binary { subtype, bytes: self.take(length as usize)? })
            }
            tag::OBJECT_ID => RawBson::ObjectId(ObjectId::from_bytes(self.array()?)),
            tag::BOOLEAN => RawBson::Boolean(self.byte()? != 0),
            tag::DATE => {
                let millis = (u64::from_be_bytes(self.array()?) ^ (1 << 63)) as i64;
                RawBson::DateTime(bson::DateTime::from_millis(millis))
            }
            tag::TIMESTAMP => {
                let (time, increment) = (u32::from_be_bytes(self.array()?), u32::from_be_bytes(self.array()?));
                RawBson::Timestamp(Timestamp { time, increment })
            }
            tag::REGEX => {
                let (pattern, options) = (self.c_string()?, self.c_string()?);
                RawBson::RegularExpression(Regex { pattern, options })
            }
            tag::DB_POINTER => {
                let length = u32::from_be_bytes(self.array()?);
                db_pointer(&self.take(length as usize)?)?
            }
            tag::CODE => RawBson::JavaScriptCode(self.text()?),
            tag::CODE_WITH_SCOPE => {
                let code = self.text()?;
                RawBson::JavaScriptCodeWithScope(RawJavaScriptCodeWithScope { code, scope: self.document(types)? })
            }
            _ => return Err(broken()),
        })
    }

    fn document(&mut self, types: &mut &[u8]) -> Result<RawDocumentBuf> {
        let mut document = RawDocumentBuf::new();
        loop {
            match self.byte()? {
                tag::END => return Ok(document),
                tag => {
                    let name = self.c_string()?;
                    document.append(name, self.payload(tag, types)?);
                }
            }
        }
    }

    fn elements(&mut self, types: &mut &[u8]) -> Result<RawBson> {
        let mut array = RawArrayBuf::new();
        loop {
            match self.byte()? {
                tag::END => return Ok(RawBson::Array(array)),
                tag => array.push(self.payload(tag, types)?),
            }
        }
    }

    /// The exponent of the first digit, and the digits; inverted again where the number is negative.
    fn digits(&mut self) -> Result<(bool, i32, Vec<u8>)> {
        let mut exponent: [u8; 2] = self.array()?;
        let negative = exponent[0] & 0x80 != 0; // biased exponents stay below 0x8000
        if negative {
            super::invert(&mut exponent);
        }
        let end = if negative { 0xFF } else { 0 };
        let mut digits = Vec::new();
        loop {
            match self.byte()? {
                byte if byte == end => break,
                byte => digits.push((if negative { !byte } else { byte }).wrapping_sub(1)),
            }
        }
        Ok((negative, i32::from(u16::from_be_bytes(exponent)) - EXPONENT_BIAS, digits))
    }

    fn number(&mut self, types: &mut &[u8]) -> Result<RawBson> {
        let (code, exponent) = next_kind(types)?;
        let double = number::from_sortable(u64::from_be_bytes(self.array()?));
        let is_decimal = matches!(code, kind::DECIMAL | kind::NEGATIVE_ZERO_DECIMAL);
        if self.byte()? == DIGITS {
            let (negative, leading, pairs) = self.digits()?;
            let coefficient = pairs.iter().fold(0u128, |sum, pair| sum * 100 + u128::from(*pair));
            let number = Decimal { negative, coefficient, exponent: leading + 1 - 2 * pairs.len() as i32 };
            if is_decimal {
                return Ok(RawBson::Decimal128(number.to_decimal128(exponent, false)));
            }
            let zeros = u32::try_from(number.exponent.max(0)).expect("not negative");
            let lost = u32::try_from((-number.exponent).max(0)).expect("not negative");
            let whole = coefficient * 10u128.pow(zeros) / 10u128.pow(lost);
            let whole = i128::try_from(whole).map_err(|_| broken())?;
            let whole = if negative { -whole } else { whole };
            return Ok(RawBson::Int64(i64::try_from(whole).map_err(|_| broken())?));
        }
        Ok(match code {
            kind::INT64 => RawBson::Int64(double as i64),
            kind::NEGATIVE_ZERO => RawBson::Double(-0.0),
            kind::DOUBLE => RawBson::Double(double),
            _ if is_decimal && double.is_nan() => RawBson::Decimal128(parse_decimal("NaN")),
            _ if is_decimal && double.is_infinite() => {
                RawBson::Decimal128(parse_decimal(if double > 0.0 { "Infinity" } else { "-Infinity" }))
            }
            _ if is_decimal => {
                let number = Decimal::from_double(double);
                RawBson::Decimal128(number.to_decimal128(exponent, code == kind::NEGATIVE_ZERO_DECIMAL))
            }
            _ if number::is_int32(double) => RawBson::Int32(double as i32),
            _ => RawBson::Double(double),
        })
    }
}

fn parse_decimal(text: &str) -> Decimal128 {
    text.parse().expect("a decimal's name")
}

/// The next type code and, for decimals, the exponent; past the end all are usual.
fn next_kind(types: &mut &[u8]) -> Result<(u8, u16)> {
    let Some((code, rest)) = types.split_first() else { return Ok((kind::USUAL, 0)) };
    if super::kind_width(*code) == 1 {
        *types = rest;
        return Ok((*code, 0));
    }
    let (exponent, rest) = rest.split_first_chunk::<2>().ok_or_else(broken)?;
    *types = rest;
    Ok((*code, u16::from_be_bytes(*exponent)))
}

/// A DBPointer from its BSON bytes, by way of a document around it.
fn db_pointer(bytes: &[u8]) -> Result<RawBson> {
    const AROUND: usize = 4 + 1 + 1 + 1;
    let length = i32::try_from(bytes.len() + AROUND).map_err(|_| broken())?;
    let mut document = Vec::with_capacity(bytes.len() + AROUND);
    document.extend_from_slice(&length.to_le_bytes());
    document.extend_from_slice(&[0x0C, 0]);
    document.extend_from_slice(bytes);
    document.push(0);
    let document = RawDocumentBuf::from_bytes(document)?;
    let value = crate::document::get(&document, "")?.ok_or_else(broken)?;
    Ok(value.into())
}

fn broken() -> Error {
    Error::internal("an index key's bytes are malformed: run validate on the collection")
}
