//! `{$toHashedIndexKey: value}`: the hash that MongoDB's hashed indexes give a value.
//!
//! Our own hashed indexes store another one. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/aggregation/toHashedIndexKey/>.

use super::Operator;
use super::operand::function;
use crate::document::{Value, hash::hash};

pub(super) const OPERATOR: Operator = Operator {
    name: "$toHashedIndexKey",
    parse: |argument, parser| {
        function("$toHashedIndexKey", argument, parser, |[value], _| Ok(Value::from(hash(value.or_null())?)))
    },
};
