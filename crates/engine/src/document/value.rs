//! A value that may be missing, borrowed from document bytes, or computed.

use crate::error::{Code, Error, Result};
use bson::raw::CStr;
use bson::{Decimal128, RawArrayBuf, RawBson, RawBsonRef, RawDocumentBuf};

/// What a field path or an expression gives.
///
/// Match on [`Value::get`], which shows every present value as a [`RawBsonRef`], wherever its bytes live.
#[derive(Clone, Debug, Default)]
pub enum Value<'a> {
    /// No such field; not the same as null.
    #[default]
    Missing,
    /// Bytes of a document or a literal.
    Borrowed(RawBsonRef<'a>),
    /// A computed value.
    Owned(RawBson),
}

impl<'a> Value<'a> {
    /// The null value.
    pub const NULL: Value<'static> = Value::Borrowed(RawBsonRef::Null);

    /// The value's bytes, or `None` when it is missing.
    pub fn get(&self) -> Option<RawBsonRef<'_>> {
        match self {
            Value::Missing => None,
            Value::Borrowed(value) => Some(*value),
            Value::Owned(value) => Some(value.as_raw_bson_ref()),
        }
    }

    /// The value's bytes, with null for a missing one.
    pub fn or_null(&self) -> RawBsonRef<'_> {
        self.get().unwrap_or(RawBsonRef::Null)
    }

    /// Whether it is missing, null or undefined: what most operators turn into null.
    pub fn is_nullish(&self) -> bool {
        matches!(self.get(), None | Some(RawBsonRef::Null | RawBsonRef::Undefined))
    }

    /// Whether it is missing.
    pub fn is_missing(&self) -> bool {
        matches!(self, Value::Missing)
    }

    /// MongoDB's truth: false, null, undefined, missing and zero are false, all else is true.
    pub fn is_true(&self) -> bool {
        match self.get() {
            None | Some(RawBsonRef::Null | RawBsonRef::Undefined | RawBsonRef::Boolean(false)) => false,
            Some(RawBsonRef::Int32(number)) => number != 0,
            Some(RawBsonRef::Int64(number)) => number != 0,
            Some(RawBsonRef::Double(number)) => number != 0.0,
            Some(RawBsonRef::Decimal128(number)) => !decimal_is_zero(&number),
            Some(_) => true,
        }
    }

    /// The same value, independent of anybody else's bytes.
    pub fn into_owned(self) -> Value<'static> {
        match self {
            Value::Missing => Value::Missing,
            Value::Borrowed(value) => Value::Owned(value.into()),
            Value::Owned(value) => Value::Owned(value),
        }
    }

    /// A view of this value that borrows from it.
    pub fn borrow(&self) -> Value<'_> {
        self.get().map_or(Value::Missing, Value::Borrowed)
    }

    /// The name of its type as `$type` gives it, `missing` included.
    pub fn type_name(&self) -> &'static str {
        self.get().map_or("missing", type_name)
    }
}

/// Whether a decimal is plus or minus zero of any exponent (a coefficient above 34 digits counts as zero).
fn decimal_is_zero(number: &Decimal128) -> bool {
    let bits = u128::from_le_bytes(number.bytes());
    let top = (bits >> 122) as u8 & 0b1_1111;
    if top >= 0b1_1110 {
        return false; // infinity and NaN
    }
    if top >> 3 == 0b11 {
        return true; // a coefficient beyond 34 digits is read as zero
    }
    let coefficient = bits & ((1 << 113) - 1);
    coefficient == 0 || coefficient > 9_999_999_999_999_999_999_999_999_999_999_999
}

/// The name that `$type` gives to a value's type.
pub fn type_name(value: RawBsonRef<'_>) -> &'static str {
    match value {
        RawBsonRef::Double(_) => "double",
        RawBsonRef::String(_) => "string",
        RawBsonRef::Array(_) => "array",
        RawBsonRef::Document(_) => "object",
        RawBsonRef::Boolean(_) => "bool",
        RawBsonRef::Null => "null",
        RawBsonRef::RegularExpression(_) => "regex",
        RawBsonRef::JavaScriptCode(_) => "javascript",
        RawBsonRef::JavaScriptCodeWithScope(_) => "javascriptWithScope",
        RawBsonRef::Int32(_) => "int",
        RawBsonRef::Int64(_) => "long",
        RawBsonRef::Timestamp(_) => "timestamp",
        RawBsonRef::Binary(_) => "binData",
        RawBsonRef::ObjectId(_) => "objectId",
        RawBsonRef::DateTime(_) => "date",
        RawBsonRef::Symbol(_) => "symbol",
        RawBsonRef::Decimal128(_) => "decimal",
        RawBsonRef::Undefined => "undefined",
        RawBsonRef::MaxKey => "maxKey",
        RawBsonRef::MinKey => "minKey",
        RawBsonRef::DbPointer(_) => "dbPointer",
    }
}

/// Appends a field to a document that is being built.
///
/// # Errors
/// `BadValue` (2) when the name holds a null byte.
pub fn append(document: &mut RawDocumentBuf, name: &str, value: RawBsonRef<'_>) -> Result<()> {
    let name =
        <&CStr>::try_from(name).map_err(|_| Error::new(Code::BAD_VALUE, "a field name may not contain a null byte"))?;
    document.append(name, value);
    Ok(())
}

/// An empty document that takes so many bytes without growing.
///
/// # Errors
/// None in practice: it is a document.
pub fn with_room(bytes: usize) -> Result<RawDocumentBuf> {
    let mut room = Vec::with_capacity(bytes.max(EMPTY.len()));
    room.extend_from_slice(&EMPTY);
    Ok(RawDocumentBuf::from_bytes(room)?)
}

/// A document without fields: its length and its end.
const EMPTY: [u8; 5] = [5, 0, 0, 0, 0];

/// A value's bytes as BSON stores them, without type and name.
///
/// # Errors
/// None in practice: the empty name is always allowed.
pub fn value_bytes(value: RawBsonRef<'_>) -> Result<Vec<u8>> {
    const BEFORE: usize = 4 + 1 + 1; // the document's length, the type, the empty name's end
    let mut document = RawDocumentBuf::new();
    append(&mut document, "", value)?;
    let bytes = document.as_bytes();
    Ok(bytes[BEFORE..bytes.len() - 1].to_vec())
}

impl<'a> From<RawBsonRef<'a>> for Value<'a> {
    fn from(value: RawBsonRef<'a>) -> Value<'a> {
        Value::Borrowed(value)
    }
}

impl From<RawBson> for Value<'_> {
    fn from(value: RawBson) -> Self {
        Value::Owned(value)
    }
}

macro_rules! from_owned {
    ($($type:ty => $variant:ident),*) => {
        $(impl From<$type> for Value<'_> {
            fn from(value: $type) -> Self {
                Value::Owned(RawBson::$variant(value))
            }
        })*
    };
}

from_owned! {
    f64 => Double, i32 => Int32, i64 => Int64, bool => Boolean, String => String, Decimal128 => Decimal128,
    bson::DateTime => DateTime, bson::Timestamp => Timestamp, bson::oid::ObjectId => ObjectId,
    RawDocumentBuf => Document, RawArrayBuf => Array
}
