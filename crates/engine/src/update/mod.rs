//! Updates: what `update` and `findAndModify` do to one document.
//!
//! Three kinds: operators (`{$set: …}`), a replacement, and a pipeline. Operators are one file each; [`OPERATORS`] alone drives
//! parsing, the error for an unknown operator and COMPAT.md. The paths of all operators form one tree ([`path`]), which is
//! laid over a lazily opened document ([`node`]) by [`apply`]: fields are visited in the order of their names, untouched
//! parts are copied as bytes. An update knows nothing of queries' plans, indexes or collections.

mod add_to_set;
mod apply;
mod array_filter;
mod bit;
mod current_date;
pub mod describe;
mod inc;
mod max;
mod min;
mod mul;
mod node;
mod path;
mod pipeline;
mod pop;
mod pull;
mod pull_all;
mod push;
mod rename;
mod replacement;
mod set;
mod set_on_insert;
mod unset;
mod upsert;

pub use describe::{Description, describe};
pub use upsert::upsert_document;

use crate::document::collation::Collator;
use crate::document::validate::nesting;
use crate::document::{FieldPath, MAX_DEPTH, MAX_DOCUMENT_BYTES, RawBsonRef, RawDocument, RawDocumentBuf};
use crate::error::{Code, Error, Result};
use crate::expression::{Environment, Parser};
use apply::At;
use array_filter::ArrayFilters;
use node::Node;
use path::{Part, PathTree};
use pipeline::Pipeline;
use replacement::Replacement;
use std::fmt::Debug;
use std::sync::Arc;

/// What an operator did to a field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Change {
    /// Nothing.
    None,
    /// The field has another value.
    Modified,
    /// The field shall go; an array keeps a null in its place.
    Remove,
}

/// What it means to an operator that a path does not exist.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Missing {
    /// It may create the path; a path that cannot be created is an error.
    Create,
    /// It creates nothing, but a path that could not be created is an error all the same.
    Viable,
    /// It does nothing, whatever stands in the way.
    Ignore,
}

/// What every operator does to the field that its path leads to.
pub(crate) trait Modifier: Debug + Send + Sync {
    /// Changes a field that exists.
    fn modify<'a>(&'a self, current: &mut Node<'a>, at: &At<'_, 'a>) -> Result<Change>;

    /// Gives the value to create where the field is missing.
    fn create<'a>(&'a self, at: &At<'_, 'a>) -> Result<Option<Node<'a>>> {
        let _ = at;
        Ok(None)
    }

    /// What a path that does not exist means.
    fn missing(&self) -> Missing {
        Missing::Create
    }

    /// Whether it applies to inserts only.
    fn inserts_only(&self) -> bool {
        false
    }
}

/// The paths that one field of an operator's argument changes, each with what it does there.
pub(crate) type Entries = Vec<(String, Box<dyn Modifier>)>;

/// What parsing an operator needs to know.
pub(crate) struct ParseContext<'p> {
    pub(crate) parser: &'p mut Parser,
    pub(crate) collator: Option<Arc<Collator>>,
}

/// A row of the operator table.
pub struct Operator {
    /// The name with its `$`.
    pub name: &'static str,
    /// Parses one field of the operator's argument: path and value.
    parse: fn(&str, RawBsonRef<'_>, &mut ParseContext<'_>) -> Result<Entries>,
}

/// All operators, sorted by name.
pub static OPERATORS: &[Operator] = &[
    add_to_set::OPERATOR,
    bit::OPERATOR,
    current_date::OPERATOR,
    inc::OPERATOR,
    max::OPERATOR,
    min::OPERATOR,
    mul::OPERATOR,
    pop::OPERATOR,
    pull::OPERATOR,
    pull_all::OPERATOR,
    push::OPERATOR,
    rename::OPERATOR,
    set::OPERATOR,
    set_on_insert::OPERATOR,
    unset::OPERATOR,
];

/// A parsed update.
#[derive(Debug)]
pub struct Update {
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Operators(Operators),
    Replacement(Replacement),
    Pipeline(Pipeline),
}

/// A parsed operators document.
#[derive(Debug)]
struct Operators {
    tree: PathTree,
    touches: Vec<FieldPath>,
    needs_position: bool,
    changes_id: bool,
    filters: ArrayFilters,
    collator: Option<Arc<Collator>>,
}

/// What applying an update to one document needs to know.
#[derive(Clone, Copy, Debug)]
pub struct UpdateContext<'a> {
    /// Clock, variables and collation of the operation.
    pub environment: &'a Environment,
    /// The array position that the query matched, for `$`.
    pub position: Option<usize>,
    /// Whether the document is about to be inserted, so that `$setOnInsert` applies.
    pub inserting: bool,
}

impl<'a> UpdateContext<'a> {
    /// The context of an update of a stored document.
    pub fn new(environment: &'a Environment, position: Option<usize>) -> UpdateContext<'a> {
        UpdateContext { environment, position, inserting: false }
    }
}

impl Update {
    /// Parses an update: a document whose first field begins with `$` holds operators, any other document is a replacement,
    /// an array is a pipeline.
    ///
    /// # Errors
    /// `FailedToParse` (9), `BadValue` (2), `TypeMismatch` (14), `EmptyFieldName` (56), `ConflictingUpdateOperators` (40) and
    /// others by the operators; all that is invalid whatever the document.
    pub fn parse(
        spec: RawBsonRef<'_>,
        array_filters: &[&RawDocument],
        parser: &mut Parser,
        collator: Option<Arc<Collator>>,
    ) -> Result<Update> {
        let kind = match spec {
            RawBsonRef::Array(stages) => {
                refuse_filters(array_filters, "pipeline")?;
                Kind::Pipeline(Pipeline::parse(stages, parser)?)
            }
            RawBsonRef::Document(document) => {
                let first = document.iter().next().transpose()?;
                if first.is_some_and(|(name, _)| name.as_str().starts_with('$')) {
                    let mut context = ParseContext { parser, collator };
                    Kind::Operators(Operators::parse(document, array_filters, &mut context)?)
                } else {
                    refuse_filters(array_filters, "replacement")?;
                    Kind::Replacement(Replacement::parse(document)?)
                }
            }
            _ => return Err(Error::failed_to_parse("Update argument must be either an object or an array")),
        };
        Ok(Update { kind })
    }

    /// Whether it replaces the document as a whole.
    pub fn is_replacement(&self) -> bool {
        matches!(self.kind, Kind::Replacement(_))
    }

    /// Whether it is a pipeline.
    pub fn is_pipeline(&self) -> bool {
        matches!(self.kind, Kind::Pipeline(_))
    }

    /// The paths that it may change, without array positions; `None` when any field may change.
    pub fn touches(&self) -> Option<Vec<FieldPath>> {
        match &self.kind {
            Kind::Operators(operators) => Some(operators.touches.clone()),
            _ => None,
        }
    }

    /// Whether it uses the positional `$`, so that the query must say which array element it matched.
    pub fn needs_position(&self) -> bool {
        matches!(&self.kind, Kind::Operators(operators) if operators.needs_position)
    }

    /// Applies the update; `None` when the document stays as it is.
    ///
    /// # Errors
    /// `ImmutableField` (66), `PathNotViable` (28), `Location17419` for a document that grows too large, and what the operators
    /// refuse.
    pub fn apply(&self, before: &RawDocument, context: &UpdateContext<'_>) -> Result<Option<RawDocumentBuf>> {
        let after = match &self.kind {
            Kind::Operators(operators) => operators.apply(before, context)?,
            Kind::Replacement(replacement) => Some(replacement.apply(before, context)?),
            Kind::Pipeline(pipeline) => Some(pipeline.apply(before, context)?),
        };
        let Some(after) = after else { return Ok(None) };
        if after.as_bytes() == before.as_bytes() {
            return Ok(None);
        }
        if after.as_bytes().len() > MAX_DOCUMENT_BYTES {
            let (number, what) = if context.inserting {
                (17420, "Document to upsert is larger than")
            } else {
                (17419, "Resulting document after update is larger than")
            };
            return Err(Error::location(number, format!("{what} {MAX_DOCUMENT_BYTES}")));
        }
        if !matches!(self.kind, Kind::Operators(_)) && nesting(RawBsonRef::Document(&after))? > MAX_DEPTH {
            return Err(too_deep());
        }
        Ok(Some(after))
    }
}

impl Operators {
    fn parse(
        document: &RawDocument,
        array_filters: &[&RawDocument],
        context: &mut ParseContext<'_>,
    ) -> Result<Operators> {
        let mut filters = ArrayFilters::parse(array_filters, context)?;
        let mut operators = Operators {
            tree: PathTree::new(),
            touches: Vec::new(),
            needs_position: false,
            changes_id: false,
            filters: ArrayFilters::default(),
            collator: context.collator.clone(),
        };
        for field in document {
            let (name, argument) = field?;
            let name = name.as_str();
            let operator = find(name).ok_or_else(|| unknown(name))?;
            let RawBsonRef::Document(fields) = argument else {
                return Err(Error::failed_to_parse(format!(
                    "Modifiers operate on fields but we found type {} instead. For example: {{$mod: {{<field>: ...}}}} \
                     not {{{name}: {}}}",
                    crate::document::type_name(argument),
                    show(argument)
                )));
            };
            for field in fields {
                let (path, value) = field?;
                for (path, modifier) in (operator.parse)(path.as_str(), value, context)? {
                    operators.add(&path, modifier, &mut filters)?;
                }
            }
        }
        filters.check_all_used(document)?;
        operators.filters = filters;
        Ok(operators)
    }

    fn add(&mut self, path: &str, modifier: Box<dyn Modifier>, filters: &mut ArrayFilters) -> Result<()> {
        let parts = path::parse(path)?;
        for part in &parts {
            match part {
                Part::Name(_) => {}
                Part::Position => self.needs_position = true,
                Part::Filter(identifier) => filters.using(identifier, path)?,
            }
        }
        // A numeric part may be a field's name too: then the shorter path still covers it.
        let covered = parts.iter().map_while(|part| match part {
            Part::Name(name) if path::index(name).is_none() => Some(name.as_str()),
            _ => None,
        });
        let covered = covered.collect::<Vec<_>>();
        let touched = if covered.is_empty() { path.split('.').next().unwrap_or(path) } else { &covered.join(".") };
        self.touches.push(FieldPath::unchecked(touched));
        self.changes_id |= path == "_id" || path.starts_with("_id.");
        self.tree.insert(path, &parts, modifier)
    }

    fn apply(&self, before: &RawDocument, context: &UpdateContext<'_>) -> Result<Option<RawDocumentBuf>> {
        let collator = context.environment.collator.as_deref().or(self.collator.as_deref());
        let after = apply::apply(&self.tree, &self.filters, before, context, collator)?;
        if let Some(after) = after.as_ref().filter(|_| self.changes_id && !context.inserting) {
            check_id(before, after, immutable_id)?;
        }
        Ok(after)
    }
}

/// Refuses an `_id` that differs from the one before.
pub(crate) fn check_id(before: &RawDocument, after: &RawDocument, refusal: impl FnOnce() -> Error) -> Result<()> {
    let (old, new) = (crate::document::get(before, "_id")?, crate::document::get(after, "_id")?);
    let same = match (old, new) {
        (Some(old), Some(new)) => crate::document::values_equal(old, new, None)?,
        (None, _) => true,
        (Some(_), None) => false,
    };
    if same { Ok(()) } else { Err(refusal()) }
}

/// The refusal of an operator that would change the `_id`.
pub(crate) fn immutable_id() -> Error {
    Error::new(Code::IMMUTABLE_FIELD, "Performing an update on the path '_id' would modify the immutable field '_id'")
}

fn find(name: &str) -> Option<&'static Operator> {
    OPERATORS.binary_search_by(|operator| operator.name.cmp(name)).ok().map(|found| &OPERATORS[found])
}

fn unknown(name: &str) -> Error {
    Error::failed_to_parse(format!(
        "Unknown modifier: {name}. Expected a valid update modifier or pipeline-style update specified as an array"
    ))
}

fn refuse_filters(array_filters: &[&RawDocument], style: &str) -> Result<()> {
    if array_filters.is_empty() {
        return Ok(());
    }
    Err(Error::failed_to_parse(format!("arrayFilters may not be specified for {style}-style updates")))
}

/// The refusal of a document nested too deeply.
pub(crate) fn too_deep() -> Error {
    Error::new(Code::OVERFLOW, format!("Document exceeds maximum nesting depth of {MAX_DEPTH}"))
}

/// A value as error messages show it.
pub(crate) fn show(value: RawBsonRef<'_>) -> String {
    const LONGEST: usize = 512;
    let mut text = match bson::Bson::try_from(value) {
        Ok(value) => value.to_string(),
        Err(_) => "<malformed>".to_owned(),
    };
    if text.len() > LONGEST {
        let cut = (0..=LONGEST).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text.truncate(cut);
        text.push('…');
    }
    text
}

/// `_id: 1`, for error messages.
pub(crate) fn show_id(document: &RawDocument) -> String {
    match crate::document::get(document, "_id") {
        Ok(Some(id)) => format!("_id: {}", show(id)),
        _ => "_id: missing".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted() {
        assert!(OPERATORS.windows(2).all(|pair| pair[0].name < pair[1].name));
    }
}
