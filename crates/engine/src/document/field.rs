//! Finding one field in a document's bytes: what nearly every operator does to every document.
//!
//! Elements before it are stepped over by their lengths alone. The kinds of values that are common are read here; for the
//! others, and wherever the bytes are not as they should be, [`find`] leaves it to the caller to walk the slow way.

use bson::oid::ObjectId;
use bson::{DateTime, Decimal128, RawBsonRef, RawDocument, Timestamp};
use std::ops::Range;

/// The first field of a name: `Some(None)` if there is none, `None` if it takes a slower way to tell.
pub(super) fn find<'a>(document: &'a [u8], name: &str) -> Option<Option<RawBsonRef<'a>>> {
    match place(document, name)? {
        Some(field) => read(document[field.start], &document[field.start + name.len() + 2..field.end]).map(Some),
        None => Some(None),
    }
}

/// Where the first field of a name is, type and name included; `Some(None)` and `None` as [`find`] has them.
pub(super) fn place(document: &[u8], name: &str) -> Option<Option<Range<usize>>> {
    let name = name.as_bytes();
    let mut at = 4;
    loop {
        let kind = *document.get(at)?;
        if kind == 0 {
            return (at + 1 == document.len()).then_some(None);
        }
        let start = at + 1;
        let end = start + name_length(document.get(start..)?)?;
        let value = document.get(end + 1..)?;
        let size = value_size(kind, value)?;
        value.get(..size)?;
        if &document[start..end] == name {
            return Some(Some(at..end + 1 + size));
        }
        at = end + 1 + size;
    }
}

/// How long the name is that bytes begin with.
fn name_length(bytes: &[u8]) -> Option<usize> {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGHS: u64 = 0x8080_8080_8080_8080;
    let mut at = 0;
    while let Some(word) = bytes.get(at..at + 8) {
        let word = u64::from_le_bytes(word.try_into().expect("eight bytes"));
        let zeros = word.wrapping_sub(ONES) & !word & HIGHS;
        if zeros != 0 {
            return Some(at + zeros.trailing_zeros() as usize / 8);
        }
        at += 8;
    }
    bytes[at..].iter().position(|byte| *byte == 0).map(|rest| at + rest)
}

/// How many bytes the value of a kind takes that bytes begin with.
fn value_size(kind: u8, bytes: &[u8]) -> Option<usize> {
    let length = || Some(u32::from_le_bytes(bytes.get(..4)?.try_into().expect("four bytes")) as usize);
    Some(match kind {
        0x01 | 0x09 | 0x11 | 0x12 => 8,
        0x02 | 0x0d | 0x0e => 4 + length()?,
        0x03 | 0x04 => length()?,
        0x05 => 5 + length()?,
        0x06 | 0x0a | 0x7f | 0xff => 0,
        0x07 => 12,
        0x08 => 1,
        0x10 => 4,
        0x13 => 16,
        _ => return None,
    })
}

/// The value of a kind in exactly these bytes.
fn read(kind: u8, bytes: &[u8]) -> Option<RawBsonRef<'_>> {
    let eight = || bytes.try_into().ok();
    Some(match kind {
        0x01 => RawBsonRef::Double(f64::from_le_bytes(eight()?)),
        0x02 => RawBsonRef::String(text(bytes)?),
        0x03 => RawBsonRef::Document(RawDocument::from_bytes(bytes).ok()?),
        0x07 => RawBsonRef::ObjectId(ObjectId::from_bytes(bytes.try_into().ok()?)),
        0x08 => RawBsonRef::Boolean(match bytes {
            [0] => false,
            [1] => true,
            _ => return None,
        }),
        0x09 => RawBsonRef::DateTime(DateTime::from_millis(i64::from_le_bytes(eight()?))),
        0x0a => RawBsonRef::Null,
        0x10 => RawBsonRef::Int32(i32::from_le_bytes(bytes.try_into().ok()?)),
        0x11 => {
            let number = u64::from_le_bytes(eight()?);
            RawBsonRef::Timestamp(Timestamp { time: (number >> 32) as u32, increment: number as u32 })
        }
        0x12 => RawBsonRef::Int64(i64::from_le_bytes(eight()?)),
        0x13 => RawBsonRef::Decimal128(Decimal128::from_bytes(bytes.try_into().ok()?)),
        _ => return None,
    })
}

fn text(bytes: &[u8]) -> Option<&str> {
    let (text, end) = bytes.get(4..)?.split_at_checked(bytes.len().checked_sub(5)?)?;
    if *end != [0] {
        return None;
    }
    std::str::from_utf8(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::spec::BinarySubtype;
    use bson::{Binary, RawDocumentBuf, rawdoc};
    use proptest::prelude::*;

    /// The slow way.
    fn walked<'a>(document: &'a RawDocument, name: &str) -> Option<RawBsonRef<'a>> {
        document
            .iter()
            .map(|field| field.expect("well formed"))
            .find(|(key, _)| key.as_str() == name)
            .map(|field| field.1)
    }

    fn sample() -> RawDocumentBuf {
        rawdoc! {
            "double": 1.5, "text": "a\u{e9}\u{0}b", "document": { "inner": 1 }, "array": [1, 2],
            "binary": Binary { subtype: BinarySubtype::Generic, bytes: vec![1, 2, 3] }, "oid": ObjectId::from_bytes([7; 12]),
            "bool": true, "date": DateTime::from_millis(-5), "null": null, "int": 7, "": "the empty name",
            "time": Timestamp { time: 3, increment: 4 }, "long": i64::MIN, "a rather long name of a field": 1,
            "decimal": Decimal128::from_bytes([9; 16]), "text.x": "dotted", "int": "twice", "tex": 1, "textt": 2,
        }
    }

    #[test]
    fn every_kind_is_found_as_the_slow_way_finds_it() {
        let document = sample();
        for field in document.iter() {
            let name = field.unwrap().0.as_str();
            let found = find(document.as_bytes(), name);
            if !matches!(name, "array" | "binary") {
                assert_eq!(found, Some(walked(&document, name)), "{name}");
            }
            assert_eq!(crate::document::get(&document, name).unwrap(), walked(&document, name), "{name}");
        }
        assert_eq!(find(document.as_bytes(), "none"), Some(None));
        assert_eq!(find(document.as_bytes(), "text\u{0}"), Some(None));
        assert_eq!(find(rawdoc! {}.as_bytes(), "a"), Some(None));
    }

    proptest! {
        #[test]
        fn damaged_documents_never_panic(at in 0_usize..400, value in any::<u8>(), cut in 0_usize..400) {
            let mut bytes = sample().into_bytes();
            let length = bytes.len();
            bytes[at % length] = value;
            for name in ["long", "none", "decimal", "array"] {
                let _ = find(&bytes, name);
                let _ = find(&bytes[..cut % length], name);
            }
        }
    }
}
