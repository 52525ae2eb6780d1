//! Reading and writing what a bucket is made of: whole numbers of variable length, and the fields of a document as bytes.

use crate::error::{Code, Error, Result};

/// What a bucket that can't be read is refused with.
pub(super) fn broken(what: &str) -> Error {
    Error::new(Code::MANUAL_INTERVENTION_REQUIRED, format!("a bucket of a time series can't be read: {what}"))
}

/// Appends a number, seven bits a byte, the least first.
pub(super) fn put_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Appends a number that may be negative, so that small ones are short whatever their sign.
pub(super) fn put_signed(out: &mut Vec<u8>, number: i64) {
    put_number(out, ((number << 1) ^ (number >> 63)) as u64);
}

/// Bytes that are being read from the front.
#[derive(Clone, Copy)]
pub(super) struct Reader<'b> {
    rest: &'b [u8],
}

impl<'b> Reader<'b> {
    pub(super) fn new(bytes: &'b [u8]) -> Reader<'b> {
        Reader { rest: bytes }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(super) fn take(&mut self, length: usize) -> Result<&'b [u8]> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or_else(|| broken("it ends early"))?;
        self.rest = rest;
        Ok(taken)
    }

    pub(super) fn byte(&mut self) -> Result<u8> {
        Ok(self.take(1)?[0])
    }

    pub(super) fn fixed(&mut self) -> Result<i64> {
        Ok(i64::from_le_bytes(self.take(8)?.try_into().expect("eight bytes were taken")))
    }

    pub(super) fn number(&mut self) -> Result<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(broken("a number has too many bytes"))
    }

    pub(super) fn signed(&mut self) -> Result<i64> {
        let number = self.number()?;
        Ok((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    /// A length or a count, which no bucket has more of than `most`.
    pub(super) fn length(&mut self, most: usize) -> Result<usize> {
        let length = self.number()?;
        usize::try_from(length).ok().filter(|length| *length <= most).ok_or_else(|| broken("a length is out of bounds"))
    }
}

/// A field of a document: its type, its name and its value's bytes.
#[derive(Clone, Copy)]
pub(super) struct Field<'d> {
    pub(super) kind: u8,
    pub(super) name: &'d [u8],
    pub(super) value: &'d [u8],
}

/// The fields of a document that was checked when it was stored.
pub(super) fn fields(document: &[u8]) -> Result<Vec<Field<'_>>> {
    let body = document.get(4..document.len().saturating_sub(1)).ok_or_else(|| broken("a document is too short"))?;
    let mut reader = Reader::new(body);
    let mut fields = Vec::with_capacity(8);
    while !reader.is_empty() {
        let kind = reader.byte()?;
        let end = reader.rest.iter().position(|byte| *byte == 0).ok_or_else(|| broken("a name has no end"))?;
        let name = reader.take(end)?;
        reader.take(1)?;
        let length = value_length(kind, reader.rest).ok_or_else(|| broken("a value has an unknown type"))?;
        fields.push(Field { kind, name, value: reader.take(length)? });
    }
    Ok(fields)
}

/// How many bytes a value takes.
fn value_length(kind: u8, bytes: &[u8]) -> Option<usize> {
    let leading =
        || Some(i32::from_le_bytes(bytes.get(..4)?.try_into().ok()?)).and_then(|length| usize::try_from(length).ok());
    let text = |from: usize| bytes.get(from..)?.iter().position(|byte| *byte == 0).map(|end| from + end + 1);
    Some(match kind {
        0x01 | 0x09 | 0x11 | 0x12 => 8,
        0x02 | 0x0D | 0x0E => 4 + leading()?,
        0x03 | 0x04 | 0x0F => leading()?,
        0x05 => 5 + leading()?,
        0x06 | 0x0A | 0x7F | 0xFF => 0,
        0x07 => 12,
        0x08 => 1,
        0x0B => text(text(0)?)?,
        0x0C => 4 + leading()? + 12,
        0x10 => 4,
        0x13 => 16,
        _ => return None,
    })
}
