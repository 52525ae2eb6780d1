//! `{$reduce: {input, initialValue, in}}`: an array folded into one value.
//!
//! `in` sees the value so far as `$$value` and the element as `$$this`. Null when the input is null or missing.
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/aggregation/reduce/>.

use super::operand::{as_array, named};
use super::{Compiled, Expression, Operator, Parser, Scope, VariableId, parse};
use crate::document::Value;
use crate::error::{Error, Result};
use bson::RawBsonRef;

pub(super) const OPERATOR: Operator = Operator { name: "$reduce", parse: parse_reduce };

#[derive(Debug)]
struct Reduce {
    input: Compiled,
    initial: Compiled,
    body: Compiled,
    this: VariableId,
    value: VariableId,
}

fn parse_reduce(argument: RawBsonRef<'_>, parser: &mut Parser) -> Result<Compiled> {
    let [input, initial, body] = named("$reduce", argument, ["input", "initialValue", "in"], 40075, 40076)?;
    let missing = |code, name| Error::location(code, format!("$reduce needs the argument '{name}'"));
    let input = input.ok_or_else(|| missing(40077, "input"))?;
    let initial = initial.ok_or_else(|| missing(40078, "initialValue"))?;
    let body = body.ok_or_else(|| missing(40079, "in"))?;
    let (input, initial) = (parse(input, parser)?, parse(initial, parser)?);
    parser.scoped(|parser| {
        let (this, value) = (parser.define("this"), parser.define("value"));
        Ok(Box::new(Reduce { input, initial, body: parse(body, parser)?, this, value }) as Compiled)
    })
}

impl Expression for Reduce {
    fn evaluate<'a>(&'a self, scope: &Scope<'a>) -> Result<Value<'a>> {
        let input = self.input.evaluate(scope)?;
        if input.is_nullish() {
            return Ok(Value::NULL);
        }
        let Some(array) = as_array(&input) else {
            return Err(Error::location(
                40080,
                format!("$reduce takes an array as 'input', not {}", input.type_name()),
            ));
        };
        let mut value = self.initial.evaluate(scope)?.into_owned();
        for element in array {
            let this = scope.bind(self.this, Value::Borrowed(element?));
            let scope = scope.with(&this);
            let so_far = scope.bind(self.value, value);
            value = self.body.evaluate(&scope.with(&so_far))?.into_owned();
        }
        Ok(value)
    }

    fn each_operand(&self, visit: &mut dyn FnMut(&dyn Expression)) {
        visit(&*self.input);
        visit(&*self.initial);
        visit(&*self.body);
    }
}
