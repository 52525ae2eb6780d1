//! `{$and: [expression, …]}`: whether all operands are true; `true` without operands.
//!
//! Operands after the first false one are not evaluated, and a constant that decides leaves nothing to evaluate. Null, missing and zero are false, all other values are true.
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/aggregation/and/>.

use super::{Compiled, Expression, Literal, Operator, Parser, Scope, arguments};
use crate::document::Value;
use crate::error::Result;
use bson::RawBsonRef;

pub(super) const OPERATOR: Operator = Operator { name: "$and", parse: parse_and };

#[derive(Debug)]
struct And {
    operands: Vec<Compiled>,
}

fn parse_and(argument: RawBsonRef<'_>, parser: &mut Parser) -> Result<Compiled> {
    let operands = arguments("$and", argument, 0..=usize::MAX, parser)?;
    let truth = |operand: &Compiled| operand.constant().map(|value| Value::from(value).is_true());
    if operands.iter().any(|operand| truth(operand) == Some(false)) {
        return Ok(Box::new(Literal::new(RawBsonRef::Boolean(false))));
    }
    Ok(Box::new(And { operands }))
}

impl Expression for And {
    fn evaluate<'a>(&'a self, scope: &Scope<'a>) -> Result<Value<'a>> {
        for operand in &self.operands {
            if !operand.evaluate(scope)?.is_true() {
                return Ok(false.into());
            }
        }
        Ok(true.into())
    }

    fn each_operand(&self, visit: &mut dyn FnMut(&dyn Expression)) {
        self.operands.iter().for_each(|operand| visit(&**operand));
    }
}
