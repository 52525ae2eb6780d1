//! A document through a projection's tree, in one pass over its bytes.

use super::tree::{Branch, Entry};
use super::{Kind, Projection, meta::Meta};
use crate::document::append;
use crate::error::{Error, Result};
use crate::expression::{Environment, Scope};
use bson::{RawArray, RawArrayBuf, RawBson, RawBsonRef, RawDocument, RawDocumentBuf};

/// What stays the same while one document is projected.
pub(super) struct Context<'a> {
    pub(super) kind: Kind,
    pub(super) scope: Scope<'a>,
    pub(super) sort_key: Option<RawBsonRef<'a>>,
    /// The position that the filter matched.
    pub(super) position: Option<usize>,
}

pub(super) fn project(
    projection: &Projection,
    document: &RawDocument,
    sort_key: Option<RawBsonRef<'_>>,
    environment: &Environment,
    position: Option<usize>,
) -> Result<RawDocumentBuf> {
    let context = Context { kind: projection.kind, scope: Scope::new(document, environment), sort_key, position };
    let mut output = RawDocumentBuf::new();
    let mut seen = vec![false; projection.root.len()];
    for field in document {
        let (name, value) = field?;
        let name = name.as_str();
        if name == "_id" && projection.root.get("_id").is_none() {
            if projection.includes_id {
                append(&mut output, name, value)?;
            }
            continue;
        }
        context.field(&projection.root, name, value, &mut seen, false, &mut output)?;
    }
    context.computed(&projection.root, &seen, &mut output)?;
    Ok(output)
}

impl Context<'_> {
    /// Projects the fields of a document within the document.
    fn document(&self, branch: &Branch, document: &RawDocument, in_array: bool) -> Result<RawDocumentBuf> {
        let mut output = RawDocumentBuf::new();
        let mut seen = vec![false; branch.len()];
        for field in document {
            let (name, value) = field?;
            self.field(branch, name.as_str(), value, &mut seen, in_array, &mut output)?;
        }
        self.computed(branch, &seen, &mut output)?;
        Ok(output)
    }

    /// Puts what comes of one field into the output, and marks it as seen where nothing must be computed for it later.
    fn field(
        &self,
        branch: &Branch,
        name: &str,
        value: RawBsonRef<'_>,
        seen: &mut [bool],
        in_array: bool,
        output: &mut RawDocumentBuf,
    ) -> Result<()> {
        let Some(position) = branch.position(name) else {
            if self.kind == Kind::Exclusion {
                append(output, name, value)?;
            }
            return Ok(());
        };
        let entry = branch.get(name).expect("the position is that of the name");
        match entry {
            Entry::Include => append(output, name, value)?,
            Entry::Exclude => {}
            Entry::Slice(slice) => match value {
                RawBsonRef::Array(array) => append(output, name, RawBsonRef::Array(&slice.of(array)?))?,
                other => append(output, name, other)?,
            },
            Entry::Positional => match value {
                RawBsonRef::Array(array) if !in_array => {
                    append(output, name, RawBsonRef::Array(&self.matched(array)?))?;
                }
                other => append(output, name, other)?,
            },
            Entry::ElemMatch(condition) if self.kind == Kind::Exclusion => {
                seen[position] = true;
                if let Some(found) = condition.of(value, self.scope.environment)? {
                    append(output, name, RawBsonRef::Array(&found))?;
                }
            }
            Entry::Branch(inner) => {
                if let Some(value) = self.value(inner, value, in_array)? {
                    seen[position] = true;
                    append(output, name, value.as_raw_bson_ref())?;
                }
            }
            Entry::ElemMatch(_) | Entry::Meta(_) | Entry::Expression(_) => {}
        }
        Ok(())
    }

    /// What comes of a value below which fields are named.
    fn value(&self, branch: &Branch, value: RawBsonRef<'_>, in_array: bool) -> Result<Option<RawBson>> {
        Ok(match value {
            RawBsonRef::Document(document) => Some(RawBson::Document(self.document(branch, document, in_array)?)),
            RawBsonRef::Array(array) => {
                let only_matched;
                let array = if branch.positional && !in_array {
                    only_matched = self.matched(array)?;
                    &*only_matched
                } else {
                    array
                };
                let mut output = RawArrayBuf::new();
                for element in array {
                    if let Some(element) = self.value(branch, element?, true)? {
                        output.push(element);
                    } else if branch.computes {
                        output.push(self.document(branch, &RawDocumentBuf::new(), true)?);
                    }
                }
                Some(RawBson::Array(output))
            }
            other if self.kind == Kind::Exclusion => Some(other.into()),
            _ => None,
        })
    }

    /// Appends what is computed, in the order of the specification.
    fn computed(&self, branch: &Branch, seen: &[bool], output: &mut RawDocumentBuf) -> Result<()> {
        if !branch.computes {
            return Ok(());
        }
        for ((name, entry), seen) in branch.entries().zip(seen) {
            if *seen {
                continue;
            }
            match entry {
                Entry::Expression(expression) => {
                    if let Some(value) = expression.evaluate(&self.scope)?.get() {
                        append(output, name, value)?;
                    }
                }
                Entry::Meta(Meta::SortKey) => {
                    if let Some(key) = self.sort_key {
                        append(output, name, key)?;
                    }
                }
                Entry::ElemMatch(condition) if self.kind == Kind::Inclusion => {
                    let RawBsonRef::Document(root) = self.scope.root else { continue };
                    let found = match crate::document::get(root, name)? {
                        Some(value) => condition.of(value, self.scope.environment)?,
                        None => None,
                    };
                    if let Some(found) = found {
                        append(output, name, RawBsonRef::Array(&found))?;
                    }
                }
                Entry::Branch(inner) if inner.computes => {
                    let value = self.document(inner, &RawDocumentBuf::new(), false)?;
                    append(output, name, RawBsonRef::Document(&value))?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The array of the element that the filter matched.
    fn matched(&self, array: &RawArray) -> Result<RawArrayBuf> {
        let position = self.position.ok_or_else(|| {
            Error::location(
                51246,
                "Executor error during find command :: caused by :: positional operator '.$' couldn't find a matching element in the array",
            )
        })?;
        let element = array.into_iter().nth(position).ok_or_else(|| {
            Error::location(
                51247,
                "Executor error during find command :: caused by :: positional operator '.$' element mismatch",
            )
        })?;
        let mut output = RawArrayBuf::new();
        output.push(element?);
        Ok(output)
    }
}
