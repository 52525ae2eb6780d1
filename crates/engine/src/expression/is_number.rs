//! `{$isNumber: expression}`: whether the value is an int, a long, a double or a decimal.
//!
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/aggregation/isNumber/>.

use super::{Compiled, Expression, Operator, Parser, Scope, exactly};
use crate::document::{Number, Value};
use crate::error::Result;
use bson::RawBsonRef;

pub(super) const OPERATOR: Operator = Operator { name: "$isNumber", parse: parse_is_number };

#[derive(Debug)]
struct IsNumber {
    operand: Compiled,
}

fn parse_is_number(argument: RawBsonRef<'_>, parser: &mut Parser) -> Result<Compiled> {
    let [operand] = exactly("$isNumber", argument, parser)?;
    Ok(Box::new(IsNumber { operand }))
}

impl Expression for IsNumber {
    fn evaluate<'a>(&'a self, scope: &Scope<'a>) -> Result<Value<'a>> {
        Ok(Number::of(self.operand.evaluate(scope)?.or_null()).is_some().into())
    }

    fn each_operand(&self, visit: &mut dyn FnMut(&dyn Expression)) {
        visit(&*self.operand);
    }
}
