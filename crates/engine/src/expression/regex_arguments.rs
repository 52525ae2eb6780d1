//! What `$regexMatch`, `$regexFind` and `$regexFindAll` share: their arguments and the form of a match.

use super::operand::{named, required};
use super::{Compiled, Expression, Parser, Scope, parse};
use crate::document::regex::{Captures, Regex};
use crate::document::{Value, append, type_name};
use crate::error::{Error, Result};
use bson::{RawArrayBuf, RawBson, RawBsonRef, RawDocumentBuf};
use std::borrow::Cow;
use std::sync::Arc;

/// The parsed arguments.
#[derive(Debug)]
pub(super) struct Matcher {
    name: &'static str,
    input: Compiled,
    regex: Compiled,
    options: Option<Compiled>,
    /// The compiled pattern when it does not depend on the document; `Some(None)` for a null one.
    constant: Option<Option<Arc<Regex>>>,
}

/// What one evaluation matches.
pub(super) struct Matching<'a> {
    pub(super) regex: Arc<Regex>,
    pub(super) text: Cow<'a, str>,
}

impl Matcher {
    pub(super) fn parse(name: &'static str, argument: RawBsonRef<'_>, parser: &mut Parser) -> Result<Matcher> {
        let [input, regex, options] = named(name, argument, ["input", "regex", "options"], 51103, 31024)?;
        let input = required(name, "input", input, 31022, parser)?;
        let regex = required(name, "regex", regex, 31023, parser)?;
        let options = options.map(|options| parse(options, parser)).transpose()?;
        let constant = match (regex.constant(), &options) {
            (Some(pattern), None) => Some(compile(name, pattern, None)?),
            (Some(pattern), Some(options)) => match options.constant() {
                Some(options) => Some(compile(name, pattern, Some(options))?),
                None => None,
            },
            _ => None,
        };
        Ok(Matcher { name, input, regex, options, constant })
    }

    /// The pattern and the text, or `None` when one of them is null.
    pub(super) fn evaluate<'a>(&'a self, scope: &Scope<'a>) -> Result<Option<Matching<'a>>> {
        let regex = match &self.constant {
            Some(constant) => constant.clone(),
            None => {
                let pattern = self.regex.evaluate(scope)?;
                let options = self.options.as_ref().map(|options| options.evaluate(scope)).transpose()?;
                compile(self.name, pattern.or_null(), options.as_ref().map(Value::or_null))?
            }
        };
        let text = match self.input.evaluate(scope)? {
            Value::Borrowed(RawBsonRef::String(text)) => Cow::Borrowed(text),
            Value::Owned(RawBson::String(text)) => Cow::Owned(text),
            input if input.is_nullish() => return Ok(None),
            input => {
                return Err(Error::location(
                    51104,
                    format!("{} takes a string as 'input', not {}", self.name, input.type_name()),
                ));
            }
        };
        Ok(regex.map(|regex| Matching { regex, text }))
    }

    pub(super) fn each_operand(&self, visit: &mut dyn FnMut(&dyn Expression)) {
        visit(&*self.input);
        visit(&*self.regex);
        if let Some(options) = &self.options {
            visit(&**options);
        }
    }
}

fn compile(name: &str, pattern: RawBsonRef<'_>, options: Option<RawBsonRef<'_>>) -> Result<Option<Arc<Regex>>> {
    let given = match options {
        None | Some(RawBsonRef::Null | RawBsonRef::Undefined) => None,
        Some(RawBsonRef::String(options)) => Some(options),
        Some(other) => {
            return Err(Error::location(
                51106,
                format!("{name} takes a string as 'options', not {}", type_name(other)),
            ));
        }
    };
    let (pattern, options) = match pattern {
        RawBsonRef::Null | RawBsonRef::Undefined => return Ok(None),
        RawBsonRef::String(pattern) => (pattern, given.unwrap_or_default()),
        RawBsonRef::RegularExpression(regex) => match (regex.options.as_str(), given) {
            ("", given) => (regex.pattern.as_str(), given.unwrap_or_default()),
            (own, None) => (regex.pattern.as_str(), own),
            (_, Some(_)) => {
                return Err(Error::location(
                    51107,
                    format!("{name} got options in the regular expression and in 'options': give them once"),
                ));
            }
        },
        other => {
            return Err(Error::location(
                51105,
                format!("{name} takes a string or a regular expression as 'regex', not {}", type_name(other)),
            ));
        }
    };
    if pattern.contains('\0') {
        return Err(Error::location(51109, format!("the pattern of {name} may not hold a null byte")));
    }
    if options.contains('\0') {
        return Err(Error::location(51110, format!("the options of {name} may not hold a null byte")));
    }
    Regex::cached(pattern, options).map(Some).map_err(|mut error| {
        if error.code.0 == 51091 {
            error.code.0 = 51111;
        }
        error
    })
}

/// A match as a document.
pub(super) fn describe(text: &str, captures: &Captures, index: usize) -> Result<RawDocumentBuf> {
    let mut groups = RawArrayBuf::new();
    for group in &captures.groups[1..] {
        groups.push(group.clone().map_or(RawBsonRef::Null, |range| RawBsonRef::String(&text[range])));
    }
    let mut document = RawDocumentBuf::new();
    append(&mut document, "match", RawBsonRef::String(&text[captures.whole()]))?;
    append(&mut document, "idx", RawBsonRef::Int32(i32::try_from(index).unwrap_or(i32::MAX)))?;
    append(&mut document, "captures", RawBsonRef::Array(&groups))?;
    Ok(document)
}
