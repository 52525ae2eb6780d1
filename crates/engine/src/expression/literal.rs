//! `{$literal: value}`: the value as it stands, not parsed. Also what constants compile to.
//!
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/aggregation/literal/>.

use super::{Compiled, Expression, Operator, Scope};
use crate::document::Value;
use crate::error::Result;
use bson::{RawBson, RawBsonRef};

pub(super) const OPERATOR: Operator =
    Operator { name: "$literal", parse: |argument, _| Ok(Box::new(Literal::new(argument)) as Compiled) };

/// The other name of `$literal`.
pub(super) const CONST: Operator = Operator { name: "$const", parse: OPERATOR.parse };

/// A constant.
#[derive(Debug)]
pub struct Literal {
    value: RawBson,
}

impl Literal {
    /// The constant of a value.
    pub fn new(value: RawBsonRef<'_>) -> Literal {
        Literal { value: value.into() }
    }
}

impl Expression for Literal {
    fn evaluate<'a>(&'a self, _: &Scope<'a>) -> Result<Value<'a>> {
        Ok(Value::Borrowed(self.value.as_raw_bson_ref()))
    }

    fn constant(&self) -> Option<RawBsonRef<'_>> {
        Some(self.value.as_raw_bson_ref())
    }
}
