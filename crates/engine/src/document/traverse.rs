//! How a dotted path finds values when documents are matched, indexed or asked for distinct values.
//!
//! A part of the path names a field. At an array, the rest of the path is looked for in each element that is a document,
//! and a part made of digits is a position too: both readings are followed, the name first. Arrays within arrays are not
//! entered, but by a position. Where the path ends at an array, [`Leaf`] says what is shown. Nothing is allocated.
//!
//! A path that leads to nothing shows one missing value (`None`): the field of a document that is not there, or a step
//! into what is neither document nor array. An array none of whose elements the path enters shows nothing at all, which
//! is why `{"a.b": null}` does not match `{a: [1, 2]}`.

use crate::document::get;
use crate::error::Result;
use bson::{RawArray, RawBsonRef, RawDocument};

/// What a path that ends at an array shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Leaf {
    /// Each element, then the array itself: what most predicates see.
    ElementsAndArray,
    /// Each element, without the array: keys of a multikey index, distinct values.
    Elements,
    /// The array alone: `$size`, `$elemMatch`, `$exists`.
    Array,
}

/// Shows `see` the values at a path until it says true; tells whether it did.
///
/// The second argument of `see` is the position in the outermost array that was gone through on the way, unless the
/// path named that position itself: what the positional `$` stands for.
///
/// # Errors
/// `InvalidBSON` (22) when the bytes are malformed, and what `see` returns.
pub fn visit<'a, F>(document: &'a RawDocument, path: &str, leaf: Leaf, see: &mut F) -> Result<bool>
where
    F: FnMut(Option<RawBsonRef<'a>>, Option<usize>) -> Result<bool>,
{
    in_document(document, path, leaf, None, see)
}

/// The same as [`visit`] for the rest of a path behind a value; `None` stands for no rest.
///
/// # Errors
/// As [`visit`].
pub fn visit_value<'a, F>(value: RawBsonRef<'a>, rest: Option<&str>, leaf: Leaf, see: &mut F) -> Result<bool>
where
    F: FnMut(Option<RawBsonRef<'a>>, Option<usize>) -> Result<bool>,
{
    at_value(value, rest, leaf, None, see)
}

fn split(path: &str) -> (&str, Option<&str>) {
    path.split_once('.').map_or((path, None), |(first, rest)| (first, Some(rest)))
}

fn in_document<'a, F>(
    document: &'a RawDocument,
    path: &str,
    leaf: Leaf,
    position: Option<usize>,
    see: &mut F,
) -> Result<bool>
where
    F: FnMut(Option<RawBsonRef<'a>>, Option<usize>) -> Result<bool>,
{
    let (name, rest) = split(path);
    match get(document, name)? {
        Some(value) => at_value(value, rest, leaf, position, see),
        None => see(None, position),
    }
}

fn at_value<'a, F>(
    value: RawBsonRef<'a>,
    rest: Option<&str>,
    leaf: Leaf,
    position: Option<usize>,
    see: &mut F,
) -> Result<bool>
where
    F: FnMut(Option<RawBsonRef<'a>>, Option<usize>) -> Result<bool>,
{
    match (value, rest) {
        (RawBsonRef::Array(array), None) => at_leaf_array(array, leaf, position, see),
        (RawBsonRef::Array(array), Some(rest)) => in_array(array, rest, leaf, position, see),
        (RawBsonRef::Document(document), Some(rest)) => in_document(document, rest, leaf, position, see),
        (_, Some(_)) => see(None, position),
        (value, None) => see(Some(value), position),
    }
}

fn at_leaf_array<'a, F>(array: &'a RawArray, leaf: Leaf, position: Option<usize>, see: &mut F) -> Result<bool>
where
    F: FnMut(Option<RawBsonRef<'a>>, Option<usize>) -> Result<bool>,
{
    if leaf != Leaf::Array {
        for (index, element) in array.into_iter().enumerate() {
            if see(Some(element?), position.or(Some(index)))? {
                return Ok(true);
            }
        }
    }
    Ok(leaf != Leaf::Elements && see(Some(RawBsonRef::Array(array)), position)?)
}

fn in_array<'a, F>(array: &'a RawArray, path: &str, leaf: Leaf, position: Option<usize>, see: &mut F) -> Result<bool>
where
    F: FnMut(Option<RawBsonRef<'a>>, Option<usize>) -> Result<bool>,
{
    let (part, rest) = split(path);
    let wanted = array_position(part);
    for (index, element) in array.into_iter().enumerate() {
        let element = element?;
        if let RawBsonRef::Document(document) = element
            && in_document(document, path, leaf, position.or(Some(index)), see)?
        {
            return Ok(true);
        }
        if wanted != Some(index) {
            continue;
        }
        let done = match (element, rest) {
            (value, None) => see(Some(value), position)?,
            (RawBsonRef::Array(array), Some(rest)) => in_array(array, rest, leaf, position, see)?,
            (RawBsonRef::Document(document), Some(rest)) => in_document(document, rest, leaf, position, see)?,
            _ => false,
        };
        if done {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The position that a part of a path names: digits without a leading zero.
pub fn array_position(part: &str) -> Option<usize> {
    let canonical = part == "0" || (!part.starts_with('0') && part.bytes().all(|byte| byte.is_ascii_digit()));
    if canonical { part.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::rawdoc;

    /// What a path shows, as text: values with their positions, `-` for a missing value.
    fn shown(document: &RawDocument, path: &str, leaf: Leaf) -> Vec<String> {
        let mut seen = Vec::new();
        visit(document, path, leaf, &mut |value, position| {
            let value = value
                .map_or("-".to_owned(), |value| bson::Bson::try_from(bson::RawBson::from(value)).unwrap().to_string());
            seen.push(position.map_or(value.clone(), |position| format!("{value} at {position}")));
            Ok(false)
        })
        .unwrap();
        seen
    }

    #[test]
    fn arrays_at_the_end() {
        let document = rawdoc! { "a": [1, [2]], "e": [] };
        assert_eq!(shown(&document, "a", Leaf::ElementsAndArray), ["1 at 0", "[2] at 1", "[1, [2]]"]);
        assert_eq!(shown(&document, "a", Leaf::Elements), ["1 at 0", "[2] at 1"]);
        assert_eq!(shown(&document, "a", Leaf::Array), ["[1, [2]]"]);
        assert_eq!(shown(&document, "e", Leaf::ElementsAndArray), ["[]"]);
    }

    #[test]
    fn documents_in_arrays_are_entered() {
        let document = rawdoc! { "a": [{ "b": 1 }, 7, { "c": 2 }, [{ "b": 3 }], { "b": [4, 5] }] };
        assert_eq!(
            shown(&document, "a.b", Leaf::ElementsAndArray),
            ["1 at 0", "- at 2", "4 at 4", "5 at 4", "[4, 5] at 4"]
        );
        assert!(shown(&rawdoc! { "a": [1, 2] }, "a.b", Leaf::ElementsAndArray).is_empty());
        assert_eq!(shown(&rawdoc! { "a": 1 }, "a.b", Leaf::ElementsAndArray), ["-"]);
        assert_eq!(shown(&rawdoc! {}, "a.b", Leaf::ElementsAndArray), ["-"]);
    }

    #[test]
    fn digits_are_names_and_positions() {
        assert_eq!(shown(&rawdoc! { "a": [5, 6] }, "a.1", Leaf::ElementsAndArray), ["6"]);
        assert_eq!(shown(&rawdoc! { "a": [5, [2, 4]] }, "a.1", Leaf::ElementsAndArray), ["[2, 4]"]);
        let named = rawdoc! { "a": [5, { "1": 4 }] };
        assert_eq!(shown(&named, "a.1", Leaf::ElementsAndArray), ["4 at 1", "{ \"1\": 4 }"]);
        assert_eq!(shown(&rawdoc! { "a": [[{ "b": 1 }]] }, "a.0.b", Leaf::ElementsAndArray), ["1 at 0"]);
        assert_eq!(
            shown(&rawdoc! { "a": [{ "b": [1] }] }, "a.0.b", Leaf::ElementsAndArray),
            ["- at 0", "1 at 0", "[1]"]
        );
        assert_eq!(shown(&rawdoc! { "a": { "0": 1 } }, "a.0", Leaf::ElementsAndArray), ["1"]);
        assert!(shown(&rawdoc! { "a": [5, 6] }, "a.01", Leaf::ElementsAndArray).is_empty());
    }
}
