//! `{$ifNull: [expression, …, replacement]}`: the first value that is neither null nor missing, else the replacement's.
//!
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/aggregation/ifNull/>.

use super::{Compiled, Expression, Operator, Parser, Scope, arguments};
use crate::document::Value;
use crate::error::{Error, Result};
use bson::RawBsonRef;

pub(super) const OPERATOR: Operator = Operator { name: "$ifNull", parse: parse_if_null };

#[derive(Debug)]
struct IfNull {
    operands: Vec<Compiled>,
}

fn parse_if_null(argument: RawBsonRef<'_>, parser: &mut Parser) -> Result<Compiled> {
    let operands = arguments("$ifNull", argument, 0..=usize::MAX, parser)?;
    if operands.len() < 2 {
        return Err(Error::location(1257300, format!("$ifNull needs at least two arguments, had: {}", operands.len())));
    }
    Ok(Box::new(IfNull { operands }))
}

impl Expression for IfNull {
    fn evaluate<'a>(&'a self, scope: &Scope<'a>) -> Result<Value<'a>> {
        let mut value = Value::Missing;
        for operand in &self.operands {
            value = operand.evaluate(scope)?;
            if !value.is_nullish() {
                break;
            }
        }
        Ok(value)
    }

    fn each_operand(&self, visit: &mut dyn FnMut(&dyn Expression)) {
        self.operands.iter().for_each(|operand| visit(&**operand));
    }
}
