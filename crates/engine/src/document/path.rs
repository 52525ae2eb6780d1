//! Dotted field paths.

use crate::document::{Value, get};
use crate::error::{Code, Error, Result};
use bson::{RawArrayBuf, RawBsonRef};

/// The most parts of a path.
const MAX_PARTS: usize = 200;

/// A parsed dotted path such as `items.price`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FieldPath {
    text: Box<str>,
}

impl FieldPath {
    /// Parses a path as expressions and projections take it.
    ///
    /// # Errors
    /// `Location40352`, `Location40353`, `Location15998`, `Location16410` for empty paths, trailing dots, empty parts and
    /// parts that begin with `$`.
    pub fn parse(text: &str) -> Result<FieldPath> {
        if text.is_empty() {
            return Err(Error::location(40352, "FieldPath cannot be constructed with empty string"));
        }
        if text.ends_with('.') {
            return Err(Error::location(40353, "FieldPath must not end with a '.'."));
        }
        if text.split('.').count() > MAX_PARTS {
            return Err(Error::new(Code::OVERFLOW, format!("FieldPath is too long: at most {MAX_PARTS} parts")));
        }
        for part in text.split('.') {
            if part.is_empty() {
                return Err(Error::location(15998, "FieldPath field names may not be empty strings."));
            }
            if part.contains('\0') {
                return Err(Error::location(16411, "FieldPath field names may not contain '\0'."));
            }
            if part.starts_with('$') && !matches!(part, "$id" | "$ref" | "$db") {
                return Err(Error::location(
                    16410,
                    format!(
                        "FieldPath field names may not start with '$'. Consider using $getField or $setField. Found '{part}'."
                    ),
                ));
            }
        }
        Ok(FieldPath::unchecked(text))
    }

    /// A path that is known to be well formed, or whose rules are its owner's.
    pub fn unchecked(text: &str) -> FieldPath {
        FieldPath { text: text.into() }
    }

    /// The path as written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Its parts in order.
    pub fn parts(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.text.split('.')
    }

    /// The first part.
    pub fn first(&self) -> &str {
        self.text.split('.').next().unwrap_or_default()
    }

    /// What an expression's `"$path"` gives: arrays on the way are mapped over, numbers are names, never positions.
    ///
    /// # Errors
    /// `InvalidBSON` (22) when the bytes are malformed.
    pub fn evaluate<'a>(&self, root: RawBsonRef<'a>) -> Result<Value<'a>> {
        walk(root, &self.text)
    }
}

impl std::fmt::Display for FieldPath {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

/// What stands at a path whose rules are its owner's, as [`FieldPath::evaluate`] tells it.
///
/// # Errors
/// `InvalidBSON` (22) when the bytes are malformed.
pub fn evaluate_at<'a>(root: RawBsonRef<'a>, path: &str) -> Result<Value<'a>> {
    walk(root, path)
}

fn walk<'a>(value: RawBsonRef<'a>, path: &str) -> Result<Value<'a>> {
    match value {
        RawBsonRef::Document(document) => {
            let (first, rest) = path.split_once('.').map_or((path, None), |(first, rest)| (first, Some(rest)));
            match (get(document, first)?, rest) {
                (None, _) => Ok(Value::Missing),
                (Some(value), None) => Ok(Value::Borrowed(value)),
                (Some(value), Some(rest)) => walk(value, rest),
            }
        }
        RawBsonRef::Array(array) => {
            let mut found = RawArrayBuf::new();
            for element in array {
                let element = element?;
                if matches!(element, RawBsonRef::Document(_))
                    && let Some(value) = walk(element, path)?.get()
                {
                    found.push(value);
                }
            }
            Ok(found.into())
        }
        _ => Ok(Value::Missing),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::rawdoc;

    #[test]
    fn arrays_on_the_way_are_mapped_over() {
        let document = rawdoc! { "items": [{ "price": 1 }, { "other": 2 }, { "price": 3 }], "a": { "b": 5 } };
        let root = RawBsonRef::Document(&document);
        let prices = FieldPath::parse("items.price").unwrap().evaluate(root).unwrap();
        let prices = prices.get().unwrap().as_array().unwrap();
        assert_eq!(prices.into_iter().map(|v| v.unwrap().as_i32().unwrap()).collect::<Vec<_>>(), [1, 3]);
        assert_eq!(FieldPath::parse("a.b").unwrap().evaluate(root).unwrap().get(), Some(RawBsonRef::Int32(5)));
        assert!(FieldPath::parse("a.x.y").unwrap().evaluate(root).unwrap().is_missing());
        assert!(
            FieldPath::parse("items.0").unwrap().evaluate(root).unwrap().get().unwrap().as_array().unwrap().is_empty()
        );
    }

    #[test]
    fn malformed_paths_are_refused() {
        for (text, code) in [("", 40352), ("a.", 40353), ("a..b", 15998), (".a", 15998), ("a.$b", 16410)] {
            assert_eq!(FieldPath::parse(text).unwrap_err().code.0, code, "{text}");
        }
    }
}
