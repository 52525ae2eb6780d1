//! What the `$to…` operators share: `$convert` with a fixed target.

use super::conversion::{Manner, Target, convert};
use super::numeric::folded;
use super::{Compiled, Expression, Parser, Scope, parse};
use crate::document::Value;
use crate::error::{Error, Result};
use bson::RawBsonRef;

#[derive(Debug)]
struct Shorthand {
    operand: Compiled,
    target: Target,
}

/// Parses an operator that converts its operand to one type; null gives null.
pub(super) fn shorthand(
    name: &'static str,
    argument: RawBsonRef<'_>,
    parser: &mut Parser,
    target: Target,
) -> Result<Compiled> {
    let operand = match argument {
        RawBsonRef::Array(array) => {
            let mut elements = array.into_iter();
            match (elements.next(), elements.next()) {
                (Some(operand), None) => parse(operand?, parser)?,
                _ => return Err(Error::location(50723, format!("{name} requires a single argument"))),
            }
        }
        operand => parse(operand, parser)?,
    };
    folded(Shorthand { operand, target })
}

impl Expression for Shorthand {
    fn evaluate<'a>(&'a self, scope: &Scope<'a>) -> Result<Value<'a>> {
        let value = self.operand.evaluate(scope)?;
        if value.is_nullish() {
            return Ok(Value::NULL);
        }
        convert(value.or_null(), self.target, Manner::default())
    }

    fn each_operand(&self, visit: &mut dyn FnMut(&dyn Expression)) {
        visit(&*self.operand);
    }
}
