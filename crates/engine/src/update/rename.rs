//! `{$rename: {source: "target", …}}`: moves a field to another path; a missing source does nothing.
//!
//! Neither path may lead through an array. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/update/rename/>.

use crate::document::{RawBsonRef, RawDocument, get};
use crate::error::{Error, Result};
use crate::update::apply::At;
use crate::update::node::Node;
use crate::update::path::{self, Part};
use crate::update::set::assign;
use crate::update::{Change, Entries, Missing, Modifier, Operator, ParseContext, immutable_id, show, show_id};

pub(super) const OPERATOR: Operator = Operator { name: "$rename", parse };

fn parse(source: &str, value: RawBsonRef<'_>, _: &mut ParseContext<'_>) -> Result<Entries> {
    const NULL_BYTE: i32 = 9_867_600;
    let RawBsonRef::String(target) = value else {
        return Err(Error::bad_value(format!(
            "The 'to' field for $rename must be a string: {source}: {}",
            show(value)
        )));
    };
    if target.contains('\0') {
        return Err(Error::location(NULL_BYTE, "The 'to' field for $rename cannot contain an embedded null byte"));
    }
    for (path, which) in [(source, "source"), (target, "destination")] {
        if path::parse(path)?.iter().any(|part| !matches!(part, Part::Name(_))) {
            return Err(Error::bad_value(format!("The {which} field for $rename may not be dynamic: {path}")));
        }
    }
    if source == target {
        return Err(Error::bad_value(format!(
            "The source and target field for $rename must differ: {source}: \"{target}\""
        )));
    }
    let inside = |outer: &str, inner: &str| inner.strip_prefix(outer).is_some_and(|rest| rest.starts_with('.'));
    if inside(source, target) || inside(target, source) {
        return Err(Error::bad_value(format!(
            "The source and target field for $rename must not be on the same path: {source}: \"{target}\""
        )));
    }
    Ok(vec![(source.to_owned(), Box::new(Source)), (target.to_owned(), Box::new(Target { source: source.to_owned() }))])
}

/// The end of the path that the field leaves.
#[derive(Debug)]
struct Source;

impl Modifier for Source {
    fn modify<'a>(&'a self, _: &mut Node<'a>, at: &At<'_, 'a>) -> Result<Change> {
        refuse_array("source", at)?;
        Ok(Change::Remove)
    }

    fn missing(&self) -> Missing {
        Missing::Viable
    }
}

/// The end of the path that the field takes.
#[derive(Debug)]
struct Target {
    source: String,
}

impl Target {
    /// The value before the update; other operators cannot have changed it, as that would be a conflict.
    fn value<'a>(&self, before: &'a RawDocument) -> Result<Option<RawBsonRef<'a>>> {
        let mut value = RawBsonRef::Document(before);
        for part in self.source.split('.') {
            value = match value {
                RawBsonRef::Document(document) => match get(document, part)? {
                    Some(value) => value,
                    None => return Ok(None),
                },
                RawBsonRef::Array(_) => {
                    return Err(Error::bad_value(format!(
                        "The source field cannot be an array element, '{}' in doc with {} has an array on its path",
                        self.source,
                        show_id(before)
                    )));
                }
                _ => return Ok(None),
            };
        }
        Ok(Some(value))
    }
}

impl Modifier for Target {
    fn modify<'a>(&'a self, current: &mut Node<'a>, at: &At<'_, 'a>) -> Result<Change> {
        let Some(value) = self.value(at.before)? else { return Ok(Change::None) };
        refuse_array("destination", at)?;
        if at.path() == "_id" && !at.context.inserting {
            return Err(immutable_id());
        }
        assign(current, value)
    }

    fn create<'a>(&'a self, at: &At<'_, 'a>) -> Result<Option<Node<'a>>> {
        let Some(value) = self.value(at.before)? else { return Ok(None) };
        refuse_array("destination", at)?;
        Ok(Some(Node::Raw(value)))
    }
}

fn refuse_array(which: &str, at: &At<'_, '_>) -> Result<()> {
    if !at.in_array() {
        return Ok(());
    }
    Err(Error::bad_value(format!(
        "The {which} field cannot be an array element, '{}' in doc with {} has an array on its path",
        at.path(),
        show_id(at.before)
    )))
}
