//! Wildcard indexes: every path of a document with its value.
//!
//! A wildcard field is two fields of the stored key: the path as a string, then the value. Arrays are gone through without
//! naming positions; an array within an array, an empty document and an empty array are values of their own. `_id` is left
//! out unless the projection names it.

use super::keys::{Entry, Keys, push_field};
use super::{FieldKind, IndexSpec};
use crate::document::traverse::{Leaf, visit};
use crate::document::{Number, type_name};
use crate::error::{Error, Result};
use crate::key::Key;
use bson::{RawBsonRef, RawDocument};
use bytes::Bytes;
use std::collections::BTreeMap;

/// Which paths a wildcard index covers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WildcardScope {
    /// The path before `.$**`.
    root: Option<String>,
    /// Whether `paths` are covered or left out.
    includes: bool,
    paths: Vec<String>,
    id: bool,
}

impl WildcardScope {
    /// The scope of `$**` or of `root.$**`, with a projection.
    ///
    /// # Errors
    /// `FailedToParse` (9) for an empty projection, `Location31253` and `Location31254` for one that mixes including and
    /// excluding, `Location31249` and `Location31250` for paths within each other, `Location51271` for computed fields.
    pub fn parse(root: Option<&str>, projection: Option<&RawDocument>) -> Result<WildcardScope> {
        let root = root.map(str::to_owned);
        let Some(projection) = projection else {
            return Ok(WildcardScope { includes: false, paths: Vec::new(), id: root.is_some(), root });
        };
        if projection.is_empty() {
            return Err(Error::failed_to_parse("The 'wildcardProjection' field can't be an empty object"));
        }
        let mut given = Vec::new();
        flatten("", projection, &mut given)?;
        let id = given.iter().find(|(path, _)| path == "_id").map(|(_, include)| *include);
        given.retain(|(path, _)| path != "_id");
        let includes = given.first().map_or(id.unwrap_or(false), |(_, include)| *include);
        let mut paths: Vec<String> = Vec::new();
        for (path, _) in &given {
            if let Some(other) = paths.iter().find(|other| path == *other || is_below(path, other)) {
                return Err(Error::location(31249, format!("Path collision at {path} remaining portion of {other}")));
            }
            if let Some(other) = paths.iter().find(|other| is_below(other, path)) {
                return Err(Error::location(31250, format!("Path collision at {path}: {other} is below it")));
            }
            paths.push(path.clone());
        }
        if let Some((path, include)) = given.iter().find(|(_, include)| *include != includes) {
            return Err(if *include {
                Error::location(31253, format!("Cannot do inclusion on field {path} in exclusion projection"))
            } else {
                Error::location(31254, format!("Cannot do exclusion on field {path} in inclusion projection"))
            });
        }
        Ok(WildcardScope { root, includes, paths, id: id.unwrap_or(false) })
    }

    /// Whether a value at a path is indexed.
    pub fn covers(&self, path: &str) -> bool {
        if let Some(root) = &self.root {
            return path == root || is_below(path, root);
        }
        if path == "_id" || is_below(path, "_id") {
            return self.id;
        }
        let named = self.paths.iter().any(|other| path == other || is_below(path, other));
        named == self.includes
    }

    /// Whether all values below a path are indexed.
    pub fn covers_below(&self, path: &str) -> bool {
        self.covers(path) && (self.includes || !self.paths.iter().any(|other| is_below(other, path)))
    }

    /// Whether a value at or below a path is indexed.
    pub fn reaches(&self, path: &str) -> bool {
        if self.covers(path) {
            return true;
        }
        let below = |other: &String| is_below(other, path);
        self.root.as_ref().is_some_and(below) || (self.includes && self.paths.iter().any(below))
    }

    /// What two wildcard indexes are compared by beside their key patterns.
    pub(super) fn signature(&self) -> (bool, Vec<String>, bool) {
        let mut paths = self.paths.clone();
        paths.sort();
        (self.includes, paths, self.id)
    }
}

fn is_below(path: &str, ancestor: &str) -> bool {
    path.strip_prefix(ancestor).is_some_and(|rest| rest.starts_with('.'))
}

fn flatten(prefix: &str, projection: &RawDocument, out: &mut Vec<(String, bool)>) -> Result<()> {
    for field in projection {
        let (name, value) = field?;
        let path = join(prefix, name.as_str());
        match value {
            RawBsonRef::Boolean(include) => out.push((path, include)),
            RawBsonRef::Document(inner) if inner.is_empty() => {
                return Err(Error::location(51270, "An empty sub-projection is not a valid value"));
            }
            RawBsonRef::Document(inner) => flatten(&path, inner, out)?,
            value => match Number::of(value) {
                Some(number) => out.push((path, !number.is_zero())),
                None => {
                    return Err(Error::location(
                        51271,
                        format!(
                            "Bad projection specification, cannot use a {} as the value of {path}",
                            type_name(value)
                        ),
                    ));
                }
            },
        }
    }
    Ok(())
}

fn join(prefix: &str, name: &str) -> String {
    if prefix.is_empty() { name.to_owned() } else { format!("{prefix}.{name}") }
}

/// The keys of a document in a wildcard index.
pub(super) fn keys(spec: &IndexSpec, scope: &WildcardScope, document: &RawDocument) -> Result<Keys> {
    let mut collector =
        Collector { spec, scope, others: others(spec, document)?, entries: BTreeMap::new(), arrays: false };
    collector.document("", document)?;
    if collector.entries.is_empty() && spec.fields.len() > 1 {
        collector.push(RawBsonRef::MinKey, RawBsonRef::MinKey)?;
    }
    let field =
        spec.fields.iter().position(|field| field.kind.is_wildcard()).expect("a wildcard index has such a field");
    let mut multikey = Vec::new();
    if collector.arrays {
        multikey = vec![0; spec.fields.len()];
        multikey[field] = 1;
    }
    let entries = collector.entries.into_iter();
    let entries = entries.map(|(key, bits)| Entry { key: Bytes::from(key), bits: Bytes::from(bits) }).collect();
    Ok(Keys { entries, multikey })
}

/// The values of the fields beside the wildcard, which may not be arrays.
fn others<'a>(spec: &IndexSpec, document: &'a RawDocument) -> Result<Vec<Option<RawBsonRef<'a>>>> {
    let mut values = Vec::with_capacity(spec.fields.len());
    for field in &spec.fields {
        let mut value = None;
        if !field.kind.is_wildcard() {
            visit(document, &field.path, Leaf::Array, &mut |found, position| {
                if position.is_some() || matches!(found, Some(RawBsonRef::Array(_))) {
                    return Err(Error::location(
                        7246301,
                        format!("the field '{}' beside a wildcard may not be multikey", field.path),
                    ));
                }
                value = found;
                Ok(true)
            })?;
        }
        values.push(value);
    }
    Ok(values)
}

struct Collector<'a> {
    spec: &'a IndexSpec,
    scope: &'a WildcardScope,
    others: Vec<Option<RawBsonRef<'a>>>,
    entries: BTreeMap<Vec<u8>, Vec<u8>>,
    arrays: bool,
}

impl<'a> Collector<'a> {
    fn document(&mut self, prefix: &str, document: &'a RawDocument) -> Result<()> {
        for field in document {
            let (name, value) = field?;
            let path = join(prefix, name.as_str());
            if self.scope.reaches(&path) {
                self.value(&path, value)?;
            }
        }
        Ok(())
    }

    fn value(&mut self, path: &str, value: RawBsonRef<'a>) -> Result<()> {
        match value {
            RawBsonRef::Document(inner) if !inner.is_empty() => self.document(path, inner),
            RawBsonRef::Array(array) => {
                self.arrays |= self.scope.covers(path) || self.scope.reaches(path);
                if array.is_empty() {
                    return self.leaf(path, RawBsonRef::Undefined);
                }
                for element in array {
                    match element? {
                        RawBsonRef::Document(inner) if !inner.is_empty() => self.document(path, inner)?,
                        element => self.leaf(path, element)?,
                    }
                }
                Ok(())
            }
            value => self.leaf(path, value),
        }
    }

    fn leaf(&mut self, path: &str, value: RawBsonRef<'a>) -> Result<()> {
        if self.scope.covers(path) { self.push(RawBsonRef::String(path), value) } else { Ok(()) }
    }

    fn push(&mut self, path: RawBsonRef<'_>, value: RawBsonRef<'_>) -> Result<()> {
        let mut key = Key::new();
        for (field, other) in self.spec.fields.iter().zip(&self.others) {
            if field.kind.is_wildcard() {
                key.push(path, field.kind == FieldKind::WildcardDescending, None)?;
                push_field(&mut key, field.kind, value, self.spec.collator.as_deref())?;
            } else {
                push_field(&mut key, field.kind, other.unwrap_or(RawBsonRef::Null), self.spec.collator.as_deref())?;
            }
        }
        let (bytes, types) = key.into_parts();
        self.entries.entry(bytes).or_insert(types);
        Ok(())
    }
}
