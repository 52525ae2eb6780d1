//! Sort patterns: `{a: 1, "b.c": -1}` and the keys that order documents by them.
//!
//! A document's sort key is its least key in an index of the same pattern: of an array the least element counts, or the
//! greatest where the order descends. Keys compare as bytes.

use crate::document::collation::Collator;
use crate::document::{Number, type_name};
use crate::error::{Code, Error, Result};
use crate::index::{Entry, FieldKind, KeyField, MAX_KEY_FIELDS, keys_of};
use crate::key::Decoder;
use bson::spec::BinarySubtype;
use bson::{Binary, RawArrayBuf, RawBson, RawBsonRef, RawDocument, RawDocumentBuf};
use std::sync::Arc;

/// What a query's results are ordered by.
#[derive(Clone, Debug)]
pub enum Order {
    /// The order of the records, or its reverse: `{$natural: ±1}`.
    Natural {
        /// Whether the newest come first.
        backward: bool,
    },
    /// The values of fields.
    Fields(Arc<SortPattern>),
}

impl Order {
    /// Parses a sort; `None` for the empty one.
    ///
    /// # Errors
    /// `Location15974` and `Location15975` for values that are no direction, `Location13103` for more than 32 fields, and what
    /// [`FieldPath::parse`](crate::document::FieldPath::parse) refuses.
    pub fn parse(document: &RawDocument) -> Result<Option<Order>> {
        let Some(first) = document.iter().next() else { return Ok(None) };
        let (name, value) = first?;
        if name.as_str() == "$natural" {
            if document.iter().count() > 1 {
                return Err(Error::bad_value(
                    "$natural sort cannot be set to a value other than -1 or 1, nor be combined",
                ));
            }
            return Ok(Some(Order::Natural { backward: direction(name.as_str(), value)? }));
        }
        SortPattern::parse(document).map(|pattern| Some(Order::Fields(Arc::new(pattern))))
    }
}

/// Fields and directions to sort by.
#[derive(Clone, Debug)]
pub struct SortPattern {
    fields: Vec<KeyField>,
    document: RawDocumentBuf,
}

impl SortPattern {
    /// Parses a sort by fields.
    ///
    /// # Errors
    /// As [`Order::parse`].
    pub fn parse(document: &RawDocument) -> Result<SortPattern> {
        let mut fields = Vec::new();
        for field in document {
            let (name, value) = field?;
            let path = name.as_str();
            if let RawBsonRef::Document(inner) = value
                && inner.get("$meta")?.is_some()
            {
                return Err(Error::new(
                    Code::COMMAND_NOT_SUPPORTED,
                    "sorting by $meta is not supported by Sheaf: see COMPAT.md",
                ));
            }
            let descending = direction(path, value)?;
            crate::document::FieldPath::parse(path)?;
            let kind = if descending { FieldKind::Descending } else { FieldKind::Ascending };
            fields.push(KeyField { path: path.to_owned(), kind });
        }
        if fields.len() > MAX_KEY_FIELDS {
            return Err(Error::location(
                13103,
                format!("too many compound keys: at most {MAX_KEY_FIELDS} are allowed"),
            ));
        }
        Ok(SortPattern { fields, document: document.to_owned() })
    }

    /// The fields.
    pub fn fields(&self) -> &[KeyField] {
        &self.fields
    }

    /// The pattern as given.
    pub fn document(&self) -> &RawDocument {
        &self.document
    }

    /// The bytes that order a document among others.
    ///
    /// # Errors
    /// `BadValue` (2) when two of the fields lie in different arrays.
    pub fn key(&self, document: &RawDocument, collator: Option<&Collator>) -> Result<Vec<u8>> {
        Ok(self.least(document, collator)?.map(|entry| entry.key.to_vec()).unwrap_or_default())
    }

    /// The values that a document is ordered by; in place of strings, what a collation makes of them.
    ///
    /// # Errors
    /// As [`SortPattern::key`].
    pub fn values(&self, document: &RawDocument, collator: Option<&Collator>) -> Result<RawArrayBuf> {
        let least = self.least(document, None)?;
        let mut values = RawArrayBuf::new();
        let Some(least) = least else { return Ok(values) };
        let mut decoder = Decoder::new(&least.key, &least.bits);
        for field in &self.fields {
            match (decoder.next(field.kind.is_descending())?, collator) {
                (RawBson::String(text), Some(collator)) => {
                    let bytes = collator.sort_key(&text);
                    values.push(RawBson::Binary(Binary { subtype: BinarySubtype::Generic, bytes }));
                }
                (value, _) => values.push(value),
            }
        }
        Ok(values)
    }

    fn least(&self, document: &RawDocument, collator: Option<&Collator>) -> Result<Option<Entry>> {
        let keys = keys_of(&self.fields, false, collator, document).map_err(|error| {
            if error.code == Code::CANNOT_INDEX_PARALLEL_ARRAYS {
                let message = error.message.replace("cannot index", "cannot sort with keys that are");
                return Error::bad_value(message);
            }
            error
        })?;
        Ok(keys.entries.into_iter().next())
    }
}

/// Whether a direction is descending.
fn direction(path: &str, value: RawBsonRef<'_>) -> Result<bool> {
    let number = Number::of(value).ok_or_else(|| {
        Error::location(
            15974,
            format!("Illegal key in $sort specification: {path}: a value of type {}", type_name(value)),
        )
    })?;
    match number.to_f64() {
        1.0 => Ok(false),
        -1.0 => Ok(true),
        _ => Err(Error::location(15975, "$sort key ordering must be 1 (for ascending) or -1 (for descending)")),
    }
}
