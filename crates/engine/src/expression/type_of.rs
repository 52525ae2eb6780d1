//! `{$type: expression}`: the name of the value's BSON type, `missing` when there is none.
//!
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/aggregation/type/>.

use super::{Compiled, Expression, Operator, Parser, Scope, exactly};
use crate::document::Value;
use crate::error::Result;
use bson::RawBsonRef;

pub(super) const OPERATOR: Operator = Operator { name: "$type", parse: parse_type };

#[derive(Debug)]
struct TypeOf {
    operand: Compiled,
}

fn parse_type(argument: RawBsonRef<'_>, parser: &mut Parser) -> Result<Compiled> {
    let [operand] = exactly("$type", argument, parser)?;
    Ok(Box::new(TypeOf { operand }))
}

impl Expression for TypeOf {
    fn evaluate<'a>(&'a self, scope: &Scope<'a>) -> Result<Value<'a>> {
        Ok(self.operand.evaluate(scope)?.type_name().to_owned().into())
    }

    fn each_operand(&self, visit: &mut dyn FnMut(&dyn Expression)) {
        visit(&*self.operand);
    }
}
