//! `{$let: {vars: {name: expression, …}, in: expression}}`: an expression with variables.
//!
//! The variables don't see one another. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/aggregation/let/>.

use super::operand::{check_bound_name, named};
use super::{Binding, Compiled, Expression, Operator, Parser, Scope, VariableId, parse};
use crate::document::{Value, type_name};
use crate::error::{Code, Error, Result};
use bson::RawBsonRef;

pub(super) const OPERATOR: Operator = Operator { name: "$let", parse: parse_let };

#[derive(Debug)]
struct Let {
    variables: Vec<(VariableId, Compiled)>,
    body: Compiled,
}

fn parse_let(argument: RawBsonRef<'_>, parser: &mut Parser) -> Result<Compiled> {
    let [variables, body] = named("$let", argument, ["vars", "in"], 16874, 16875)?;
    let missing = |code, name| Error::location(code, format!("$let needs the argument '{name}'"));
    let variables = variables.ok_or_else(|| missing(16876, "vars"))?;
    let body = body.ok_or_else(|| missing(16877, "in"))?;
    let variables = match variables {
        RawBsonRef::Document(variables) => variables,
        RawBsonRef::Array(_) => {
            return Err(Error::failed_to_parse("$let takes an object as 'vars', not an array"));
        }
        other => {
            return Err(Error::new(Code(10065), format!("$let takes an object as 'vars', not {}", type_name(other))));
        }
    };
    let mut parsed: Vec<(&str, Compiled)> = Vec::new();
    for variable in variables {
        let (name, value) = variable?;
        check_bound_name(name.as_str())?;
        parsed.push((name.as_str(), parse(value, parser)?));
    }
    parser.scoped(|parser| {
        let variables = parsed.into_iter().map(|(name, value)| (parser.define(name), value)).collect();
        Ok(Box::new(Let { variables, body: parse(body, parser)? }) as Compiled)
    })
}

impl Let {
    /// Binds the variables one after another, each seeing only what was in scope outside, then evaluates the body.
    fn bind_rest<'a, 'b>(
        &'a self,
        values: &mut std::vec::IntoIter<Value<'a>>,
        outer: &Scope<'b>,
        position: usize,
    ) -> Result<Value<'static>>
    where
        'a: 'b,
    {
        let Some(value) = values.next() else { return Ok(self.body.evaluate(outer)?.into_owned()) };
        let binding: Binding<'_> = outer.bind(self.variables[position].0, value);
        self.bind_rest(values, &outer.with(&binding), position + 1)
    }
}

impl Expression for Let {
    fn evaluate<'a>(&'a self, scope: &Scope<'a>) -> Result<Value<'a>> {
        let values = self.variables.iter().map(|(_, value)| value.evaluate(scope)).collect::<Result<Vec<_>>>()?;
        self.bind_rest(&mut values.into_iter(), scope, 0)
    }

    fn each_operand(&self, visit: &mut dyn FnMut(&dyn Expression)) {
        self.variables.iter().for_each(|(_, value)| visit(&**value));
        visit(&*self.body);
    }
}
