//! `{$map: {input, as, in}}`: an expression of each element of an array.
//!
//! The element is `$$this` unless `as` names it. Null when the input is null or missing. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/aggregation/map/>.

use super::operand::{as_array, named, variable_name};
use super::{Compiled, Expression, Operator, Parser, Scope, VariableId, parse};
use crate::document::Value;
use crate::error::{Error, Result};
use bson::{RawArrayBuf, RawBsonRef};

pub(super) const OPERATOR: Operator = Operator { name: "$map", parse: parse_map };

#[derive(Debug)]
struct Map {
    input: Compiled,
    variable: VariableId,
    body: Compiled,
}

fn parse_map(argument: RawBsonRef<'_>, parser: &mut Parser) -> Result<Compiled> {
    let [input, name, body] = named("$map", argument, ["input", "as", "in"], 16878, 16879)?;
    let missing = |code, name| Error::location(code, format!("$map needs the argument '{name}'"));
    let input = input.ok_or_else(|| missing(16880, "input"))?;
    let body = body.ok_or_else(|| missing(16882, "in"))?;
    let name = variable_name(name, "this")?;
    let input = parse(input, parser)?;
    parser.scoped(|parser| {
        let variable = parser.define(name);
        Ok(Box::new(Map { input, variable, body: parse(body, parser)? }) as Compiled)
    })
}

impl Expression for Map {
    fn evaluate<'a>(&'a self, scope: &Scope<'a>) -> Result<Value<'a>> {
        let input = self.input.evaluate(scope)?;
        if input.is_nullish() {
            return Ok(Value::NULL);
        }
        let Some(array) = as_array(&input) else {
            return Err(Error::location(16883, format!("$map takes an array as 'input', not {}", input.type_name())));
        };
        let mut mapped = RawArrayBuf::new();
        for element in array {
            let binding = scope.bind(self.variable, Value::Borrowed(element?));
            mapped.push(self.body.evaluate(&scope.with(&binding))?.or_null());
        }
        Ok(mapped.into())
    }

    fn each_operand(&self, visit: &mut dyn FnMut(&dyn Expression)) {
        visit(&*self.input);
        visit(&*self.body);
    }
}
