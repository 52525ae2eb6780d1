//! Setting and removing one field of a document that is otherwise copied.

use crate::document::{RawBsonRef, RawDocument, RawDocumentBuf, append, field};
use crate::error::Result;
use std::ops::Range;

/// The document with another value at a path, or without the field. What stands in the way of the path and is no document
/// gives way to one; arrays are not entered. A new field comes last.
///
/// # Errors
/// `InvalidBSON` (22) when the bytes are malformed.
pub fn set(document: &RawDocument, path: &str, value: Option<RawBsonRef<'_>>) -> Result<RawDocumentBuf> {
    let (name, rest) = path.split_once('.').map_or((path, None), |(name, rest)| (name, Some(rest)));
    if let (None, Some(place)) = (rest, field::place(document.as_bytes(), name)) {
        return spliced(document, name, place, value);
    }
    let mut edited = RawDocumentBuf::new();
    let mut found = false;
    for field in document {
        let (known, old) = field?;
        if found || known.as_str() != name {
            edited.append(known, old);
            continue;
        }
        found = true;
        match (rest, old) {
            (None, _) => {
                if let Some(value) = value {
                    edited.append(known, value);
                }
            }
            (Some(rest), RawBsonRef::Document(inner)) => edited.append(known, set(inner, rest, value)?),
            (Some(_), old) if value.is_none() => edited.append(known, old),
            (Some(rest), _) => edited.append(known, set(&RawDocumentBuf::new(), rest, value)?),
        }
    }
    if let Some(value) = value.filter(|_| !found) {
        match rest {
            None => append(&mut edited, name, value)?,
            Some(rest) => {
                let inner = set(&RawDocumentBuf::new(), rest, Some(value))?;
                append(&mut edited, name, RawBsonRef::Document(&inner))?;
            }
        }
    }
    Ok(edited)
}

/// The document with a field at its place in the bytes replaced or taken out, or put last.
fn spliced(
    document: &RawDocument,
    name: &str,
    place: Option<Range<usize>>,
    value: Option<RawBsonRef<'_>>,
) -> Result<RawDocumentBuf> {
    let old = document.as_bytes();
    let end = old.len() - 1;
    let place = place.unwrap_or(end..end);
    let mut field = RawDocumentBuf::new();
    if let Some(value) = value {
        append(&mut field, name, value)?;
    }
    let field = field.as_bytes();
    let mut bytes = Vec::with_capacity(old.len() + field.len());
    bytes.extend_from_slice(&old[..place.start]);
    bytes.extend_from_slice(&field[4..field.len() - 1]);
    bytes.extend_from_slice(&old[place.end..]);
    let length = u32::try_from(bytes.len()).map_err(|_| crate::Error::internal("a document of more than 4 GiB"))?;
    bytes[..4].copy_from_slice(&length.to_le_bytes());
    Ok(RawDocumentBuf::from_bytes(bytes)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::rawdoc;

    #[test]
    fn one_field_changes_and_the_rest_stays() {
        let document = rawdoc! { "_id": 1, "a": { "b": 1, "c": 2 }, "d": 3 };
        let one = Some(RawBsonRef::Int32(9));
        assert_eq!(set(&document, "a.b", one).unwrap(), rawdoc! { "_id": 1, "a": { "b": 9, "c": 2 }, "d": 3 });
        assert_eq!(set(&document, "d.x", one).unwrap(), rawdoc! { "_id": 1, "a": { "b": 1, "c": 2 }, "d": { "x": 9 } });
        assert_eq!(set(&document, "e.f", one).unwrap().get_document("e").unwrap(), &*rawdoc! { "f": 9 });
        assert_eq!(set(&document, "a", one).unwrap(), rawdoc! { "_id": 1, "a": 9, "d": 3 });
        assert_eq!(set(&document, "e", one).unwrap(), rawdoc! { "_id": 1, "a": { "b": 1, "c": 2 }, "d": 3, "e": 9 });
        assert_eq!(set(&document, "_id", None).unwrap(), rawdoc! { "a": { "b": 1, "c": 2 }, "d": 3 });
        assert_eq!(set(&document, "e", None).unwrap(), document);
        assert_eq!(set(&document, "a.c", None).unwrap(), rawdoc! { "_id": 1, "a": { "b": 1 }, "d": 3 });
        assert_eq!(set(&document, "d.x", None).unwrap(), document);
    }
}
