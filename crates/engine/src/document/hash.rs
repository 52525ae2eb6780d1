//! MongoDB's 64-bit hash of a value, as `$toHashedIndexKey` gives it: the first half of an MD5 over the value's canonical
//! type and its bytes, numbers as the int64 that they are cut to.

use crate::document::append;
use crate::document::number::Number;
use crate::error::Result;
use bson::{RawBsonRef, RawDocument, RawDocumentBuf};
use md5::{Digest, Md5};

/// The hash of a value.
///
/// # Errors
/// `InvalidBSON` (22) when nested bytes are malformed.
pub fn hash(value: RawBsonRef<'_>) -> Result<i64> {
    let mut md5 = Md5::new();
    md5.update(0_i32.to_le_bytes()); // the seed
    add(&mut md5, value, None)?;
    let digest = md5.finalize();
    let half: [u8; 8] = digest[..8].try_into().expect("an MD5 has 16 bytes");
    Ok(i64::from_le_bytes(half))
}

/// The type under which values that compare with one another are hashed.
fn canonical_type(value: RawBsonRef<'_>) -> i32 {
    match value {
        RawBsonRef::MinKey => -1,
        RawBsonRef::Undefined => 0,
        RawBsonRef::Null => 5,
        RawBsonRef::Double(_) | RawBsonRef::Int32(_) | RawBsonRef::Int64(_) | RawBsonRef::Decimal128(_) => 10,
        RawBsonRef::String(_) | RawBsonRef::Symbol(_) => 15,
        RawBsonRef::Document(_) => 20,
        RawBsonRef::Array(_) => 25,
        RawBsonRef::Binary(_) => 30,
        RawBsonRef::ObjectId(_) => 35,
        RawBsonRef::Boolean(_) => 40,
        RawBsonRef::DateTime(_) => 45,
        RawBsonRef::Timestamp(_) => 47,
        RawBsonRef::RegularExpression(_) => 50,
        RawBsonRef::DbPointer(_) => 55,
        RawBsonRef::JavaScriptCode(_) => 60,
        RawBsonRef::JavaScriptCodeWithScope(_) => 65,
        RawBsonRef::MaxKey => 127,
    }
}

fn add(md5: &mut Md5, value: RawBsonRef<'_>, name: Option<&str>) -> Result<()> {
    md5.update(canonical_type(value).to_le_bytes());
    if let Some(name) = name {
        md5.update(name.as_bytes());
        md5.update([0]);
    }
    match value {
        RawBsonRef::Document(document) => add_fields(md5, document),
        RawBsonRef::Array(array) => add_fields(md5, RawDocument::from_bytes(array.as_bytes())?),
        other => {
            match Number::of(other) {
                Some(number) => md5.update(number.to_i64_truncated().to_le_bytes()),
                None => md5.update(bytes_of(other)?),
            }
            Ok(())
        }
    }
}

fn add_fields(md5: &mut Md5, document: &RawDocument) -> Result<()> {
    for field in document {
        let (name, value) = field?;
        add(md5, value, Some(name.as_str()))?;
    }
    // The terminator of a document counts as a nameless element of type 0.
    md5.update(0_i32.to_le_bytes());
    md5.update([0]);
    Ok(())
}

/// A value's bytes as they stand in a document.
fn bytes_of(value: RawBsonRef<'_>) -> Result<Vec<u8>> {
    let mut document = RawDocumentBuf::new();
    append(&mut document, "", value)?;
    let bytes = document.as_bytes();
    // A length, a type, an empty name, the value, a terminator.
    Ok(bytes[6..bytes.len() - 1].to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documented_example() {
        assert_eq!(hash(RawBsonRef::String("string to hash")).unwrap(), 763_543_691_661_428_748);
    }

    #[test]
    fn numbers_of_one_whole_part_hash_equally() {
        assert_eq!(hash(RawBsonRef::Int32(2)).unwrap(), hash(RawBsonRef::Double(2.5)).unwrap());
    }
}
