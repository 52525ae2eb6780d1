//! `{$set: {path: value, …}}`: gives a field a value, creating the path where it is missing.
//!
//! New fields are appended in the order of their names, numbers in numeric order. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/update/set/>.

use crate::document::{RawBson, RawBsonRef};
use crate::error::Result;
use crate::update::apply::At;
use crate::update::node::Node;
use crate::update::{Change, Modifier, Operator};

pub(super) const OPERATOR: Operator = Operator {
    name: "$set",
    parse: |path, value, _| Ok(vec![(path.to_owned(), Box::new(Set { value: value.into() }) as Box<dyn Modifier>)]),
};

#[derive(Debug)]
struct Set {
    value: RawBson,
}

impl Modifier for Set {
    fn modify<'a>(&'a self, current: &mut Node<'a>, _: &At<'_, 'a>) -> Result<Change> {
        assign(current, self.value.as_raw_bson_ref())
    }

    fn create<'a>(&'a self, _: &At<'_, 'a>) -> Result<Option<Node<'a>>> {
        Ok(Some(Node::Raw(self.value.as_raw_bson_ref())))
    }
}

/// Gives a field a value, unless it has the very same one.
pub(super) fn assign<'a>(current: &mut Node<'a>, value: RawBsonRef<'a>) -> Result<Change> {
    if identical(current.value()?.or_null(), value) {
        return Ok(Change::None);
    }
    *current = Node::Raw(value);
    Ok(Change::Modified)
}

/// Whether two values are the same in type and bytes.
pub(super) fn identical(a: RawBsonRef<'_>, b: RawBsonRef<'_>) -> bool {
    match (a, b) {
        (RawBsonRef::Double(a), RawBsonRef::Double(b)) => a.to_bits() == b.to_bits(),
        (RawBsonRef::Document(a), RawBsonRef::Document(b)) => a.as_bytes() == b.as_bytes(),
        (RawBsonRef::Array(a), RawBsonRef::Array(b)) => a.as_bytes() == b.as_bytes(),
        (a, b) => a.element_type() == b.element_type() && a == b,
    }
}
