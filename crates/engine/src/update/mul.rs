//! `{$mul: {path: number, …}}`: multiplies a number; a missing field becomes zero of the number's type.
//!
//! 32-bit products that overflow become 64-bit; 64-bit ones are refused. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/update/mul/>.

use crate::document::{Number, RawBson};
use crate::error::Result;
use crate::update::apply::At;
use crate::update::inc::{check_argument, compute};
use crate::update::node::Node;
use crate::update::{Change, Modifier, Operator};

pub(super) const OPERATOR: Operator = Operator {
    name: "$mul",
    parse: |path, value, _| {
        check_argument("multiply", path, value)?;
        Ok(vec![(path.to_owned(), Box::new(Mul { by: value.into() }) as Box<dyn Modifier>)])
    },
};

#[derive(Debug)]
struct Mul {
    by: RawBson,
}

impl Modifier for Mul {
    fn modify<'a>(&'a self, current: &mut Node<'a>, at: &At<'_, 'a>) -> Result<Change> {
        compute("$mul", current, self.by.as_raw_bson_ref(), at, Number::checked_multiply)
    }

    fn create<'a>(&'a self, _: &At<'_, 'a>) -> Result<Option<Node<'a>>> {
        let zero = Number::of(self.by.as_raw_bson_ref()).map(|by| RawBson::from(Number::Int32(0).multiply(by)));
        Ok(zero.map(Node::Owned))
    }
}
