//! `{field: {$regex: pattern, $options: flags}}`, `{field: /pattern/flags}`: a string at the path matches.
//!
//! A stored regular expression with the same pattern and flags matches too. Collations have no say. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/query/regex/>.

use super::bounds::bracket;
use super::{Bounds, Field, IndexTraits, Interval, Intervals, Node, Operator, Parse, Parser, Predicate};
use crate::document::regex::Regex;
use crate::document::{append, get};
use crate::error::{Error, Result};
use crate::expression::Environment;
use bson::{RawBson, RawBsonRef, RawDocumentBuf, RawRegexRef};
use std::ops::Bound;
use std::sync::Arc;

pub(super) const OPERATOR: Operator = Operator { name: "$regex", parse: Parse::Field(parse) };

/// The flags of `$regex` when they stand apart; they are read with it.
pub(super) const OPTIONS: Operator = Operator { name: "$options", parse: Parse::Field(parse_options) };

/// A compiled regular expression with the flags as they were written.
#[derive(Clone, Debug)]
pub(super) struct Pattern {
    regex: Arc<Regex>,
    flags: Box<str>,
}

impl Pattern {
    /// Compiles a pattern.
    pub(super) fn new(pattern: &str, flags: &str) -> Result<Pattern> {
        Ok(Pattern { regex: Arc::new(Regex::new(pattern, flags)?), flags: flags.into() })
    }

    /// Compiles a regular expression literal.
    pub(super) fn literal(literal: RawRegexRef<'_>) -> Result<Pattern> {
        Pattern::new(literal.pattern.as_str(), literal.options.as_str())
    }

    /// Whether a value is a string that matches, or the same regular expression.
    pub(super) fn matches(&self, value: RawBsonRef<'_>) -> Result<bool> {
        match value {
            RawBsonRef::String(text) | RawBsonRef::Symbol(text) => self.regex.is_match(text),
            RawBsonRef::RegularExpression(stored) => {
                Ok(stored.pattern.as_str() == self.regex.pattern() && stored.options.as_str() == &*self.flags)
            }
            _ => Ok(false),
        }
    }
}

/// The condition of a regular expression literal.
pub(super) fn from_literal(path: &str, literal: RawRegexRef<'_>) -> Result<Node> {
    Ok(Node::path(path, Matches { pattern: Pattern::literal(literal)? }))
}

#[derive(Debug)]
struct Matches {
    pattern: Pattern,
}

fn parse(field: Field<'_>, argument: RawBsonRef<'_>, _: &mut Parser<'_>) -> Result<Node> {
    let options = match get(field.operators, "$options")? {
        None => None,
        Some(RawBsonRef::String(options)) => Some(options),
        Some(_) => return Err(Error::bad_value("$options has to be a string")),
    };
    let (pattern, flags) = match argument {
        RawBsonRef::String(pattern) => (pattern, options.unwrap_or_default()),
        RawBsonRef::RegularExpression(literal) => {
            let flags = literal.options.as_str();
            if options.is_some() && !flags.is_empty() {
                let code = if options_come_first(field)? { 51074 } else { 51075 };
                return Err(Error::location(code, "options set in both $regex and $options: give them once"));
            }
            (literal.pattern.as_str(), options.unwrap_or(flags))
        }
        _ => return Err(Error::bad_value("$regex has to be a string")),
    };
    Ok(Node::path(field.path, Matches { pattern: Pattern::new(pattern, flags)? }))
}

fn options_come_first(field: Field<'_>) -> Result<bool> {
    for operator in field.operators {
        match operator?.0.as_str() {
            "$options" => return Ok(true),
            "$regex" => return Ok(false),
            _ => {}
        }
    }
    Ok(false)
}

fn parse_options(field: Field<'_>, argument: RawBsonRef<'_>, _: &mut Parser<'_>) -> Result<Node> {
    if !matches!(argument, RawBsonRef::String(_)) {
        return Err(Error::bad_value("$options has to be a string"));
    }
    match get(field.operators, "$regex")? {
        Some(_) => Ok(Node::Always(true)),
        None => Err(Error::bad_value("$options needs a $regex")),
    }
}

impl Predicate for Matches {
    fn matches(&self, value: Option<RawBsonRef<'_>>, _: &Environment) -> Result<bool> {
        value.map_or(Ok(false), |value| self.pattern.matches(value))
    }

    fn name(&self) -> &'static str {
        "$regex"
    }

    fn describe(&self) -> RawDocumentBuf {
        let mut document = RawDocumentBuf::new();
        let mut add =
            |name, text| append(&mut document, name, RawBsonRef::String(text)).expect("a name without null byte");
        add("$regex", self.pattern.regex.pattern());
        if !self.pattern.flags.is_empty() {
            add("$options", &self.pattern.flags);
        }
        document
    }

    fn bounds(&self, index: IndexTraits) -> Option<Bounds> {
        Some(pattern_bounds(&self.pattern, index))
    }
}

/// The strings with the pattern's literal prefix, or all strings; and the same regular expression as a value.
pub(super) fn pattern_bounds(pattern: &Pattern, index: IndexTraits) -> Bounds {
    let itself = match (pattern.regex.pattern().try_into(), (&*pattern.flags).try_into()) {
        (Ok(pattern), Ok(options)) => RawBson::RegularExpression(bson::Regex { pattern, options }),
        _ => return Bounds::inexact(vec![Interval::all()]),
    };
    let prefix = if index.collated { None } else { pattern.regex.literal_prefix() };
    let (strings, exact) = match prefix {
        Some(prefix) => (prefix_interval(&prefix.text), prefix.exact),
        None => (bracket(RawBsonRef::String("")), false),
    };
    Bounds { intervals: Intervals(vec![strings, Interval::point(itself)]), exact }
}

/// The strings that begin with a text.
fn prefix_interval(text: &str) -> Interval {
    let mut next = text.to_owned();
    while let Some(last) = next.pop() {
        if let Some(above) = ((last as u32 + 1)..=0x10_FFFF).find_map(char::from_u32) {
            next.push(above);
            return Interval {
                low: Bound::Included(RawBson::String(text.to_owned())),
                high: Bound::Excluded(RawBson::String(next)),
            };
        }
    }
    Interval { low: Bound::Included(RawBson::String(text.to_owned())), high: bracket(RawBsonRef::String("")).high }
}
