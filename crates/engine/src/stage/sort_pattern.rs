//! An order of documents: `{field: 1 | -1 | {$meta: …}, …}`.

use crate::document::collation::Collator;
use crate::document::traverse::{Leaf, visit};
use crate::document::{FieldPath, Number, RawBsonRef, RawDocument, Row, Value, compare_values};
use crate::error::{Error, Result};
use crate::key::Key;
use std::cmp::Ordering;

/// The most fields of an order.
pub const MAX_SORT_FIELDS: usize = 32;

/// A parsed order.
#[derive(Clone, Debug, PartialEq)]
pub struct SortPattern {
    parts: Vec<SortPart>,
}

/// A part of an order.
#[derive(Clone, Debug, PartialEq)]
pub struct SortPart {
    /// The field; `None` for a random value, one for each row.
    pub path: Option<FieldPath>,
    /// Whether high values come first.
    pub descending: bool,
}

impl SortPattern {
    /// Parses the argument of `$sort`.
    ///
    /// # Errors
    /// `Location15974` to `Location15976`, `Location17312`, `Location31138`, and as [`FieldPath::parse`].
    pub fn parse(pattern: &RawDocument) -> Result<SortPattern> {
        let mut parts: Vec<SortPart> = Vec::new();
        for field in pattern {
            let (name, value) = field?;
            let name = name.as_str();
            let part = match value {
                RawBsonRef::Document(meta) => parse_meta(meta)?,
                value => {
                    let descending = direction(value)?;
                    SortPart { path: Some(parse_path(name)?), descending }
                }
            };
            if matches!(value, RawBsonRef::Document(_)) {
                parts.push(part);
                continue;
            }
            if parts.iter().any(|known| known.path == part.path) {
                return Err(Error::location(7472500, format!("duplicate field '{name}' in $sort")));
            }
            parts.push(part);
        }
        if parts.is_empty() {
            return Err(Error::location(15976, "$sort stage must have at least one sort key"));
        }
        if parts.iter().filter(|part| part.path.as_ref().is_some_and(|path| !path.as_str().is_empty())).count()
            > MAX_SORT_FIELDS
        {
            return Err(Error::location(13103, format!("too many compound keys: at most {MAX_SORT_FIELDS}")));
        }
        Ok(SortPattern { parts })
    }

    /// The order by one field.
    pub fn by(path: &str, descending: bool) -> SortPattern {
        SortPattern { parts: vec![SortPart { path: Some(FieldPath::unchecked(path)), descending }] }
    }

    /// The order by several fields.
    pub fn of(parts: Vec<SortPart>) -> SortPattern {
        SortPattern { parts }
    }

    /// The parts in order.
    pub fn parts(&self) -> &[SortPart] {
        &self.parts
    }

    /// The key of a row: bytes whose order is this order. `random` gives a number in `[0, 1)`.
    ///
    /// # Errors
    /// `BadValue` (2) for parallel arrays, `InvalidBSON` (22).
    pub fn key(&self, row: &Row, collator: Option<&Collator>, random: &dyn Fn() -> f64) -> Result<Vec<u8>> {
        let document = row.document();
        self.check_parallel(document)?;
        let mut key = Key::new();
        for part in &self.parts {
            match &part.path {
                Some(path) => {
                    let value = extreme(document, path.as_str(), part.descending, collator)?;
                    key.push(value, part.descending, collator)?;
                }
                None => key.push(RawBsonRef::Double(random()), part.descending, None)?,
            }
        }
        Ok(key.into_parts().0)
    }

    /// The values that a document is sorted by, one for each part.
    ///
    /// # Errors
    /// As [`SortPattern::key`].
    pub fn values<'a>(&self, document: &'a RawDocument, collator: Option<&Collator>) -> Result<Vec<RawBsonRef<'a>>> {
        self.check_parallel(document)?;
        let value = |part: &SortPart| match &part.path {
            Some(path) => extreme(document, path.as_str(), part.descending, collator),
            None => Ok(RawBsonRef::Null),
        };
        self.parts.iter().map(value).collect()
    }

    fn check_parallel(&self, document: &RawDocument) -> Result<()> {
        if self.parts.len() < 2 {
            return Ok(());
        }
        let mut known: Option<&str> = None;
        for part in &self.parts {
            let Some(path) = &part.path else { continue };
            let Some(array) = first_array(document, path.as_str())? else { continue };
            match known {
                Some(other) if other != array => {
                    return Err(Error::bad_value(format!(
                        "cannot sort with keys that are parallel arrays: '{other}' and '{array}'"
                    )));
                }
                _ => known = Some(array),
            }
        }
        Ok(())
    }
}

/// The beginning of the path that leads to an array, if one does.
fn first_array<'p>(document: &RawDocument, path: &'p str) -> Result<Option<&'p str>> {
    let mut value = RawBsonRef::Document(document);
    let mut end = 0;
    for part in path.split('.') {
        let RawBsonRef::Document(inner) = value else { return Ok(None) };
        let Some(next) = crate::document::get(inner, part)? else { return Ok(None) };
        end += part.len() + usize::from(end > 0);
        if matches!(next, RawBsonRef::Array(_)) {
            return Ok(Some(&path[..end]));
        }
        value = next;
    }
    Ok(None)
}

/// The value that stands for a path in an order: the lowest, or the highest, of an array's elements; null for a missing
/// one, undefined for an empty array.
fn extreme<'a>(
    document: &'a RawDocument,
    path: &str,
    descending: bool,
    collator: Option<&Collator>,
) -> Result<RawBsonRef<'a>> {
    if !path.contains('.') {
        match crate::document::get(document, path)? {
            None => return Ok(RawBsonRef::Null),
            Some(RawBsonRef::Array(array)) if array.is_empty() => return Ok(RawBsonRef::Undefined),
            Some(RawBsonRef::Array(_)) => {}
            Some(value) => return Ok(value),
        }
    }
    let mut best: Option<RawBsonRef<'a>> = None;
    visit(document, path, Leaf::Elements, &mut |value, _| {
        let value = value.unwrap_or(RawBsonRef::Null);
        let better = match best {
            None => true,
            Some(best) => {
                let order = compare_values(value, best, collator)?;
                if descending { order == Ordering::Greater } else { order == Ordering::Less }
            }
        };
        if better {
            best = Some(value);
        }
        Ok(false)
    })?;
    if let Some(best) = best {
        return Ok(best);
    }
    let shown = FieldPath::unchecked(path).evaluate(RawBsonRef::Document(document))?;
    Ok(match shown {
        Value::Borrowed(RawBsonRef::Array(_)) => RawBsonRef::Undefined,
        _ => RawBsonRef::Null,
    })
}

fn parse_path(name: &str) -> Result<FieldPath> {
    if name.starts_with('$') {
        return Err(Error::location(
            16410,
            format!(
                "FieldPath field names may not start with '$'. Consider using $getField or $setField. Found '{name}'."
            ),
        ));
    }
    FieldPath::parse(name)
}

/// Whether a direction is descending.
fn direction(value: RawBsonRef<'_>) -> Result<bool> {
    let Some(number) = Number::of(value) else {
        return Err(Error::location(
            15974,
            "Illegal key in $sort specification: $sort key ordering must be specified using a number or {$meta: 'text'}",
        ));
    };
    match number.to_i64_option() {
        1 => Ok(false),
        -1 => Ok(true),
        _ => Err(Error::location(15975, "$sort key ordering must be 1 (for ascending) or -1 (for descending)")),
    }
}

fn parse_meta(meta: &RawDocument) -> Result<SortPart> {
    let mut fields = meta.iter();
    let first = fields.next().transpose()?;
    let Some((name, value)) = first.filter(|(name, _)| name.as_str() == "$meta") else {
        return Err(Error::location(17312, "$meta is the only expression supported by $sort right now"));
    };
    let _ = name;
    if fields.next().is_some() {
        return Err(Error::failed_to_parse("Cannot have additional keys in a $meta sort specification"));
    }
    match value.as_str() {
        // No row has a score of a search: all are equal in it.
        Some("searchScore" | "vectorSearchScore" | "score" | "scoreDetails") => {
            Ok(SortPart { path: Some(FieldPath::unchecked("")), descending: true })
        }
        Some("randVal") => Ok(SortPart { path: None, descending: true }),
        Some(kind @ ("textScore" | "geoNearDistance")) => {
            Err(Error::location(40218, format!("query requires {kind} metadata, but it is not available")))
        }
        _ => Err(Error::location(31138, "Illegal $meta sort: only randVal is available here")),
    }
}
