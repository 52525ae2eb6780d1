//! `{$or: [expression, …]}`: whether an operand is true; `false` without operands.
//!
//! Operands after the first true one are not evaluated, and a constant that decides leaves nothing to evaluate. Null, missing and zero are false, all other values are true.
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/aggregation/or/>.

use super::{Compiled, Expression, Literal, Operator, Parser, Scope, arguments};
use crate::document::Value;
use crate::error::Result;
use bson::RawBsonRef;

pub(super) const OPERATOR: Operator = Operator { name: "$or", parse: parse_or };

#[derive(Debug)]
struct Or {
    operands: Vec<Compiled>,
}

fn parse_or(argument: RawBsonRef<'_>, parser: &mut Parser) -> Result<Compiled> {
    let operands = arguments("$or", argument, 0..=usize::MAX, parser)?;
    let truth = |operand: &Compiled| operand.constant().map(|value| Value::from(value).is_true());
    if operands.iter().any(|operand| truth(operand) == Some(true)) {
        return Ok(Box::new(Literal::new(RawBsonRef::Boolean(true))));
    }
    Ok(Box::new(Or { operands }))
}

impl Expression for Or {
    fn evaluate<'a>(&'a self, scope: &Scope<'a>) -> Result<Value<'a>> {
        for operand in &self.operands {
            if operand.evaluate(scope)?.is_true() {
                return Ok(true.into());
            }
        }
        Ok(false.into())
    }

    fn each_operand(&self, visit: &mut dyn FnMut(&dyn Expression)) {
        self.operands.iter().for_each(|operand| visit(&**operand));
    }
}
