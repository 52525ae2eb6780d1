//! `{$pop: {path: 1 | -1, …}}`: removes the last (1) or first (-1) element of an array.
//!
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/update/pop/>.

use crate::document::{Number, RawBsonRef, number, type_name};
use crate::error::{Error, Result};
use crate::update::apply::At;
use crate::update::node::Node;
use crate::update::{Change, Entries, Missing, Modifier, Operator, ParseContext, show};
use std::cmp::Ordering;

pub(super) const OPERATOR: Operator = Operator { name: "$pop", parse };

#[derive(Debug)]
struct Pop {
    first: bool,
}

fn parse(path: &str, value: RawBsonRef<'_>, _: &mut ParseContext<'_>) -> Result<Entries> {
    if Number::of(value).is_none() {
        return Err(Error::failed_to_parse(format!("Expected a number in: {path}: {}", show(value))));
    }
    let is = |expected| number::compare(value, RawBsonRef::Int32(expected)) == Ordering::Equal;
    let first = match (is(1), is(-1)) {
        (true, _) => false,
        (_, true) => true,
        _ => return Err(Error::failed_to_parse(format!("$pop expects 1 or -1, found: {}", show(value)))),
    };
    Ok(vec![(path.to_owned(), Box::new(Pop { first }))])
}

impl Modifier for Pop {
    fn modify<'a>(&'a self, current: &mut Node<'a>, at: &At<'_, 'a>) -> Result<Change> {
        let Some(elements) = current.elements()? else {
            let value = current.value()?;
            return Err(Error::type_mismatch(format!(
                "Path '{}' contains an element of non-array type '{}'",
                at.path(),
                type_name(value.or_null())
            )));
        };
        if elements.is_empty() {
            return Ok(Change::None);
        }
        elements.remove(if self.first { 0 } else { elements.len() - 1 });
        Ok(Change::Modified)
    }

    fn missing(&self) -> Missing {
        Missing::Viable
    }
}
