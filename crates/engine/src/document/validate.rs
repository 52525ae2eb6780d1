//! Checks on documents that come from outside, before anything relies on their bytes.
//!
//! [`check`] walks all bytes once: every length, terminator and type is right, every text is UTF-8, and nothing is nested too
//! deeply. [`storable`] adds what a stored document needs: an `_id` of an allowed type in front, and a size within bounds.
//! Duplicate field names are kept, as MongoDB keeps them.

use crate::document::{MAX_DEPTH, MAX_DOCUMENT_BYTES, RawBsonRef, RawDocument, RawDocumentBuf, get};
use crate::error::{Code, Error, Result};
use bson::Timestamp;
use bson::oid::ObjectId;
use bson::raw::cstr;

/// Checks that the bytes are one complete, well-formed document.
///
/// # Errors
/// `InvalidBSON` (22) for malformed bytes, `Overflow` (15) for a nesting deeper than [`MAX_DEPTH`].
pub fn check(bytes: &[u8]) -> Result<&RawDocument> {
    let used = Walker { bytes }.document(0, 1)?;
    if used != bytes.len() {
        return Err(malformed("bytes follow the document's end"));
    }
    Ok(RawDocument::from_bytes(bytes)?)
}

/// Makes a checked document fit to be stored: `_id` in front, made by `new_id` where it is missing.
///
/// # Errors
/// `InvalidIdField` (53) for an `_id` that is an array, a regular expression or undefined, `DollarPrefixedFieldName` (52)
/// for an `_id` with fields that begin with `$`, `BSONObjectTooLarge` (10334) beyond [`MAX_DOCUMENT_BYTES`].
pub fn storable(document: RawDocumentBuf, new_id: impl FnOnce() -> ObjectId) -> Result<RawDocumentBuf> {
    let first_is_id = document.iter().next().transpose()?.is_some_and(|(name, _)| name.as_str() == "_id");
    let id = get(&document, "_id")?;
    if let Some(id) = id {
        check_id(id)?;
    }
    let document = if first_is_id {
        document
    } else {
        let mut ordered = RawDocumentBuf::new();
        match id {
            Some(id) => ordered.append(cstr!("_id"), id),
            None => ordered.append(cstr!("_id"), new_id()),
        }
        let mut moved = id.is_none();
        for field in &document {
            let (name, value) = field?;
            if !moved && name.as_str() == "_id" {
                moved = true;
            } else {
                ordered.append(name, value);
            }
        }
        ordered
    };
    let size = document.as_bytes().len();
    if size > MAX_DOCUMENT_BYTES {
        return Err(Error::new(
            Code::BSON_OBJECT_TOO_LARGE,
            format!("object to insert too large. size in bytes: {size}, max size: {MAX_DOCUMENT_BYTES}"),
        ));
    }
    Ok(document)
}

/// Gives the operation's time to top-level fields that hold a zero timestamp, as MongoDB does where it stores a whole
/// document; an `_id` stays.
///
/// # Errors
/// `InvalidBSON` (22) when the bytes are malformed.
pub fn with_timestamps(document: RawDocumentBuf, now: Timestamp) -> Result<RawDocumentBuf> {
    let is_zero =
        |value: &RawBsonRef<'_>| matches!(value, RawBsonRef::Timestamp(time) if time.time == 0 && time.increment == 0);
    let mut found = false;
    for field in &document {
        let (name, value) = field?;
        found |= name.as_str() != "_id" && is_zero(&value);
    }
    if !found {
        return Ok(document);
    }
    let mut stamped = RawDocumentBuf::new();
    for field in &document {
        let (name, value) = field?;
        if name.as_str() != "_id" && is_zero(&value) {
            stamped.append(name, now);
        } else {
            stamped.append(name, value);
        }
    }
    Ok(stamped)
}

/// Refuses an `_id` of a type that may not identify a document.
///
/// # Errors
/// As [`storable`].
pub fn check_id(id: RawBsonRef<'_>) -> Result<()> {
    let kind = match id {
        RawBsonRef::Array(_) => "array",
        RawBsonRef::RegularExpression(_) => "regex",
        RawBsonRef::Undefined => "undefined",
        RawBsonRef::Document(document) => {
            for field in document {
                let (name, _) = field?;
                if name.as_str().starts_with('$') {
                    return Err(Error::new(
                        Code::DOLLAR_PREFIXED_FIELD_NAME,
                        format!(
                            "_id fields may not contain '$'-prefixed fields: {} is not valid for storage.",
                            name.as_str()
                        ),
                    ));
                }
            }
            return Ok(());
        }
        _ => return Ok(()),
    };
    Err(Error::new(Code::INVALID_ID_FIELD, format!("The '_id' value cannot be of type {kind}")))
}

/// How many documents and arrays are nested in a value, itself included; counting stops beyond the bound.
///
/// # Errors
/// `InvalidBSON` (22) when the bytes are malformed.
pub fn nesting(value: RawBsonRef<'_>) -> Result<usize> {
    fn within(value: RawBsonRef<'_>, left: usize) -> Result<usize> {
        let mut deepest = 0;
        let mut visit = |value: RawBsonRef<'_>| -> Result<()> {
            if left > 0 && matches!(value, RawBsonRef::Document(_) | RawBsonRef::Array(_)) {
                deepest = deepest.max(within(value, left - 1)?);
            }
            Ok(())
        };
        match value {
            RawBsonRef::Document(document) => document.iter().try_for_each(|field| visit(field?.1))?,
            RawBsonRef::Array(array) => array.into_iter().try_for_each(|value| visit(value?))?,
            _ => return Ok(0),
        }
        Ok(deepest + 1)
    }
    within(value, MAX_DEPTH + 1)
}

fn malformed(what: &str) -> Error {
    Error::new(Code::INVALID_BSON, format!("invalid BSON: {what}"))
}

/// Reads a document's bytes by offsets.
struct Walker<'a> {
    bytes: &'a [u8],
}

impl Walker<'_> {
    /// Walks the document at an offset; gives the offset after it.
    fn document(&self, start: usize, depth: usize) -> Result<usize> {
        if depth > MAX_DEPTH {
            return Err(Error::new(
                Code::OVERFLOW,
                format!("Document exceeds maximum nesting depth of {MAX_DEPTH}: store it less deeply nested"),
            ));
        }
        let length = self.length(start)?;
        let end = start.checked_add(length).filter(|end| length >= 5 && *end <= self.bytes.len());
        let end = end.ok_or_else(|| malformed("a document's length passes its bytes"))?;
        let mut at = start + 4;
        loop {
            let kind = *self.bytes[..end].get(at).ok_or_else(|| malformed("a document without its end"))?;
            at += 1;
            if kind == 0 {
                break;
            }
            at = self.cstring(at, end)?;
            at = self.value(kind, at, end, depth)?;
        }
        if at == end { Ok(end) } else { Err(malformed("a document ends before its length")) }
    }

    fn value(&self, kind: u8, at: usize, end: usize, depth: usize) -> Result<usize> {
        let after = match kind {
            0x01 | 0x09 | 0x11 | 0x12 => at + 8,
            0x02 | 0x0D | 0x0E => self.string(at, end)?,
            0x03 | 0x04 => self.document(at, depth + 1)?,
            0x05 => self.binary(at)?,
            0x06 | 0x0A | 0x7F | 0xFF => at,
            0x07 => at + 12,
            0x08 => match self.bytes.get(at) {
                Some(0 | 1) => at + 1,
                _ => return Err(malformed("a boolean that is neither true nor false")),
            },
            0x0B => {
                let pattern = self.cstring(at, end)?;
                self.cstring(pattern, end)?
            }
            0x0C => self.string(at, end)? + 12,
            0x0F => {
                let length = self.length(at)?;
                let code = self.string(at + 4, end)?;
                let scope = self.document(code, depth + 1)?;
                if scope != at + length {
                    return Err(malformed("code with scope of another length than it says"));
                }
                scope
            }
            0x10 => at + 4,
            0x13 => at + 16,
            other => return Err(malformed(&format!("unknown type {other:#04x}"))),
        };
        if after >= end { Err(malformed("a value passes its document")) } else { Ok(after) }
    }

    fn length(&self, at: usize) -> Result<usize> {
        let bytes = self.bytes.get(at..at + 4).ok_or_else(|| malformed("a length passes the bytes"))?;
        let length = i32::from_le_bytes(bytes.try_into().expect("four bytes are sliced above"));
        usize::try_from(length).map_err(|_| malformed("a negative length"))
    }

    fn cstring(&self, at: usize, end: usize) -> Result<usize> {
        let rest = self.bytes.get(at..end).ok_or_else(|| malformed("a name passes its document"))?;
        let length = rest.iter().position(|byte| *byte == 0).ok_or_else(|| malformed("a name without its end"))?;
        if std::str::from_utf8(&rest[..length]).is_err() {
            return Err(malformed("a name that is not UTF-8"));
        }
        Ok(at + length + 1)
    }

    fn string(&self, at: usize, end: usize) -> Result<usize> {
        let length = self.length(at)?;
        let start = at + 4;
        let text = start.checked_add(length).filter(|after| length >= 1 && *after <= end);
        let after = text.ok_or_else(|| malformed("a string's length passes its document"))?;
        if self.bytes[after - 1] != 0 {
            return Err(malformed("a string without its end"));
        }
        if std::str::from_utf8(&self.bytes[start..after - 1]).is_err() {
            return Err(malformed("a string that is not UTF-8"));
        }
        Ok(after)
    }

    fn binary(&self, at: usize) -> Result<usize> {
        const OLD_BINARY: u8 = 2;
        let length = self.length(at)?;
        if self.bytes.get(at + 4) == Some(&OLD_BINARY) && (length < 4 || self.length(at + 5)? != length - 4) {
            return Err(malformed("old binary of another length than it says"));
        }
        (at + 5).checked_add(length).ok_or_else(|| malformed("a binary's length passes its document"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::{Bson, doc, rawdoc};

    fn nested(depth: usize) -> RawDocumentBuf {
        let mut document = doc! {};
        for _ in 1..depth {
            document = doc! { "a": document };
        }
        RawDocumentBuf::try_from(&document).unwrap()
    }

    #[test]
    fn every_type_passes_and_every_cut_is_refused() {
        let document = RawDocumentBuf::try_from(&doc! {
            "double": 1.5, "string": "å", "document": { "a": 1 }, "array": [1, "b"], "null": null, "bool": true,
            "binary": bson::Binary { subtype: bson::spec::BinarySubtype::Generic, bytes: vec![1, 2] },
            "old": bson::Binary { subtype: bson::spec::BinarySubtype::BinaryOld, bytes: vec![1, 2] },
            "oid": ObjectId::new(), "date": bson::DateTime::now(), "int": 1, "long": 1_i64,
            "regex": Bson::RegularExpression(bson::Regex { pattern: cstr!("a").to_owned(), options: cstr!("i").to_owned() }),
            "code": Bson::JavaScriptCode("x".into()), "symbol": Bson::Symbol("s".into()),
            "scope": Bson::JavaScriptCodeWithScope(bson::JavaScriptCodeWithScope { code: "x".into(), scope: doc! { "y": 1 } }),
            "time": bson::Timestamp { time: 1, increment: 2 }, "min": Bson::MinKey, "max": Bson::MaxKey,
            "undefined": Bson::Undefined, "decimal": "1.5".parse::<bson::Decimal128>().unwrap(),
        })
        .unwrap();
        let bytes = document.as_bytes();
        check(bytes).unwrap();
        for end in 0..bytes.len() {
            assert!(check(&bytes[..end]).is_err(), "cut at {end}");
        }
        for at in 0..bytes.len() {
            let mut damaged = bytes.to_vec();
            damaged[at] ^= 0x80;
            if let Ok(document) = check(&damaged) {
                assert!(document.iter().all(|field| field.is_ok()), "byte {at}");
            }
        }
    }

    #[test]
    fn the_deepest_allowed_document_passes() {
        check(nested(MAX_DEPTH).as_bytes()).unwrap();
        assert_eq!(check(nested(MAX_DEPTH + 1).as_bytes()).unwrap_err().code, Code::OVERFLOW);
        assert_eq!(nesting(RawBsonRef::Document(&nested(7))).unwrap(), 7);
    }

    #[test]
    fn the_id_comes_first_and_has_an_allowed_type() {
        let id = ObjectId::new();
        let stored = storable(rawdoc! { "a": 1, "_id": 7, "b": 2 }, || id).unwrap();
        assert_eq!(stored, rawdoc! { "_id": 7, "a": 1, "b": 2 });
        assert_eq!(storable(rawdoc! { "a": 1 }, || id).unwrap(), rawdoc! { "_id": id, "a": 1 });
        for (document, code) in [(rawdoc! { "_id": [1] }, 53), (rawdoc! { "_id": { "$a": 1 } }, 52)] {
            assert_eq!(storable(document, || id).unwrap_err().code.0, code);
        }
    }

    #[test]
    fn sixteen_mebibytes_pass_and_one_more_byte_does_not() {
        let overhead = rawdoc! { "_id": 1, "a": "" }.as_bytes().len();
        let of_size = |size: usize| rawdoc! { "_id": 1, "a": "x".repeat(size - overhead) };
        assert!(storable(of_size(MAX_DOCUMENT_BYTES), ObjectId::new).is_ok());
        assert_eq!(storable(of_size(MAX_DOCUMENT_BYTES + 1), ObjectId::new).unwrap_err().code.0, 10334);
    }
}
