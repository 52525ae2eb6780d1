//! `{$unwind: "$path"}` or `{$unwind: {path, includeArrayIndex, preserveNullAndEmptyArrays}}`: a row for each element of an
//! array.
//!
//! A value that is no array counts as an array of one. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/aggregation/unwind/>.

use crate::document::{FieldPath, Row, edit, get, type_name};
use crate::error::{Error, Result};
use crate::stage::{ParseContext, RowSource, Rows, Stage, StageContext, StageKind};
use bson::{RawBson, RawBsonRef, RawDocument};
use std::sync::Arc;

pub(super) const STAGE: StageKind = StageKind::new("$unwind", parse);

#[derive(Clone, Debug)]
struct Unwind {
    path: FieldPath,
    index: Option<FieldPath>,
    preserve: bool,
}

fn parse(argument: RawBsonRef<'_>, _: &mut ParseContext<'_>) -> Result<Vec<Arc<dyn Stage>>> {
    let (mut path, mut index, mut preserve) = (None, None, false);
    match argument {
        RawBsonRef::String(text) => path = Some(text),
        RawBsonRef::Document(options) => {
            for field in options {
                let (name, value) = field?;
                match (name.as_str(), value) {
                    ("path", RawBsonRef::String(text)) => path = Some(text),
                    ("path", other) => {
                        let kind = type_name(other);
                        return Err(Error::location(
                            28808,
                            format!("expected a string as the path for $unwind stage, got {kind}"),
                        ));
                    }
                    ("preserveNullAndEmptyArrays", RawBsonRef::Boolean(value)) => preserve = value,
                    ("preserveNullAndEmptyArrays", other) => {
                        return Err(Error::location(
                            28809,
                            format!(
                                "expected a boolean for the preserveNullAndEmptyArrays option to $unwind stage, got {}",
                                type_name(other)
                            ),
                        ));
                    }
                    ("includeArrayIndex", RawBsonRef::String(name)) if !name.is_empty() => {
                        index = Some(parse_index(name)?)
                    }
                    ("includeArrayIndex", other) => {
                        return Err(Error::location(
                            28810,
                            format!(
                                "expected a non-empty string for the includeArrayIndex option to $unwind stage, got {}",
                                type_name(other)
                            ),
                        ));
                    }
                    (other, _) => {
                        return Err(Error::location(28811, format!("unrecognized option to $unwind stage: {other}")));
                    }
                }
            }
        }
        other => {
            return Err(Error::location(
                15981,
                format!(
                    "expected either a string or an object as specification for $unwind stage, got {}",
                    type_name(other)
                ),
            ));
        }
    }
    let path = path.filter(|path| !path.is_empty());
    let path = path.ok_or_else(|| Error::location(28812, "no path specified to $unwind stage"))?;
    let path = path.strip_prefix('$').ok_or_else(|| {
        Error::location(28818, format!("path option to $unwind stage should be prefixed with a '$': {path}"))
    })?;
    if path.contains('\0') {
        return Err(Error::location(16419, "field path must not contain embedded null characters"));
    }
    Ok(vec![Arc::new(Unwind { path: FieldPath::parse(path)?, index, preserve })])
}

fn parse_index(name: &str) -> Result<FieldPath> {
    if name.starts_with('$') {
        return Err(Error::location(
            28822,
            format!("includeArrayIndex option to $unwind stage should not be prefixed with a '$': {name}"),
        ));
    }
    FieldPath::parse(name)
}

struct Unwinding {
    stage: Arc<Unwind>,
    input: Rows,
    current: Option<(Row, std::vec::IntoIter<RawBson>, i64)>,
}

/// The value at a path through documents alone.
fn value_at<'a>(document: &'a RawDocument, path: &FieldPath) -> Result<Option<RawBsonRef<'a>>> {
    let mut value = RawBsonRef::Document(document);
    for part in path.parts() {
        let RawBsonRef::Document(inner) = value else { return Ok(None) };
        match get(inner, part)? {
            Some(next) => value = next,
            None => return Ok(None),
        }
    }
    Ok(Some(value))
}

impl Unwinding {
    /// A row with one element, or without the field, in the array's place.
    fn row(&self, row: &Row, value: Option<RawBsonRef<'_>>, index: Option<i64>) -> Result<Row> {
        let mut document = edit::set(row.document(), self.stage.path.as_str(), value)?;
        if let Some(path) = &self.stage.index {
            let index = index.map_or(RawBsonRef::Null, RawBsonRef::Int64);
            document = edit::set(&document, path.as_str(), Some(index))?;
        }
        Ok(row.clone().with_document(document))
    }
}

impl RowSource for Unwinding {
    fn next(&mut self) -> Result<Option<Row>> {
        loop {
            if let Some((row, mut elements, index)) = self.current.take()
                && let Some(element) = elements.next()
            {
                let shown = self.row(&row, Some(element.as_raw_bson_ref()), Some(index))?;
                self.current = Some((row, elements, index + 1));
                return Ok(Some(shown));
            }
            let Some(row) = self.input.next()? else { return Ok(None) };
            match value_at(row.document(), &self.stage.path)? {
                Some(RawBsonRef::Array(array)) if !array.is_empty() => {
                    let elements = array.into_iter().map(|element| Ok(element?.into())).collect::<Result<Vec<_>>>()?;
                    self.current = Some((row, elements.into_iter(), 0));
                }
                Some(RawBsonRef::Array(_)) if self.stage.preserve => return Ok(Some(self.row(&row, None, None)?)),
                None | Some(RawBsonRef::Null | RawBsonRef::Undefined) if self.stage.preserve => {
                    let value = value_at(row.document(), &self.stage.path)?;
                    if self.stage.index.is_none() {
                        return Ok(Some(row));
                    }
                    return Ok(Some(self.row(&row, value, None)?));
                }
                None | Some(RawBsonRef::Array(_) | RawBsonRef::Null | RawBsonRef::Undefined) => {}
                Some(value) => {
                    if self.stage.index.is_none() {
                        return Ok(Some(row));
                    }
                    return Ok(Some(self.row(&row, Some(value), None)?));
                }
            }
        }
    }
}

impl Stage for Unwind {
    fn open(self: Arc<Self>, input: Rows, _: &Arc<StageContext>) -> Result<Rows> {
        Ok(Box::new(Unwinding { stage: self, input, current: None }))
    }

    fn unwinds(&self) -> Option<(&str, bool)> {
        self.index.is_none().then_some((self.path.as_str(), self.preserve))
    }
}
