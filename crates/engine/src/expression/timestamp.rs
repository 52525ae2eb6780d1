//! What `$tsSecond` and `$tsIncrement` share.

use super::numeric::folded;
use super::{Compiled, Expression, Parser, Scope, exactly};
use crate::document::Value;
use crate::error::{Error, Result};
use bson::{RawBsonRef, Timestamp};

#[derive(Debug)]
struct TimestampPart {
    name: &'static str,
    operand: Compiled,
    code: i32,
    part: fn(Timestamp) -> u32,
}

/// Parses an operator that takes a part of a timestamp; other types are refused with `code`.
pub(super) fn timestamp_part(
    name: &'static str,
    argument: RawBsonRef<'_>,
    parser: &mut Parser,
    code: i32,
    part: fn(Timestamp) -> u32,
) -> Result<Compiled> {
    let [operand] = exactly(name, argument, parser)?;
    folded(TimestampPart { name, operand, code, part })
}

impl Expression for TimestampPart {
    fn evaluate<'a>(&'a self, scope: &Scope<'a>) -> Result<Value<'a>> {
        let value = self.operand.evaluate(scope)?;
        match value.or_null() {
            RawBsonRef::Timestamp(timestamp) => Ok(i64::from((self.part)(timestamp)).into()),
            _ if value.is_nullish() => Ok(Value::NULL),
            _ => Err(Error::location(
                self.code,
                format!("Argument to {} must be a timestamp, but is {}", self.name, value.type_name()),
            )),
        }
    }

    fn each_operand(&self, visit: &mut dyn FnMut(&dyn Expression)) {
        visit(&*self.operand);
    }
}
