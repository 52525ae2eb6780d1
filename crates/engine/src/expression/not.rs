//! `{$not: [expression]}`: whether the value is false, null, missing or zero.
//!
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/aggregation/not/>.

use super::{Compiled, Expression, Operator, Parser, Scope, exactly};
use crate::document::Value;
use crate::error::Result;
use bson::RawBsonRef;

pub(super) const OPERATOR: Operator = Operator { name: "$not", parse: parse_not };

#[derive(Debug)]
struct Not {
    operand: Compiled,
}

fn parse_not(argument: RawBsonRef<'_>, parser: &mut Parser) -> Result<Compiled> {
    let [operand] = exactly("$not", argument, parser)?;
    Ok(Box::new(Not { operand }))
}

impl Expression for Not {
    fn evaluate<'a>(&'a self, scope: &Scope<'a>) -> Result<Value<'a>> {
        Ok((!self.operand.evaluate(scope)?.is_true()).into())
    }

    fn each_operand(&self, visit: &mut dyn FnMut(&dyn Expression)) {
        visit(&*self.operand);
    }
}
