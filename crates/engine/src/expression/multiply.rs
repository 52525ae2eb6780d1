//! `{$multiply: [number, …]}`: the product.
//!
//! Null when an operand is null. Integers that overflow become a double. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/aggregation/multiply/>.

use super::numeric::folded;
use super::{Compiled, Expression, Operator, Parser, Scope, arguments};
use crate::document::{Number, Value};
use crate::error::{Error, Result};
use bson::RawBsonRef;

pub(super) const OPERATOR: Operator = Operator { name: "$multiply", parse: parse_multiply };

#[derive(Debug)]
struct Multiply {
    operands: Vec<Compiled>,
}

fn parse_multiply(argument: RawBsonRef<'_>, parser: &mut Parser) -> Result<Compiled> {
    folded(Multiply { operands: arguments("$multiply", argument, 0..=usize::MAX, parser)? })
}

impl Expression for Multiply {
    fn evaluate<'a>(&'a self, scope: &Scope<'a>) -> Result<Value<'a>> {
        let mut product = Number::Int32(1);
        for operand in &self.operands {
            let value = operand.evaluate(scope)?;
            if value.is_nullish() {
                return Ok(Value::NULL);
            }
            let number = Number::of(value.or_null()).ok_or_else(|| {
                Error::type_mismatch(format!("$multiply only supports numeric types, not {}", value.type_name()))
            })?;
            product = product.multiply(number);
        }
        Ok(product.into())
    }

    fn each_operand(&self, visit: &mut dyn FnMut(&dyn Expression)) {
        self.operands.iter().for_each(|operand| visit(&**operand));
    }
}
