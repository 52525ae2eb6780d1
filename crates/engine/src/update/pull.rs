//! `{$pull: {path: value | condition, …}}`: removes the array elements that equal a value or match a condition.
//!
//! A document without operators in front is a query on elements that are documents; operators and regular expressions are
//! asked of each element; any other value must be equal. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/update/pull/>.

use crate::document::collation::Collator;
use crate::document::{RawBson, RawBsonRef, RawDocument, RawDocumentBuf, append, values_equal};
use crate::error::{Error, Result};
use crate::expression::Environment;
use crate::filter::Filter;
use crate::update::apply::At;
use crate::update::node::Node;
use crate::update::{Change, Entries, Missing, Modifier, Operator, ParseContext};

pub(super) const OPERATOR: Operator = Operator { name: "$pull", parse };

#[derive(Debug)]
enum Pull {
    /// Elements that are documents and match.
    Document(Filter),
    /// Elements that match by themselves.
    Element(Filter),
    /// Elements that are equal.
    Equal(RawBson),
}

fn parse(path: &str, value: RawBsonRef<'_>, context: &mut ParseContext<'_>) -> Result<Entries> {
    let pull = match value {
        RawBsonRef::Document(document) if !asks_elements(document)? => {
            Pull::Document(Filter::parse(document, context.parser, context.collator.clone())?)
        }
        RawBsonRef::Document(_) | RawBsonRef::RegularExpression(_) => {
            let mut wrapped = RawDocumentBuf::new();
            append(&mut wrapped, "", value)?;
            Pull::Element(Filter::parse(&wrapped, context.parser, context.collator.clone())?)
        }
        other => Pull::Equal(other.into()),
    };
    Ok(vec![(path.to_owned(), Box::new(pull))])
}

/// Whether a condition begins with an operator on a value, as opposed to a field, a logical operator or a DBRef.
fn asks_elements(condition: &RawDocument) -> Result<bool> {
    const OF_DOCUMENTS: [&str; 13] = [
        "$alwaysFalse",
        "$alwaysTrue",
        "$and",
        "$comment",
        "$db",
        "$expr",
        "$id",
        "$jsonSchema",
        "$nor",
        "$or",
        "$ref",
        "$text",
        "$where",
    ];
    let first = condition.iter().next().transpose()?;
    Ok(first.is_some_and(|(name, _)| name.as_str().starts_with('$') && !OF_DOCUMENTS.contains(&name.as_str())))
}

impl Pull {
    fn takes(&self, element: RawBsonRef<'_>, environment: &Environment, collator: Option<&Collator>) -> Result<bool> {
        match (self, element) {
            (Pull::Document(filter), RawBsonRef::Document(document)) => filter.matches(document, environment),
            (Pull::Document(_), _) => Ok(false),
            (Pull::Element(filter), element) => filter.matches_value(element, environment),
            (Pull::Equal(value), element) => values_equal(element, value.as_raw_bson_ref(), collator),
        }
    }
}

impl Modifier for Pull {
    fn modify<'a>(&'a self, current: &mut Node<'a>, at: &At<'_, 'a>) -> Result<Change> {
        remove("$pull", current, |element| self.takes(element, at.context.environment, at.collator))
    }

    fn missing(&self) -> Missing {
        Missing::Viable
    }
}

/// Removes the elements that are meant from an array.
pub(super) fn remove(
    operator: &str,
    current: &mut Node<'_>,
    mut takes: impl FnMut(RawBsonRef<'_>) -> Result<bool>,
) -> Result<Change> {
    let Some(elements) = current.elements()? else {
        return Err(Error::bad_value(format!("Cannot apply {operator} to a non-array value")));
    };
    let before = elements.len();
    let mut failure = None;
    elements.retain(|element| {
        let taken = failure.is_none()
            && match element.value().and_then(|value| takes(value.or_null())) {
                Ok(taken) => taken,
                Err(error) => {
                    failure = Some(error);
                    false
                }
            };
        !taken
    });
    match failure {
        Some(error) => Err(error),
        None if elements.len() == before => Ok(Change::None),
        None => Ok(Change::Modified),
    }
}
