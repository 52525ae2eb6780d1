//! From a projection's BSON to its tree.

use super::find_only::{ElemMatch, Slice};
use super::meta::Meta;
use super::tree::{Branch, Collision, Entry};
use super::{Kind, Mode, Projection};
use crate::document::collation::Collator;
use crate::document::number::Number;
use crate::document::{FieldPath, Value};
use crate::error::{Code, Error, Result};
use crate::expression;
use crate::filter::{Filter, Node};
use bson::{RawBsonRef, RawDocument};
use std::sync::Arc;

/// The most parts that a path may have.
pub(super) const MAX_PATH_PARTS: usize = 200;

struct Parser<'p> {
    expressions: &'p mut expression::Parser,
    collator: Option<Arc<Collator>>,
    mode: Mode,
    kind: Option<Kind>,
    root: Branch,
    /// What `_id: 0` or `_id: 1` said.
    id: Option<bool>,
    has_elem_match: bool,
    has_positional: bool,
}

pub(super) fn parse(
    specification: &RawDocument,
    filter: Option<&Filter>,
    expressions: &mut expression::Parser,
    mode: Mode,
) -> Result<Projection> {
    if mode == Mode::Aggregate && specification.is_empty() {
        return Err(Error::location(51272, "projection specification must have at least one field"));
    }
    let mut parser = Parser {
        expressions,
        collator: filter.and_then(Filter::collator).cloned(),
        mode,
        kind: None,
        root: Branch::default(),
        id: None,
        has_elem_match: false,
        has_positional: false,
    };
    for field in specification {
        let (name, value) = field?;
        parser.field("", name.as_str(), value)?;
    }
    parser.finish(filter)
}

/// An exclusion of paths.
pub(super) fn exclude<'a>(paths: impl Iterator<Item = &'a str>) -> Result<Projection> {
    let paths: Vec<&str> = paths.collect();
    if let Some(path) = paths.iter().find(|path| path.contains('\0')) {
        let message = format!("field path '{}' holds a null byte", path.escape_default());
        return Err(Error::location(9_527_900, message));
    }
    let mut root = Branch::default();
    for path in paths {
        check_path(path)?;
        insert(&mut root, path, Entry::Exclude)?;
    }
    Ok(Projection { kind: Kind::Exclusion, root, includes_id: true })
}

pub(super) fn check_path(path: &str) -> Result<()> {
    FieldPath::parse(path)?;
    if path.split('.').count() > MAX_PATH_PARTS {
        return Err(Error::new(Code::OVERFLOW, format!("FieldPath is too long: more than {MAX_PATH_PARTS} parts")));
    }
    Ok(())
}

fn insert(root: &mut Branch, path: &str, entry: Entry) -> Result<()> {
    root.insert(path, entry).map_err(|collision| match collision {
        Collision::ChildAfterParent(rest) => {
            Error::location(31249, format!("Path collision at {path} remaining portion {rest}"))
        }
        Collision::ParentAfterChild => Error::location(31250, format!("Path collision at {path}")),
    })
}

impl Parser<'_> {
    fn field(&mut self, prefix: &str, name: &str, value: RawBsonRef<'_>) -> Result<()> {
        let full = format!("{prefix}{name}");
        if self.mode == Mode::Find && name.contains('$') {
            if let Some(path) = full.strip_suffix(".$") {
                return self.positional(path, value);
            }
            if full.split('.').skip(1).any(|part| part == "$") {
                return Err(Error::location(
                    31394,
                    "Positional projection may only be used at the end, for example: a.b.$. If the query previously used a form like a.b.$.d, remove the parts following the '$' and the results will be equivalent.",
                ));
            }
        }
        if let Err(error) = check_path(name) {
            return Err(match self.mode {
                Mode::Aggregate if full.split('.').next_back() == Some("$") && full.len() > 1 => {
                    Error::location(31324, "positional projection cannot be used outside of find")
                }
                _ => error,
            });
        }
        match value {
            RawBsonRef::Document(document) => self.object(&full, document),
            RawBsonRef::Boolean(_) => self.inclusion_or_exclusion(&full, value),
            number if Number::of(number).is_some() => self.inclusion_or_exclusion(&full, value),
            other => self.literal(&full, other),
        }
    }

    fn inclusion_or_exclusion(&mut self, path: &str, value: RawBsonRef<'_>) -> Result<()> {
        let included = Value::Borrowed(value).is_true();
        if path == "_id" {
            if self.id.is_some() || self.root.get("_id").is_some() {
                return Err(Error::location(31250, "Path collision at _id"));
            }
            self.id = Some(included);
            return Ok(());
        }
        if self.id.is_some() && path.starts_with("_id.") {
            let rest = path.trim_start_matches("_id.");
            return Err(Error::location(31249, format!("Path collision at {path} remaining portion {rest}")));
        }
        match (self.kind, included) {
            (Some(Kind::Exclusion), true) => {
                return Err(Error::location(
                    31253,
                    format!("Cannot do inclusion on field {path} in exclusion projection"),
                ));
            }
            (Some(Kind::Inclusion), false) => {
                return Err(Error::location(
                    31254,
                    format!("Cannot do exclusion on field {path} in inclusion projection"),
                ));
            }
            _ => {}
        }
        self.kind = Some(if included { Kind::Inclusion } else { Kind::Exclusion });
        insert(&mut self.root, path, if included { Entry::Include } else { Entry::Exclude })
    }

    fn literal(&mut self, path: &str, value: RawBsonRef<'_>) -> Result<()> {
        if self.kind == Some(Kind::Exclusion) {
            return Err(Error::location(
                31310,
                format!("Cannot use an expression {path} in an exclusion projection: only fields to leave out"),
            ));
        }
        self.kind = Some(Kind::Inclusion);
        let expression = expression::parse(value, self.expressions)?;
        insert(&mut self.root, path, Entry::Expression(expression))
    }

    fn object(&mut self, path: &str, document: &RawDocument) -> Result<()> {
        let mut fields = document.iter();
        let Some(first) = fields.next() else {
            return Err(Error::location(
                51270,
                format!("An empty sub-projection is not a valid value. Found empty object at path {path}"),
            ));
        };
        let (operator, argument) = first?;
        if operator.as_str().starts_with('$') && fields.next().is_none() {
            return self.operator(path, operator.as_str(), argument, document);
        }
        let prefix = format!("{path}.");
        for field in document {
            let (name, value) = field?;
            self.field(&prefix, name.as_str(), value)?;
        }
        Ok(())
    }

    fn operator(&mut self, path: &str, operator: &str, argument: RawBsonRef<'_>, whole: &RawDocument) -> Result<()> {
        match operator {
            "$meta" => {
                let meta = Meta::parse(argument)?;
                insert(&mut self.root, path, Entry::Meta(meta))
            }
            "$slice" if self.mode == Mode::Find => {
                let after_positional = matches!(self.root.find(path), Some(Entry::Positional));
                match Slice::parse(argument)? {
                    Some(slice) if !after_positional => insert(&mut self.root, path, Entry::Slice(slice)),
                    _ => self.expression(path, whole),
                }
            }
            "$elemMatch" if self.mode == Mode::Find => self.elem_match(path, argument),
            _ => self.expression(path, whole),
        }
    }

    fn expression(&mut self, path: &str, whole: &RawDocument) -> Result<()> {
        if self.kind == Some(Kind::Exclusion) {
            return Err(Error::location(31252, "Cannot use expression other than $meta in exclusion projection"));
        }
        self.kind = Some(Kind::Inclusion);
        let parsed = expression::parse(RawBsonRef::Document(whole), self.expressions);
        let expression = parsed.map_err(|error| {
            let name = whole.iter().next().and_then(|field| field.ok()).map_or("", |(name, _)| name.as_str());
            let unknown = error.code == Code::INVALID_PIPELINE_OPERATOR && error.message.contains(&format!("'{name}'"));
            if unknown && name != "$elemMatch" {
                Error::location(31325, format!("Unknown expression {name}"))
            } else {
                error
            }
        })?;
        insert(&mut self.root, path, Entry::Expression(expression))
    }

    fn elem_match(&mut self, path: &str, argument: RawBsonRef<'_>) -> Result<()> {
        let RawBsonRef::Document(_) = argument else {
            return Err(Error::location(31274, "elemMatch: Invalid argument, object required"));
        };
        if self.has_positional {
            return Err(Error::location(31255, "Cannot specify positional operator and $elemMatch."));
        }
        if path.contains('.') {
            return Err(Error::location(31275, "Cannot use $elemMatch projection on a nested field."));
        }
        self.has_elem_match = true;
        let elem_match = ElemMatch::parse(argument, self.expressions, self.collator.clone())?;
        insert(&mut self.root, path, Entry::ElemMatch(elem_match))
    }

    fn positional(&mut self, path: &str, value: RawBsonRef<'_>) -> Result<()> {
        check_path(path)?;
        match value {
            RawBsonRef::Document(_) => {
                return Err(Error::location(
                    31271,
                    "positional projection cannot be used with an expression or sub object",
                ));
            }
            RawBsonRef::Boolean(_) => {}
            number if Number::of(number).is_some() => {}
            _ => return Err(Error::location(31308, "positional projection cannot be used with a literal")),
        }
        if !Value::Borrowed(value).is_true() || self.kind == Some(Kind::Exclusion) {
            return Err(Error::location(31395, "positional projection cannot be used with exclusion"));
        }
        if self.has_positional {
            return Err(Error::location(31276, "Cannot specify more than one positional projection per query."));
        }
        if self.has_elem_match {
            return Err(Error::location(31256, "Cannot specify positional operator and $elemMatch."));
        }
        self.has_positional = true;
        self.kind = Some(Kind::Inclusion);
        insert(&mut self.root, path, Entry::Positional)
    }

    fn finish(self, filter: Option<&Filter>) -> Result<Projection> {
        let kind = self.kind.unwrap_or(if self.has_elem_match || self.id == Some(true) {
            Kind::Inclusion
        } else {
            Kind::Exclusion
        });
        if self.has_positional && filter.is_some_and(|filter| needs_document(filter.root())) {
            return Err(Error::new(
                Code::QUERY_FEATURE_NOT_ALLOWED,
                "the positional projection cannot be used with $expr or $jsonSchema in the filter",
            ));
        }
        let includes_id = self.id.unwrap_or(true) && self.root.get("_id").is_none_or(|entry| !entry.is_computed());
        Ok(Projection { kind, root: self.root, includes_id })
    }
}

fn needs_document(node: &Node) -> bool {
    match node {
        Node::And(nodes) | Node::Or(nodes) | Node::Nor(nodes) => nodes.iter().any(needs_document),
        Node::Not { node, .. } => needs_document(node),
        Node::Expr(_) | Node::Schema(_) => true,
        _ => false,
    }
}
