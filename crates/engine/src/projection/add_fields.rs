//! `$addFields` and `$set`: every field stays, computed ones are set in place or appended.
//!
//! A document as a value names fields within (`{a: {b: 1}}` is `{"a.b": 1}`); an empty one replaces. A missing result
//! removes the field. Documented at <https://www.mongodb.com/docs/manual/reference/operator/aggregation/addFields/>.

use super::parser::check_path;
use super::tree::{Branch, Entry};
use crate::document::append;
use crate::error::{Error, Result};
use crate::expression::{self, Environment, Scope};
use bson::{RawArrayBuf, RawBson, RawBsonRef, RawDocument, RawDocumentBuf};
use std::collections::BTreeSet;

/// Parsed computed fields.
#[derive(Debug)]
pub struct AddFields {
    root: Branch,
}

impl AddFields {
    /// Parses a specification.
    ///
    /// # Errors
    /// `Location40176` for colliding paths, `Location40183` and `Location40181` for dotted names and several operators in a
    /// sub-document, and what expressions refuse.
    pub fn parse(specification: &RawDocument, parser: &mut expression::Parser) -> Result<AddFields> {
        let mut root = Branch::default();
        for field in specification {
            let (name, value) = field?;
            check_path(name.as_str())?;
            add(&mut root, name.as_str(), value, parser)?;
        }
        Ok(AddFields { root })
    }

    /// Sets the fields.
    ///
    /// # Errors
    /// What expressions refuse.
    pub fn apply(&self, document: &RawDocument, environment: &Environment) -> Result<RawDocumentBuf> {
        set(&self.root, document, &Scope::new(document, environment))
    }

    /// The top-level fields that it sets.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.root.names()
    }

    /// The paths that its expressions read; `None` when that is the whole document.
    pub fn dependencies(&self) -> Option<BTreeSet<String>> {
        let mut paths = BTreeSet::new();
        self.root.dependencies("", &mut paths).then_some(paths)
    }
}

fn add(root: &mut Branch, path: &str, value: RawBsonRef<'_>, parser: &mut expression::Parser) -> Result<()> {
    if let RawBsonRef::Document(document) = value
        && names_fields(document)?
    {
        return parser.nested(|parser| add_within(root, path, document, parser));
    }
    let expression = expression::parse(value, parser)?;
    root.insert(path, Entry::Expression(expression)).map_err(|_| {
        Error::location(40176, format!("specification contains two conflicting paths: '{path}' is set twice"))
    })
}

fn add_within(root: &mut Branch, path: &str, document: &RawDocument, parser: &mut expression::Parser) -> Result<()> {
    for field in document {
        let (name, value) = field?;
        let name = name.as_str();
        if name.contains('.') {
            return Err(Error::location(40183, format!("cannot use dotted field name '{name}' in a sub object")));
        }
        check_path(name)?;
        add(root, &format!("{path}.{name}"), value, parser)?;
    }
    Ok(())
}

/// Whether a document names fields within; else it is an expression, or the empty document as a value.
fn names_fields(document: &RawDocument) -> Result<bool> {
    let mut fields = document.iter();
    let Some(first) = fields.next() else { return Ok(false) };
    if !first?.0.as_str().starts_with('$') {
        return Ok(true);
    }
    if fields.next().is_some() {
        return Err(Error::location(
            40181,
            "an expression specification must contain exactly one field, the name of the expression",
        ));
    }
    Ok(false)
}

fn set(branch: &Branch, document: &RawDocument, scope: &Scope<'_>) -> Result<RawDocumentBuf> {
    let mut output = RawDocumentBuf::new();
    let mut seen = vec![false; branch.len()];
    for field in document {
        let (name, value) = field?;
        let name = name.as_str();
        let Some(position) = branch.position(name) else {
            append(&mut output, name, value)?;
            continue;
        };
        seen[position] = true;
        match branch.get(name) {
            Some(Entry::Expression(expression)) => {
                if let Some(value) = expression.evaluate(scope)?.get() {
                    append(&mut output, name, value)?;
                }
            }
            Some(Entry::Branch(inner)) => append(&mut output, name, set_in(inner, value, scope)?.as_raw_bson_ref())?,
            _ => append(&mut output, name, value)?,
        }
    }
    for ((name, entry), seen) in branch.entries().zip(&seen) {
        match entry {
            _ if *seen => {}
            Entry::Expression(expression) => {
                if let Some(value) = expression.evaluate(scope)?.get() {
                    append(&mut output, name, value)?;
                }
            }
            Entry::Branch(inner) => {
                let value = set(inner, &RawDocumentBuf::new(), scope)?;
                append(&mut output, name, RawBsonRef::Document(&value))?;
            }
            _ => {}
        }
    }
    Ok(output)
}

/// Sets fields in a value: in a document, in each element of an array, in a new document instead of anything else.
fn set_in(branch: &Branch, value: RawBsonRef<'_>, scope: &Scope<'_>) -> Result<RawBson> {
    Ok(match value {
        RawBsonRef::Document(document) => RawBson::Document(set(branch, document, scope)?),
        RawBsonRef::Array(array) => {
            let mut output = RawArrayBuf::new();
            for element in array {
                output.push(set_in(branch, element?, scope)?);
            }
            RawBson::Array(output)
        }
        _ => RawBson::Document(set(branch, &RawDocumentBuf::new(), scope)?),
    })
}
