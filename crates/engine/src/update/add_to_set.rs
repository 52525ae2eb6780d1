//! `{$addToSet: {path: value | {$each: [value, …]}, …}}`: appends the values that an array does not hold yet.
//!
//! Duplicates among the new values are added once; those already in the array stay. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/update/addToSet/>.

use crate::document::collation::Collator;
use crate::document::{RawArrayBuf, RawBsonRef, type_name, values_equal};
use crate::error::{Error, Result};
use crate::update::apply::At;
use crate::update::node::Node;
use crate::update::{Change, Entries, Modifier, Operator, ParseContext};

pub(super) const OPERATOR: Operator = Operator { name: "$addToSet", parse };

#[derive(Debug)]
struct AddToSet {
    values: RawArrayBuf,
}

fn parse(path: &str, value: RawBsonRef<'_>, _: &mut ParseContext<'_>) -> Result<Entries> {
    let mut values = RawArrayBuf::new();
    match each(value)? {
        Some(each) => {
            for value in each {
                values.push(value?);
            }
        }
        None => values.push(value),
    }
    Ok(vec![(path.to_owned(), Box::new(AddToSet { values }))])
}

/// The array of `{$each: […]}`; `None` for any value that does not begin so.
fn each(value: RawBsonRef<'_>) -> Result<Option<&bson::RawArray>> {
    let RawBsonRef::Document(document) = value else { return Ok(None) };
    let mut found = None;
    for (position, field) in document.iter().enumerate() {
        let (name, value) = field?;
        match (position, name.as_str(), value) {
            (0, "$each", RawBsonRef::Array(array)) => found = Some(array),
            (0, "$each", other) => {
                return Err(Error::type_mismatch(format!(
                    "The argument to $each in $addToSet must be an array but it was of type {}",
                    type_name(other)
                )));
            }
            (0, _, _) => return Ok(None),
            (_, other, _) => {
                return Err(Error::bad_value(format!("Found unexpected fields after $each in $addToSet: {other}")));
            }
        }
    }
    Ok(found)
}

/// Appends what is not there yet; whether something was.
fn add<'a>(elements: &mut Vec<Node<'a>>, values: &'a RawArrayBuf, collator: Option<&Collator>) -> Result<bool> {
    let before = elements.len();
    'values: for value in values {
        let value = value?;
        for element in &*elements {
            if values_equal(element.value()?.or_null(), value, collator)? {
                continue 'values;
            }
        }
        elements.push(Node::Raw(value));
    }
    Ok(elements.len() > before)
}

impl Modifier for AddToSet {
    fn modify<'a>(&'a self, current: &mut Node<'a>, at: &At<'_, 'a>) -> Result<Change> {
        let Some(elements) = current.elements()? else {
            let value = current.value()?;
            return Err(Error::bad_value(format!(
                "Cannot apply $addToSet to non-array field. Field named '{}' has non-array type {}",
                at.name(),
                type_name(value.or_null())
            )));
        };
        Ok(if add(elements, &self.values, at.collator)? { Change::Modified } else { Change::None })
    }

    fn create<'a>(&'a self, at: &At<'_, 'a>) -> Result<Option<Node<'a>>> {
        let mut elements = Vec::new();
        add(&mut elements, &self.values, at.collator)?;
        Ok(Some(Node::Array(elements)))
    }
}
