//! The image of a document that is being written: its bytes, or a tree once something deeper than bytes can say is changed.
//!
//! Most effects on a document itself set a few fields at its top or one level below. That is a copy of its bytes with a
//! piece put in; taking the whole document apart and putting it together again costs several times as much.

use super::compile;
use super::effect::{Fill, Place, Step};
use super::value::{document, get, owned, set, tree};
use bson::{Document, RawBson, RawBsonRef, RawDocument, RawDocumentBuf};
use engine::Result;
use engine::document::{edit, get as field};
use std::borrow::Cow;

/// A document that is being written.
pub(super) enum Image<'d> {
    /// As bytes.
    Bytes(Cow<'d, RawDocument>),
    /// Taken apart.
    Tree(Document),
}

impl<'d> Image<'d> {
    /// An image that is a document so far.
    pub(super) fn of(document: &'d RawDocument) -> Image<'d> {
        Image::Bytes(Cow::Borrowed(document))
    }

    /// Takes it apart.
    ///
    /// # Errors
    /// Malformed bytes.
    pub(super) fn tree(&mut self) -> Result<&mut Document> {
        if let Image::Bytes(bytes) = self {
            *self = Image::Tree(document(bytes)?);
        }
        match self {
            Image::Tree(tree) => Ok(tree),
            Image::Bytes(_) => unreachable!("it was taken apart above"),
        }
    }

    /// Its bytes.
    ///
    /// # Errors
    /// None in practice: what is in it came from documents.
    pub(super) fn into_bytes(self) -> Result<RawDocumentBuf> {
        match self {
            Image::Bytes(bytes) => Ok(bytes.into_owned()),
            Image::Tree(tree) => compile::raw(&tree),
        }
    }

    /// Sets or removes a top-level field.
    ///
    /// # Errors
    /// Malformed bytes.
    pub(super) fn set_field(&mut self, name: &str, value: Option<RawBson>) -> Result<()> {
        match self {
            Image::Bytes(bytes) if !name.contains('.') => {
                let value = value.as_ref().map(RawBson::as_raw_bson_ref);
                *bytes = Cow::Owned(edit::set(bytes, name, value)?);
            }
            _ => set(self.tree()?, &Place::top(name), value.map(tree).transpose()?),
        }
        Ok(())
    }

    /// Sets or removes the value at a place.
    ///
    /// # Errors
    /// Malformed bytes.
    pub(super) fn set(&mut self, place: &Place, value: Option<RawBson>) -> Result<()> {
        match &place.0[..] {
            [Step::Name(name)] => self.set_field(name, value),
            _ => {
                set(self.tree()?, place, value.map(tree).transpose()?);
                Ok(())
            }
        }
    }

    /// Takes a copy from its source.
    ///
    /// # Errors
    /// Malformed bytes.
    pub(super) fn fill(&mut self, fill: &Fill, source: &RawDocument) -> Result<()> {
        let is_flat = fill.copy.fields.iter().all(|(name, _)| !name.contains('.'));
        match (&mut *self, &fill.place.0[..]) {
            (Image::Bytes(bytes), []) if is_flat => {
                if let Some(filled) = filled(bytes, fill, source)? {
                    *bytes = Cow::Owned(filled);
                }
            }
            (Image::Bytes(bytes), [Step::Name(name)]) if is_flat => {
                let empty = RawDocumentBuf::new();
                let inner = match field(bytes, name)? {
                    Some(RawBsonRef::Document(inner)) => inner,
                    None => &empty,
                    // What is no document stays.
                    Some(_) => return Ok(()),
                };
                if let Some(inner) = filled(inner, fill, source)? {
                    *bytes = Cow::Owned(edit::set(bytes, name, Some(RawBsonRef::Document(&inner)))?);
                }
            }
            _ => fill_tree(self.tree()?, fill, source)?,
        }
        Ok(())
    }
}

/// A document with the fields of a copy in it; `None` if nothing changes.
fn filled(holder: &RawDocument, fill: &Fill, source: &RawDocument) -> Result<Option<RawDocumentBuf>> {
    let mut changed: Option<RawDocumentBuf> = None;
    for (name, path) in &fill.copy.fields {
        let current = changed.as_deref().unwrap_or(holder);
        let held = field(current, name)?;
        if held.is_some() && !fill.replace {
            continue;
        }
        let value = super::value::at(source, path)?;
        if held.is_some() || value.get().is_some() {
            changed = Some(edit::set(current, name, value.get())?);
        }
    }
    Ok(changed)
}

/// The same for a document that is taken apart.
pub(super) fn fill_tree(changed: &mut Document, fill: &Fill, source: &RawDocument) -> Result<()> {
    for (name, path) in &fill.copy.fields {
        let place = fill.place.path(name);
        if fill.replace || get(changed, &place).is_none() {
            set(changed, &place, owned(source, path)?.map(tree).transpose()?);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::rawdoc;

    fn fill(place: Place, fields: &[(&str, &str)], replace: bool) -> Fill {
        let fields = fields.iter().map(|(name, path)| ((*name).to_owned(), (*path).to_owned())).collect();
        let copy = super::super::CopyIn {
            declaration: "order.buyer".to_owned(),
            fill: None,
            steps: Vec::new(),
            reference: "userId".to_owned(),
            name: None,
            source: "users".to_owned(),
            fields,
        };
        Fill { copy: std::sync::Arc::new(copy), id: RawBson::Int32(1), place, replace }
    }

    /// Bytes and tree agree, whatever is there already.
    #[test]
    fn a_copy_is_the_same_in_bytes_and_in_a_tree() {
        let source = rawdoc! { "_id": 1, "name": "Ann", "home": { "city": "Lyon" } };
        let targets = [
            rawdoc! { "_id": 7 },
            rawdoc! { "_id": 7, "buyer": { "name": "old", "x": 1 }, "z": 2 },
            rawdoc! { "_id": 7, "buyer": 5, "name": "n" },
            rawdoc! { "_id": 7, "buyer": {}, "city": "c" },
        ];
        let places = [Place::default(), Place::top("buyer"), Place::top("buyer").path("inner")];
        let fields: [&[(&str, &str)]; 3] =
            [&[("name", "name"), ("city", "home.city")], &[("none", "none"), ("name", "none")], &[("a.b", "name")]];
        for target in &targets {
            for place in &places {
                for fields in fields {
                    for replace in [true, false] {
                        let fill = fill(place.clone(), fields, replace);
                        let mut image = Image::of(target);
                        image.fill(&fill, &source).unwrap();
                        let mut tree = document(target).unwrap();
                        fill_tree(&mut tree, &fill, &source).unwrap();
                        assert_eq!(document(&image.into_bytes().unwrap()).unwrap(), tree, "{target:?} {fill:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn fields_are_set_and_removed_at_places() {
        let before = rawdoc! { "_id": 7, "a": 1, "list": [{ "b": 2 }] };
        let mut image = Image::of(&before);
        image.set(&Place::top("a"), Some(RawBson::Int64(2))).unwrap();
        image.set(&Place::top("c"), Some(RawBson::Boolean(true))).unwrap();
        assert!(matches!(image, Image::Bytes(_)));
        let element = Place::top("list").then(Step::Index(0)).then(Step::Name("b".to_owned()));
        image.set(&element, Some(RawBson::Int32(3))).unwrap();
        image.set(&Place::top("a"), None).unwrap();
        assert_eq!(image.into_bytes().unwrap(), rawdoc! { "_id": 7, "list": [{ "b": 3 }], "c": true });
    }
}
