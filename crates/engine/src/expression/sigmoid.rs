//! `{$sigmoid: number}`: `1 / (1 + e^-number)`; a decimal for a decimal, otherwise a double.
//!
//! Null gives null. An array is a value here, never a list of operands. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/aggregation/sigmoid/>.

use super::numeric::{folded, transcendental};
use super::{Compiled, Expression, Operator, Parser, Scope, parse};
use crate::document::decimal::Decimal;
use crate::document::{Number, Value};
use crate::error::{Error, Result};
use bson::RawBsonRef;

pub(super) const OPERATOR: Operator = Operator { name: "$sigmoid", parse: parse_sigmoid };

#[derive(Debug)]
struct Sigmoid {
    operand: Compiled,
}

fn parse_sigmoid(argument: RawBsonRef<'_>, parser: &mut Parser) -> Result<Compiled> {
    folded(Sigmoid { operand: parse(argument, parser)? })
}

impl Expression for Sigmoid {
    fn evaluate<'a>(&'a self, scope: &Scope<'a>) -> Result<Value<'a>> {
        let value = self.operand.evaluate(scope)?;
        if value.is_nullish() {
            return Ok(Value::NULL);
        }
        let number = Number::of(value.or_null()).ok_or_else(|| {
            Error::type_mismatch(format!("$sigmoid only supports numeric types, not {}", value.type_name()))
        })?;
        // Each step of a decimal's is rounded to 34 digits, as in the composition of operators that this abbreviates.
        let decimal = |x: Decimal| Decimal::ONE.divide(Decimal::ONE.add(x.negate().exp()));
        Ok(transcendental(number, |x| 1.0 / (1.0 + (-x).exp()), decimal).into())
    }

    fn each_operand(&self, visit: &mut dyn FnMut(&dyn Expression)) {
        visit(&*self.operand);
    }
}
