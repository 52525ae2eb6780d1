//! Documents and values as bytes: reading, comparing, addressing and building BSON without trees.
//!
//! A document is `bson`'s [`RawDocument`] (borrowed) or [`RawDocumentBuf`] (owned); a value is [`RawBsonRef`] where
//! somebody else's bytes hold it and [`Value`] where it may also be missing or computed. Nothing here knows an
//! operator, an index or a collection.

pub mod collation;
pub mod compare;
pub mod date;
pub mod date_text;
pub mod decimal;
pub mod edit;
mod field;
pub mod hash;
pub mod number;
pub mod order;
pub mod path;
pub mod regex;
pub mod row;
pub mod text;
pub mod traverse;
pub mod trigonometry;
pub mod validate;
pub mod value;

pub use bson::{RawArray, RawArrayBuf, RawBson, RawBsonRef, RawDocument, RawDocumentBuf};
pub use compare::{compare_documents, compare_values, values_equal};
pub use number::Number;
pub use path::{FieldPath, evaluate_at};
pub use row::Row;
pub use text::{text, value_text};
pub use value::{Value, append, type_name, with_room};

use crate::error::Result;

/// The deepest nesting a document may have, counting the document itself.
pub const MAX_DEPTH: usize = 180;

/// The largest document a client may store, in bytes (16 MiB).
pub const MAX_DOCUMENT_BYTES: usize = 16 * 1024 * 1024;

/// The first field of that name, or `None`.
///
/// # Errors
/// `InvalidBSON` (22) when the bytes are malformed.
pub fn get<'a>(document: &'a RawDocument, name: &str) -> Result<Option<RawBsonRef<'a>>> {
    if let Some(found) = field::find(document.as_bytes(), name) {
        return Ok(found);
    }
    for element in document.iter_elements() {
        let element = element?;
        if element.key().as_str() == name {
            return Ok(Some(element.value()?));
        }
    }
    Ok(None)
}

/// Checks a document that a client wants stored: well formed, not too deep, not too large, an allowed `_id` in front, which is
/// made where it is missing.
///
/// # Errors
/// As [`validate::check`] and [`validate::storable`].
pub fn validated(document: RawDocumentBuf) -> Result<RawDocumentBuf> {
    validate::check(document.as_bytes())?;
    validate::storable(document, bson::oid::ObjectId::new)
}
