//! `{$min: {path: value, …}}`: sets a field if the value is smaller in BSON order, or the field is missing.
//!
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/update/min/>.

use crate::document::{RawBson, compare_values};
use crate::error::Result;
use crate::update::apply::At;
use crate::update::node::Node;
use crate::update::{Change, Modifier, Operator};
use std::cmp::Ordering;

pub(super) const OPERATOR: Operator = Operator {
    name: "$min",
    parse: |path, value, _| {
        Ok(vec![(
            path.to_owned(),
            Box::new(Extreme { value: value.into(), wins: Ordering::Less }) as Box<dyn Modifier>,
        )])
    },
};

/// A value that replaces the field's if it wins the comparison with it.
#[derive(Debug)]
pub(super) struct Extreme {
    pub(super) value: RawBson,
    pub(super) wins: Ordering,
}

impl Modifier for Extreme {
    fn modify<'a>(&'a self, current: &mut Node<'a>, at: &At<'_, 'a>) -> Result<Change> {
        let value = self.value.as_raw_bson_ref();
        if compare_values(value, current.value()?.or_null(), at.collator)? != self.wins {
            return Ok(Change::None);
        }
        *current = Node::Raw(value);
        Ok(Change::Modified)
    }

    fn create<'a>(&'a self, _: &At<'_, 'a>) -> Result<Option<Node<'a>>> {
        Ok(Some(Node::Raw(self.value.as_raw_bson_ref())))
    }
}
