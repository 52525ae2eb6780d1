//! The structural check: every length, type and terminator of a document and all that is nested in it, with bounded depth.
//!
//! Code behind it may recurse over a document's depth and trust its lengths. Text is not checked here: whoever reads it does.

/// What is wrong with a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CheckError {
    /// The bytes are no BSON; says why, and at which offset.
    Malformed(&'static str, usize),
    /// Nested deeper than allowed.
    TooDeep,
}

impl std::fmt::Display for CheckError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            CheckError::Malformed(reason, offset) => write!(f, "{reason} at offset {offset}"),
            CheckError::TooDeep => write!(f, "nested too deep"),
        }
    }
}

/// Checks that `bytes` is exactly one document, nested at most `max_depth` deep (a flat document has depth 1).
pub(crate) fn check(bytes: &[u8], max_depth: usize) -> Result<(), CheckError> {
    let mut ends: Vec<usize> = Vec::with_capacity(8);
    let mut at = open(bytes, 0, bytes.len(), &mut ends, max_depth)?;
    if ends[0] + 1 != bytes.len() {
        return Err(CheckError::Malformed("document length differs from its bytes", 0));
    }
    while let Some(&end) = ends.last() {
        if at == end {
            ends.pop();
            at += 1;
            continue;
        }
        let kind = bytes[at];
        let name_at = at + 1;
        let Some(name_bytes) = bytes[name_at..end].iter().position(|byte| *byte == 0) else {
            return Err(CheckError::Malformed("field name without an end", at));
        };
        at = name_at + name_bytes + 1;
        at = match kind {
            0x03 | 0x04 => open(bytes, at, end, &mut ends, max_depth)?,
            0x0F => open_scope(bytes, at, end, &mut ends, max_depth)?,
            _ => skip_value(kind, bytes, at, end)?,
        };
    }
    Ok(())
}

/// Enters the document at `at`, which must end before `outer_end`; the offset of its first element.
fn open(
    bytes: &[u8],
    at: usize,
    outer_end: usize,
    ends: &mut Vec<usize>,
    max_depth: usize,
) -> Result<usize, CheckError> {
    let length = int(bytes, at, outer_end)?;
    if length < 5 || length > outer_end - at {
        return Err(CheckError::Malformed("document length out of bounds", at));
    }
    let end = at + length - 1;
    if bytes[end] != 0 {
        return Err(CheckError::Malformed("document without its terminator", end));
    }
    if ends.len() == max_depth {
        return Err(CheckError::TooDeep);
    }
    ends.push(end);
    Ok(at + 4)
}

/// Code with scope: a total length, the code, then a document that must fill the rest.
fn open_scope(
    bytes: &[u8],
    at: usize,
    end: usize,
    ends: &mut Vec<usize>,
    max_depth: usize,
) -> Result<usize, CheckError> {
    let total = int(bytes, at, end)?;
    if total > end - at {
        return Err(CheckError::Malformed("code with scope out of bounds", at));
    }
    let scope_at = text(bytes, at + 4, at + total)?;
    let first = open(bytes, scope_at, at + total, ends, max_depth)?;
    match ends.last() {
        Some(&scope_end) if scope_end + 1 == at + total => Ok(first),
        _ => Err(CheckError::Malformed("scope length differs from its bytes", scope_at)),
    }
}

/// Skips a value that holds no document; the offset behind it.
fn skip_value(kind: u8, bytes: &[u8], at: usize, end: usize) -> Result<usize, CheckError> {
    let behind = match kind {
        0x06 | 0x0A | 0x7F | 0xFF => at,
        0x08 => match bytes.get(at) {
            Some(0 | 1) => at + 1,
            _ => return Err(CheckError::Malformed("boolean that is neither 0 nor 1", at)),
        },
        0x10 => at + 4,
        0x01 | 0x09 | 0x11 | 0x12 => at + 8,
        0x07 => at + 12,
        0x13 => at + 16,
        0x02 | 0x0D | 0x0E => text(bytes, at, end)?,
        0x0C => text(bytes, at, end)? + 12,
        0x05 => binary(bytes, at, end)?,
        0x0B => {
            let options_at = cstring(bytes, at, end)?;
            cstring(bytes, options_at, end)?
        }
        _ => return Err(CheckError::Malformed("unknown element type", at)),
    };
    if behind > end { Err(CheckError::Malformed("value out of bounds", at)) } else { Ok(behind) }
}

fn int(bytes: &[u8], at: usize, end: usize) -> Result<usize, CheckError> {
    let out_of_bounds = CheckError::Malformed("length out of bounds", at);
    let Some(four) = bytes[..end].get(at..at + 4) else { return Err(out_of_bounds) };
    let value = i32::from_le_bytes([four[0], four[1], four[2], four[3]]);
    usize::try_from(value).map_err(|_| out_of_bounds)
}

fn text(bytes: &[u8], at: usize, end: usize) -> Result<usize, CheckError> {
    let length = int(bytes, at, end)?;
    if length == 0 || length > end - at - 4 || bytes[at + 4 + length - 1] != 0 {
        return Err(CheckError::Malformed("string length out of bounds", at));
    }
    Ok(at + 4 + length)
}

fn binary(bytes: &[u8], at: usize, end: usize) -> Result<usize, CheckError> {
    let length = int(bytes, at, end)?;
    let behind = at + 5 + length;
    if behind > end {
        return Err(CheckError::Malformed("binary length out of bounds", at));
    }
    if bytes[at + 4] == 2 && (length < 4 || int(bytes, at + 5, end)? != length - 4) {
        return Err(CheckError::Malformed("old binary with a wrong inner length", at));
    }
    Ok(behind)
}

fn cstring(bytes: &[u8], at: usize, end: usize) -> Result<usize, CheckError> {
    match bytes[at.min(end)..end].iter().position(|byte| *byte == 0) {
        Some(length) => Ok(at + length + 1),
        None => Err(CheckError::Malformed("string without an end", at)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::{Document, RawDocument, RawDocumentBuf, doc};
    use proptest::prelude::*;

    fn bytes(document: &Document) -> Vec<u8> {
        RawDocumentBuf::try_from(document).expect("serializes").into_bytes()
    }

    fn nested(depth: usize) -> Vec<u8> {
        let mut document = doc! {};
        for _ in 1..depth {
            document = doc! { "a": document };
        }
        bytes(&document)
    }

    #[test]
    fn depth_is_bounded_exactly() {
        assert_eq!(check(&nested(200), 200), Ok(()));
        assert_eq!(check(&nested(201), 200), Err(CheckError::TooDeep));
    }

    #[test]
    fn every_type_passes() {
        let document = doc! {
            "double": 1.5, "text": "ä", "array": [1, [2, { "x": 3 }]], "null": null, "bool": true, "int": 1, "long": 2_i64,
            "date": bson::DateTime::from_millis(1), "id": bson::oid::ObjectId::from_bytes([1; 12]),
            "binary": bson::Binary { subtype: bson::spec::BinarySubtype::Generic, bytes: vec![1, 2] },
            "regex": bson::Regex { pattern: "a".try_into().expect("valid"), options: "i".try_into().expect("valid") },
            "code": bson::Bson::JavaScriptCode("x".into()),
            "scoped": bson::JavaScriptCodeWithScope { code: "x".into(), scope: doc! { "y": [1] } },
            "timestamp": bson::Timestamp { time: 1, increment: 2 }, "min": bson::Bson::MinKey, "max": bson::Bson::MaxKey,
            "symbol": bson::Bson::Symbol("s".into()), "undefined": bson::Bson::Undefined,
            "decimal": bson::Bson::Decimal128("1.5".parse().expect("valid")),
        };
        assert_eq!(check(&bytes(&document), 4), Ok(()));
    }

    #[test]
    fn each_cut_and_each_wrong_length_is_refused_without_a_panic() {
        let bytes = bytes(&doc! { "a": { "b": ["x", 1] }, "c": "y" });
        for end in 0..bytes.len() {
            assert!(check(&bytes[..end], 10).is_err());
        }
    }

    proptest! {
        #[test]
        fn damage_never_panics_and_what_passes_can_be_walked(at in 0_usize..60, value in 0_u8..128) {
            let document = doc! { "a": { "b": ["x", 1, { "z": 1.0 }] }, "c": "y", "d": true, "e": 5_i64 };
            let mut bytes = bytes(&document);
            let at = at % bytes.len();
            bytes[at] = value;
            if check(&bytes, 10).is_ok() {
                let raw = RawDocument::from_bytes(&bytes).expect("passed the check");
                for element in raw.iter_elements() {
                    prop_assert!(element.is_ok());
                }
            }
        }

        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let _ = check(&bytes, 5);
        }
    }
}
