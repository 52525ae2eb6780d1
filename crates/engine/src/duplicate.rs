//! The error about a key that another document has, with what drivers read from it.

use crate::catalog::{Collection, Index};
use crate::error::{Code, Error, Result};
use bson::{RawBsonRef, RawDocument, RawDocumentBuf, rawdoc};

/// Of the `_id` index.
pub(crate) fn duplicate_id(collection: &Collection, id: RawBsonRef<'_>) -> Error {
    let mut value = RawDocumentBuf::new();
    value.append(bson::raw::cstr!("_id"), id);
    duplicate(collection, "_id_", rawdoc! { "_id": 1 }, value, None)
}

/// Of any other index.
pub(crate) fn duplicate_key(collection: &Collection, index: &Index, document: Option<&RawDocument>) -> Error {
    let value = document.and_then(|document| key_value(index, document).ok()).unwrap_or_default();
    let collation = index.spec.document().get_document("collation").ok();
    duplicate(collection, index.spec.name(), index.spec.pattern().to_owned(), value, collation)
}

fn duplicate(
    collection: &Collection,
    index: &str,
    pattern: RawDocumentBuf,
    value: RawDocumentBuf,
    collation: Option<&RawDocument>,
) -> Error {
    let collation = collation.map(|c| format!(" collation: {}", crate::document::text(c))).unwrap_or_default();
    Error::new(
        Code::DUPLICATE_KEY,
        format!(
            "E11000 duplicate key error collection: {} index: {index}{collation} dup key: {}",
            collection.namespace,
            crate::document::text(&value)
        ),
    )
    .with_extra(rawdoc! { "keyPattern": pattern, "keyValue": value })
}

/// The values of a document's index key, as the error about a duplicate shows them.
fn key_value(index: &Index, document: &RawDocument) -> Result<RawDocumentBuf> {
    let mut values = RawDocumentBuf::new();
    for field in index.spec.fields() {
        let value = crate::document::FieldPath::unchecked(&field.path).evaluate(RawBsonRef::Document(document))?;
        crate::document::append(&mut values, &field.path, value.or_null())?;
    }
    Ok(values)
}
