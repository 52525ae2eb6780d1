//! What an update did, as change streams tell it: the difference of two documents.
//!
//! Documented at <https://www.mongodb.com/docs/manual/reference/change-events/update/>.

use crate::document::{RawArray, RawBson, RawBsonRef, RawDocument, append, get, with_room};
use crate::error::Result;
use crate::update::path::index;
use crate::update::set::identical;
use bson::raw::cstr;
use bson::{RawArrayBuf, RawDocumentBuf};

/// The difference between a document before and after an update.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Description {
    /// Dotted path and new value of each field that was set.
    pub updated: Vec<(String, RawBson)>,
    /// Dotted path of each field that was removed.
    pub removed: Vec<String>,
    /// Dotted path and new length of each array that was cut.
    pub truncated: Vec<(String, i32)>,
    /// The parts of each path whose dots or numbers could be read in two ways.
    pub disambiguated: Vec<(String, Vec<RawBson>)>,
}

/// Tells what changed between two versions of a document.
///
/// # Errors
/// `InvalidBSON` (22) when the bytes are malformed.
pub fn describe(before: &RawDocument, after: &RawDocument) -> Result<Description> {
    let mut description = Description::default();
    documents(before, after, &mut Vec::new(), &mut description)?;
    Ok(description)
}

impl Description {
    /// The `updateDescription` of a change event; `disambiguatedPaths` only where `expanded` events are asked for.
    ///
    /// # Errors
    /// `BadValue` (2) never in practice: names come from documents.
    pub fn to_document(&self, expanded: bool) -> Result<RawDocumentBuf> {
        let mut updated = RawDocumentBuf::new();
        for (path, value) in &self.updated {
            append(&mut updated, path, value.as_raw_bson_ref())?;
        }
        let mut removed = RawArrayBuf::new();
        self.removed.iter().for_each(|path| removed.push(path.as_str()));
        let mut truncated = RawArrayBuf::new();
        for (path, length) in &self.truncated {
            truncated.push(bson::rawdoc! { "field": path.as_str(), "newSize": *length });
        }
        let mut document = with_room(updated.as_bytes().len() + 100)?;
        document.append(cstr!("updatedFields"), &*updated);
        document.append(cstr!("removedFields"), &*removed);
        document.append(cstr!("truncatedArrays"), &*truncated);
        if expanded {
            let mut paths = RawDocumentBuf::new();
            for (path, parts) in &self.disambiguated {
                let mut array = RawArrayBuf::new();
                parts.iter().for_each(|part| array.push(part.as_raw_bson_ref()));
                append(&mut paths, path, RawBsonRef::Array(&array))?;
            }
            append(&mut document, "disambiguatedPaths", RawBsonRef::Document(&paths))?;
        }
        Ok(document)
    }
}

/// A part of a path: a field's name or an array position.
#[derive(Clone)]
enum Step<'a> {
    Name(&'a str),
    Position(usize),
}

fn documents<'a>(
    before: &'a RawDocument,
    after: &'a RawDocument,
    path: &mut Vec<Step<'a>>,
    into: &mut Description,
) -> Result<()> {
    // Most updates leave the fields in their places.
    let (mut olds, mut news) = (before.iter(), after.iter());
    let mut changed = Vec::new();
    let (old, new) = loop {
        let (old, new) = (olds.next().transpose()?, news.next().transpose()?);
        let (Some((name, old)), Some((same, new))) = (old, new) else { break (old, new) };
        if name != same {
            break (Some((name, old)), Some((same, new)));
        }
        if !identical(old, new) {
            changed.push((name.as_str(), old, new));
        }
    };
    for field in old.map(Ok).into_iter().chain(olds) {
        let (name, _) = field?;
        if get(after, name.as_str())?.is_none() {
            path.push(Step::Name(name.as_str()));
            let text = into.path(path);
            into.removed.push(text);
            path.pop();
        }
    }
    for (name, old, new) in changed {
        path.push(Step::Name(name));
        values(old, new, path, into)?;
        path.pop();
    }
    for field in new.map(Ok).into_iter().chain(news) {
        let (name, new) = field?;
        path.push(Step::Name(name.as_str()));
        match get(before, name.as_str())? {
            Some(old) => values(old, new, path, into)?,
            None => into.set(path, new),
        }
        path.pop();
    }
    Ok(())
}

fn values<'a>(
    old: RawBsonRef<'a>,
    new: RawBsonRef<'a>,
    path: &mut Vec<Step<'a>>,
    into: &mut Description,
) -> Result<()> {
    if identical(old, new) {
        return Ok(());
    }
    match (old, new) {
        (RawBsonRef::Document(old), RawBsonRef::Document(new)) if !old.is_empty() && !new.is_empty() => {
            documents(old, new, path, into)
        }
        (RawBsonRef::Array(old), RawBsonRef::Array(new)) if !old.is_empty() && !new.is_empty() => {
            arrays(old, new, path, into)
        }
        _ => {
            into.set(path, new);
            Ok(())
        }
    }
}

fn arrays<'a>(old: &'a RawArray, new: &'a RawArray, path: &mut Vec<Step<'a>>, into: &mut Description) -> Result<()> {
    let (mut olds, mut length) = (old.into_iter(), 0);
    for (position, new) in new.into_iter().enumerate() {
        path.push(Step::Position(position));
        match olds.next() {
            Some(old) => values(old?, new?, path, into)?,
            None => into.set(path, new?),
        }
        path.pop();
        length = position + 1;
    }
    if olds.next().is_some() {
        let text = into.path(path);
        into.truncated.push((text, i32::try_from(length).unwrap_or(i32::MAX)));
    }
    Ok(())
}

impl Description {
    fn set(&mut self, path: &[Step<'_>], value: RawBsonRef<'_>) {
        let text = self.path(path);
        self.updated.push((text, value.into()));
    }

    /// The dotted path; notes its parts when a field's name could be read as several or as a position.
    fn path(&mut self, path: &[Step<'_>]) -> String {
        let mut text = String::new();
        let mut ambiguous = false;
        for step in path {
            if !text.is_empty() {
                text.push('.');
            }
            match step {
                Step::Name(name) => {
                    ambiguous |= name.contains('.') || index(name).is_some();
                    text.push_str(name);
                }
                Step::Position(position) => text.push_str(&position.to_string()),
            }
        }
        if ambiguous {
            let part = |step: &Step<'_>| match step {
                Step::Name(name) => RawBson::String((*name).to_owned()),
                Step::Position(position) => RawBson::Int32(i32::try_from(*position).unwrap_or(i32::MAX)),
            };
            self.disambiguated.push((text.clone(), path.iter().map(part).collect()));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::rawdoc;

    fn description(before: RawDocumentBuf, after: RawDocumentBuf) -> RawDocumentBuf {
        describe(&before, &after).unwrap().to_document(true).unwrap()
    }

    #[test]
    fn fields_set_removed_and_changed_deep_inside() {
        let told = description(
            rawdoc! { "_id": 1, "a": 1, "b": { "c": 1, "d": 2 }, "e": [1, 2, { "f": 1 }], "gone": true },
            rawdoc! { "_id": 1, "a": 1.5, "b": { "c": 1, "x": 3 }, "e": [1, 2, { "f": 2 }, 4], "new": [] },
        );
        assert_eq!(
            told,
            rawdoc! {
                "updatedFields": { "a": 1.5, "b.x": 3, "e.2.f": 2, "e.3": 4, "new": [] },
                "removedFields": ["gone", "b.d"],
                "truncatedArrays": [],
                "disambiguatedPaths": {}
            }
        );
    }

    #[test]
    fn fields_that_moved_are_found_wherever_they_are() {
        let told = description(
            rawdoc! { "_id": 1, "a": 1, "b": 2, "c": 3, "d": { "x": 1, "y": 2 } },
            rawdoc! { "_id": 1, "b": 2, "a": 5, "d": { "y": 2, "x": 1 }, "e": 7, "c": 3 },
        );
        let updated = told.get_document("updatedFields").unwrap();
        assert_eq!(updated, &*rawdoc! { "a": 5, "e": 7 }, "order alone is no change of a field");
        assert!(told.get_array("removedFields").unwrap().is_empty());
        let shorter = description(rawdoc! { "a": 1, "b": 2, "c": 3 }, rawdoc! { "a": 1 });
        assert_eq!(shorter.get_array("removedFields").unwrap().into_iter().count(), 2);
    }

    #[test]
    fn cut_arrays_and_ambiguous_names() {
        let told = description(
            rawdoc! { "a": [1, 2, 3], "b.c": 1, "n": { "0": [5] } },
            rawdoc! { "a": [1, 9], "b.c": 2, "n": { "0": [6] } },
        );
        assert_eq!(
            told,
            rawdoc! {
                "updatedFields": { "a.1": 9, "b.c": 2, "n.0.0": 6 },
                "removedFields": [],
                "truncatedArrays": [{ "field": "a", "newSize": 2 }],
                "disambiguatedPaths": { "b.c": ["b.c"], "n.0.0": ["n", "0", 0] }
            }
        );
    }
}
