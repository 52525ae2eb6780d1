//! `{$unset: {path: "", …}}`: removes a field; an array element becomes null. The value is ignored.
//!
//! A path that does not exist, or cannot, is no error. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/update/unset/>.

use crate::error::Result;
use crate::update::apply::At;
use crate::update::node::Node;
use crate::update::{Change, Missing, Modifier, Operator};

pub(super) const OPERATOR: Operator =
    Operator { name: "$unset", parse: |path, _, _| Ok(vec![(path.to_owned(), Box::new(Unset) as Box<dyn Modifier>)]) };

#[derive(Debug)]
struct Unset;

impl Modifier for Unset {
    fn modify<'a>(&'a self, _: &mut Node<'a>, _: &At<'_, 'a>) -> Result<Change> {
        Ok(Change::Remove)
    }

    fn missing(&self) -> Missing {
        Missing::Ignore
    }
}
