//! Reading and changing values at paths and places.

use super::effect::{Place, Step};
use bson::{Bson, Document, RawBson, RawBsonRef, RawDocument};
use engine::document::{Value, evaluate_at};
use engine::{Error, Result};

/// What stands at a path; arrays on the way are mapped over.
pub(crate) fn at<'d>(document: &'d RawDocument, path: &str) -> Result<Value<'d>> {
    evaluate_at(RawBsonRef::Document(document), path)
}

/// What stands at a path, owned; `None` where nothing does.
pub(crate) fn owned(document: &RawDocument, path: &str) -> Result<Option<RawBson>> {
    Ok(at(document, path)?.get().map(RawBson::from))
}

/// What stands at a path, if it can be an id that refers to something.
pub(crate) fn id_at(document: &RawDocument, path: &str) -> Result<Option<RawBson>> {
    Ok(owned(document, path)?.filter(|id| !matches!(id, RawBson::Null | RawBson::Undefined | RawBson::Array(_))))
}

/// A stored value as a tree.
pub(crate) fn tree(value: RawBson) -> Result<Bson> {
    Bson::try_from(value).map_err(|error| Error::internal(format!("a stored value is malformed: {error}")))
}

/// A stored document as a tree.
pub(crate) fn document(raw: &RawDocument) -> Result<Document> {
    Document::try_from(raw).map_err(|error| Error::internal(format!("a stored document is malformed: {error}")))
}

/// Sets or removes the value at a place, making sub-documents on the way; what is no document stays.
pub(crate) fn set(document: &mut Document, place: &Place, value: Option<Bson>) {
    let Some((Step::Name(first), rest)) = place.0.split_first() else { return };
    if rest.is_empty() {
        match value {
            Some(value) => {
                document.insert(first.clone(), value);
            }
            None => {
                document.remove(first);
            }
        }
        return;
    }
    if value.is_none() && !document.contains_key(first) {
        return;
    }
    let next = document.entry(first.clone()).or_insert_with(|| Bson::Document(Document::new()));
    set_in(next, rest, value);
}

fn set_in(target: &mut Bson, steps: &[Step], value: Option<Bson>) {
    match (target, steps.split_first()) {
        (Bson::Document(document), Some(_)) => set(document, &Place(steps.to_vec()), value),
        (Bson::Array(array), Some((Step::Index(index), rest))) => {
            if let Some(element) = array.get_mut(*index) {
                match (rest.is_empty(), value) {
                    (true, Some(value)) => *element = value,
                    (true, None) => {}
                    (false, value) => set_in(element, rest, value),
                }
            }
        }
        _ => {}
    }
}

/// What stands at a place.
pub(crate) fn get<'d>(document: &'d Document, place: &Place) -> Option<&'d Bson> {
    let (Step::Name(first), rest) = place.0.split_first()? else { return None };
    rest.iter().try_fold(document.get(first)?, |value, step| match (value, step) {
        (Bson::Document(document), Step::Name(name)) => document.get(name),
        (Bson::Array(array), Step::Index(index)) => array.get(*index),
        _ => None,
    })
}

/// Puts a source's values into its copies in a document.
pub(super) fn copy_values(
    holder: &mut Document,
    spread: &super::effect::Spread,
    id: &RawBson,
    values: &[(String, Option<RawBson>)],
) -> Result<()> {
    let id = tree(id.clone())?;
    let values: Vec<(String, Option<Bson>)> = values
        .iter()
        .map(|(name, value)| Ok((name.clone(), value.clone().map(tree).transpose()?)))
        .collect::<Result<_>>()?;
    into_steps(holder, &spread.steps, &mut |place| {
        if place.get(&spread.reference) != Some(&id) {
            return;
        }
        for (name, value) in &values {
            let path = spread.name.as_ref().map_or(name.clone(), |inner| format!("{inner}.{name}"));
            set(place, &Place::default().path(&path), value.clone());
        }
    });
    Ok(())
}

/// Visits the sub-documents at the end of some steps.
fn into_steps(document: &mut Document, steps: &[(String, bool)], visit: &mut dyn FnMut(&mut Document)) {
    let Some(((name, _), rest)) = steps.split_first() else { return visit(document) };
    match document.get_mut(name) {
        Some(Bson::Document(inner)) => into_steps(inner, rest, visit),
        Some(Bson::Array(array)) => {
            for element in array {
                if let Bson::Document(inner) = element {
                    into_steps(inner, rest, visit);
                }
            }
        }
        _ => {}
    }
}
