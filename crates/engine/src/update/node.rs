//! A document opened for change as far as a path leads, and no further.
//!
//! What nobody touches stays a slice of the original bytes and is copied as it stands; only documents and arrays on the way
//! to a changed field become lists.

use crate::document::Value;
use crate::error::{Code, Error, Result};
use bson::raw::{CStr, RawElement, cstr};
use bson::spec::ElementType;
use bson::{RawBson, RawBsonRef, RawDocument, RawDocumentBuf};
use std::borrow::Cow;

/// A value on its way through an update.
#[derive(Clone)]
pub(crate) enum Node<'a> {
    /// An untouched field of the document.
    Untouched {
        /// Reads it.
        element: RawElement<'a>,
        /// Its value's bytes.
        bytes: &'a [u8],
    },
    /// A value of the update or of elsewhere in the document.
    Raw(RawBsonRef<'a>),
    /// A computed value.
    Owned(RawBson),
    /// An opened document.
    Document(Vec<Field<'a>>),
    /// An opened array.
    Array(Vec<Node<'a>>),
}

/// A field of an opened document.
#[derive(Clone)]
pub(crate) struct Field<'a> {
    pub(crate) name: Cow<'a, str>,
    pub(crate) node: Node<'a>,
}

/// What opening a node shows.
pub(crate) enum Opened<'n, 'a> {
    Document(&'n mut Vec<Field<'a>>),
    Array(&'n mut Vec<Node<'a>>),
    Scalar,
}

impl<'a> Node<'a> {
    /// The null value.
    pub(crate) const NULL: Node<'static> = Node::Raw(RawBsonRef::Null);

    /// The value; opened documents and arrays are written out.
    pub(crate) fn value(&self) -> Result<Value<'_>> {
        Ok(match self {
            Node::Untouched { element, .. } => Value::Borrowed(element.value()?),
            Node::Raw(value) => Value::Borrowed(*value),
            Node::Owned(value) => Value::Borrowed(value.as_raw_bson_ref()),
            Node::Document(fields) => RawDocumentBuf::from_bytes(document_bytes(fields)?)?.into(),
            Node::Array(elements) => {
                let document = RawDocumentBuf::from_bytes(array_bytes(elements)?)?;
                Value::Owned(RawBson::Array(array_from_document(document)))
            }
        })
    }

    /// Whether it is an array, without opening it.
    pub(crate) fn is_array(&self) -> bool {
        match self {
            Node::Untouched { element, .. } => element.element_type() == ElementType::Array,
            Node::Raw(value) => matches!(value, RawBsonRef::Array(_)),
            Node::Owned(value) => matches!(value, RawBson::Array(_)),
            Node::Document(_) => false,
            Node::Array(_) => true,
        }
    }

    /// Opens a document or an array for change.
    pub(crate) fn open(&mut self) -> Result<Opened<'_, 'a>> {
        let opened = match self {
            Node::Untouched { element, .. } => match element.element_type() {
                ElementType::EmbeddedDocument | ElementType::Array => Node::opened(element.value()?)?,
                _ => None,
            },
            Node::Raw(value) => Node::opened(*value)?,
            Node::Owned(value) => Node::opened_owned(value)?,
            Node::Document(_) | Node::Array(_) => None,
        };
        if let Some(opened) = opened {
            *self = opened;
        }
        Ok(match self {
            Node::Document(fields) => Opened::Document(fields),
            Node::Array(elements) => Opened::Array(elements),
            _ => Opened::Scalar,
        })
    }

    /// The elements of an array, opened for change; `None` when it is no array.
    pub(crate) fn elements(&mut self) -> Result<Option<&mut Vec<Node<'a>>>> {
        Ok(match self.open()? {
            Opened::Array(elements) => Some(elements),
            _ => None,
        })
    }

    fn opened(value: RawBsonRef<'a>) -> Result<Option<Node<'a>>> {
        Ok(match value {
            RawBsonRef::Document(document) => Some(Node::Document(fields_of(document)?)),
            RawBsonRef::Array(array) => {
                let document = RawDocument::from_bytes(array.as_bytes())?;
                Some(Node::Array(fields_of(document)?.into_iter().map(|field| field.node).collect()))
            }
            _ => None,
        })
    }

    fn opened_owned(value: &RawBson) -> Result<Option<Node<'a>>> {
        Ok(match value {
            RawBson::Document(document) => {
                let mut fields = Vec::new();
                for field in document.iter() {
                    let (name, value) = field?;
                    fields.push(Field { name: Cow::Owned(name.as_str().to_owned()), node: Node::Owned(value.into()) });
                }
                Some(Node::Document(fields))
            }
            RawBson::Array(array) => {
                let elements = array.into_iter().map(|value| Ok(Node::Owned(value?.into())));
                Some(Node::Array(elements.collect::<Result<Vec<_>>>()?))
            }
            _ => None,
        })
    }

    /// Appends type, name and value to a document's bytes.
    fn write(&self, name: &str, out: &mut Vec<u8>) -> Result<()> {
        match self {
            Node::Untouched { element, bytes } => {
                write_head(element.element_type(), name, out)?;
                out.extend_from_slice(bytes);
            }
            Node::Raw(value) => write_value(*value, name, out)?,
            Node::Owned(value) => write_value(value.as_raw_bson_ref(), name, out)?,
            Node::Document(fields) => {
                write_head(ElementType::EmbeddedDocument, name, out)?;
                write_fields(fields.iter().map(|field| (Cow::Borrowed(&*field.name), &field.node)), out)?;
            }
            Node::Array(elements) => {
                write_head(ElementType::Array, name, out)?;
                write_elements(elements, out)?;
            }
        }
        Ok(())
    }
}

/// The fields of a document, untouched.
pub(crate) fn fields_of(document: &RawDocument) -> Result<Vec<Field<'_>>> {
    let bytes = document.as_bytes();
    let mut at = 4;
    let mut fields = Vec::new();
    for element in document.iter_elements() {
        let element = element?;
        let name = element.key().as_str();
        let start = at + 1 + name.len() + 1;
        at = start + element.size();
        let value =
            bytes.get(start..at).ok_or_else(|| Error::new(Code::INVALID_BSON, "a value passes its document"))?;
        fields.push(Field { name: Cow::Borrowed(name), node: Node::Untouched { element, bytes: value } });
    }
    Ok(fields)
}

/// The document that an opened document stands for.
pub(crate) fn document_of(fields: &[Field<'_>]) -> Result<RawDocumentBuf> {
    Ok(RawDocumentBuf::from_bytes(document_bytes(fields)?)?)
}

fn document_bytes(fields: &[Field<'_>]) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    write_fields(fields.iter().map(|field| (Cow::Borrowed(&*field.name), &field.node)), &mut out)?;
    Ok(out)
}

fn array_bytes(elements: &[Node<'_>]) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    write_elements(elements, &mut out)?;
    Ok(out)
}

fn array_from_document(document: RawDocumentBuf) -> bson::RawArrayBuf {
    let mut array = bson::RawArrayBuf::new();
    for (_, value) in document.iter().flatten() {
        array.push(value);
    }
    array
}

fn write_elements(elements: &[Node<'_>], out: &mut Vec<u8>) -> Result<()> {
    write_fields(elements.iter().enumerate().map(|(index, node)| (Cow::Owned(index.to_string()), node)), out)
}

fn write_fields<'n, 'a: 'n>(
    fields: impl Iterator<Item = (Cow<'n, str>, &'n Node<'a>)>,
    out: &mut Vec<u8>,
) -> Result<()> {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    for (name, node) in fields {
        node.write(&name, out)?;
    }
    out.push(0);
    let length = i32::try_from(out.len() - start)
        .map_err(|_| Error::new(Code::BSON_OBJECT_TOO_LARGE, "the document would exceed 2 GiB"))?;
    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
    Ok(())
}

fn write_head(kind: ElementType, name: &str, out: &mut Vec<u8>) -> Result<()> {
    if name.as_bytes().contains(&0) {
        return Err(Error::bad_value("a field name may not contain a null byte"));
    }
    out.push(kind as u8);
    out.extend_from_slice(name.as_bytes());
    out.push(0);
    Ok(())
}

fn write_value(value: RawBsonRef<'_>, name: &str, out: &mut Vec<u8>) -> Result<()> {
    write_head(value.element_type(), name, out)?;
    match value {
        RawBsonRef::Document(document) => out.extend_from_slice(document.as_bytes()),
        RawBsonRef::Array(array) => out.extend_from_slice(array.as_bytes()),
        scalar => {
            const NAME: &CStr = cstr!("");
            const HEAD: usize = 4 + 1 + 1;
            let mut scratch = RawDocumentBuf::new();
            scratch.append(NAME, scalar);
            let bytes = scratch.as_bytes();
            out.extend_from_slice(&bytes[HEAD..bytes.len() - 1]);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::rawdoc;

    #[test]
    fn an_opened_document_writes_the_same_bytes() {
        let document = rawdoc! {
            "_id": 1, "text": "å", "nested": { "a": [1, 2.5, { "b": true }], "n": null }, "oid": bson::oid::ObjectId::new(),
            "date": bson::DateTime::now(), "empty": {}, "none": []
        };
        let mut fields = fields_of(&document).unwrap();
        assert_eq!(document_of(&fields).unwrap(), document);
        for field in &mut fields {
            if let Opened::Document(inner) = field.node.open().unwrap() {
                for field in inner {
                    field.node.open().unwrap();
                }
            }
        }
        assert_eq!(document_of(&fields).unwrap(), document);
        let values = fields.iter().map(|field| field.node.value().unwrap().into_owned()).collect::<Vec<_>>();
        let rewritten = fields
            .iter()
            .zip(&values)
            .map(|(field, value)| Field { name: field.name.clone(), node: Node::Raw(value.get().unwrap()) });
        assert_eq!(document_of(&rewritten.collect::<Vec<_>>()).unwrap(), document);
    }
}
