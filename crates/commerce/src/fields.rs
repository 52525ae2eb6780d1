//! Reading documents of the shop: a field that is not there reads as nothing or zero.

use crate::error::Result;
use crate::time::Time;
use bson::{Bson, Document, RawDocument};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Short ways to a document's fields.
pub(crate) trait Fields {
    fn text(&self, field: &str) -> &str;
    fn long(&self, field: &str) -> i64;
    fn time(&self, field: &str) -> Option<Time>;
    fn part(&self, field: &str) -> Option<&Document>;
    fn parts(&self, field: &str) -> Vec<&Document>;
}

impl Fields for Document {
    fn text(&self, field: &str) -> &str {
        self.get_str(field).unwrap_or_default()
    }

    fn long(&self, field: &str) -> i64 {
        match self.get(field) {
            Some(Bson::Int64(number)) => *number,
            Some(Bson::Int32(number)) => i64::from(*number),
            Some(Bson::Double(number)) => *number as i64,
            _ => 0,
        }
    }

    fn time(&self, field: &str) -> Option<Time> {
        self.get_datetime(field).ok().map(|date| Time::from(*date))
    }

    fn part(&self, field: &str) -> Option<&Document> {
        self.get_document(field).ok()
    }

    fn parts(&self, field: &str) -> Vec<&Document> {
        self.get_array(field).map(|array| array.iter().filter_map(Bson::as_document).collect()).unwrap_or_default()
    }
}

/// The element of an embedded array with a key.
pub(crate) fn element<'d>(document: &'d Document, array: &str, key: &str, value: &str) -> Option<&'d Document> {
    document.parts(array).into_iter().find(|element| element.text(key) == value)
}

/// The element of an embedded array with a key, to be changed.
pub(crate) fn element_mut<'d>(
    document: &'d mut Document,
    array: &str,
    key: &str,
    value: &str,
) -> Option<&'d mut Document> {
    let elements = document.get_array_mut(array).ok()?;
    elements.iter_mut().filter_map(Bson::as_document_mut).find(|element| element.text(key) == value)
}

/// Appends to an embedded array; the oldest go when it holds more than `max`.
pub(crate) fn push(document: &mut Document, array: &str, element: Document, max: usize) {
    match document.get_array_mut(array) {
        Ok(elements) => {
            elements.push(Bson::Document(element));
            let over = elements.len().saturating_sub(max);
            elements.drain(..over);
        }
        Err(_) => {
            document.insert(array, vec![Bson::Document(element)]);
        }
    }
}

/// A typed view as a document, with dates as BSON dates.
pub(crate) fn to_document<T: Serialize>(value: &T) -> Result<Document> {
    let bytes = bson::serialize_to_vec(value)?;
    Ok(Document::try_from(RawDocument::from_bytes(&bytes)?)?)
}

/// A document as a typed view.
pub(crate) fn from_document<T: DeserializeOwned>(document: &Document) -> Result<T> {
    Ok(bson::deserialize_from_slice(&document.to_vec()?)?)
}
