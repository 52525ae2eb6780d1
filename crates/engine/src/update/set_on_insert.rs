//! `{$setOnInsert: {path: value, …}}`: as `$set`, but only when an upsert inserts.
//!
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/update/setOnInsert/>.

use crate::document::RawBson;
use crate::error::Result;
use crate::update::apply::At;
use crate::update::node::Node;
use crate::update::set::assign;
use crate::update::{Change, Modifier, Operator};

pub(super) const OPERATOR: Operator = Operator {
    name: "$setOnInsert",
    parse: |path, value, _| {
        Ok(vec![(path.to_owned(), Box::new(SetOnInsert { value: value.into() }) as Box<dyn Modifier>)])
    },
};

#[derive(Debug)]
struct SetOnInsert {
    value: RawBson,
}

impl Modifier for SetOnInsert {
    fn modify<'a>(&'a self, current: &mut Node<'a>, _: &At<'_, 'a>) -> Result<Change> {
        assign(current, self.value.as_raw_bson_ref())
    }

    fn create<'a>(&'a self, _: &At<'_, 'a>) -> Result<Option<Node<'a>>> {
        Ok(Some(Node::Raw(self.value.as_raw_bson_ref())))
    }

    fn inserts_only(&self) -> bool {
        true
    }
}
