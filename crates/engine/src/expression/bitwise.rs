//! What `$bitAnd`, `$bitOr` and `$bitXor` share.

use super::numeric::folded;
use super::{Compiled, Expression, Parser, Scope, arguments};
use crate::document::Value;
use crate::error::{Error, Result};
use bson::RawBsonRef;

#[derive(Debug)]
struct Bitwise {
    name: &'static str,
    operands: Vec<Compiled>,
    start: i32,
    combine: fn(i64, i64) -> i64,
}

/// Parses an operator that combines the bits of integers, beginning with `start`.
pub(super) fn bitwise(
    name: &'static str,
    argument: RawBsonRef<'_>,
    parser: &mut Parser,
    start: i32,
    combine: fn(i64, i64) -> i64,
) -> Result<Compiled> {
    let operands = arguments(name, argument, 0..=usize::MAX, parser)?;
    folded(Bitwise { name, operands, start, combine })
}

impl Expression for Bitwise {
    fn evaluate<'a>(&'a self, scope: &Scope<'a>) -> Result<Value<'a>> {
        let (mut bits, mut is_long) = (i64::from(self.start), false);
        for operand in &self.operands {
            let value = operand.evaluate(scope)?;
            let number = match value.or_null() {
                RawBsonRef::Int32(number) => i64::from(number),
                RawBsonRef::Int64(number) => {
                    is_long = true;
                    number
                }
                _ if value.is_nullish() => return Ok(Value::NULL),
                _ => {
                    return Err(Error::type_mismatch(format!(
                        "{} only supports int and long operands, not {}",
                        self.name,
                        value.type_name()
                    )));
                }
            };
            bits = (self.combine)(bits, number);
        }
        Ok(if is_long { bits.into() } else { (bits as i32).into() })
    }

    fn each_operand(&self, visit: &mut dyn FnMut(&dyn Expression)) {
        self.operands.iter().for_each(|operand| visit(&**operand));
    }
}
