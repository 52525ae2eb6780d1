//! `{$cond: [if, then, else]}` or `{$cond: {if, then, else}}`: one of two values by a condition.
//!
//! Only the chosen branch is evaluated. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/aggregation/cond/>.

use super::{Compiled, Expression, Operator, Parser, Scope, exactly, parse};
use crate::document::Value;
use crate::error::{Error, Result};
use bson::RawBsonRef;

pub(super) const OPERATOR: Operator = Operator { name: "$cond", parse: parse_cond };

#[derive(Debug)]
struct Cond {
    condition: Compiled,
    then: Compiled,
    otherwise: Compiled,
}

fn parse_cond(argument: RawBsonRef<'_>, parser: &mut Parser) -> Result<Compiled> {
    let RawBsonRef::Document(document) = argument else {
        let [condition, then, otherwise] = exactly("$cond", argument, parser)?;
        return Ok(Box::new(Cond { condition, then, otherwise }));
    };
    let (mut condition, mut then, mut otherwise) = (None, None, None);
    for field in document {
        let (name, value) = field?;
        let slot = match name.as_str() {
            "if" => &mut condition,
            "then" => &mut then,
            "else" => &mut otherwise,
            other => return Err(Error::location(17083, format!("Unrecognized parameter to $cond: {other}"))),
        };
        *slot = Some(parse(value, parser)?);
    }
    let missing = |number, part| Error::location(number, format!("Missing '{part}' parameter to $cond"));
    Ok(Box::new(Cond {
        condition: condition.ok_or_else(|| missing(17080, "if"))?,
        then: then.ok_or_else(|| missing(17081, "then"))?,
        otherwise: otherwise.ok_or_else(|| missing(17082, "else"))?,
    }))
}

impl Expression for Cond {
    fn evaluate<'a>(&'a self, scope: &Scope<'a>) -> Result<Value<'a>> {
        if self.condition.evaluate(scope)?.is_true() {
            self.then.evaluate(scope)
        } else {
            self.otherwise.evaluate(scope)
        }
    }

    fn each_operand(&self, visit: &mut dyn FnMut(&dyn Expression)) {
        visit(&*self.condition);
        visit(&*self.then);
        visit(&*self.otherwise);
    }
}
