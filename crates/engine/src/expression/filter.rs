//! `{$filter: {input, as, cond, limit}}`: the elements of an array for which a condition is true.
//!
//! The element is `$$this` unless `as` names it. Null when the input is null or missing. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/aggregation/filter/>.

use super::operand::{as_array, named, required, variable_name, whole_i32};
use super::{Compiled, Expression, Operator, Parser, Scope, VariableId, parse};
use crate::document::Value;
use crate::error::{Error, Result};
use bson::{RawArrayBuf, RawBsonRef};

pub(super) const OPERATOR: Operator = Operator { name: "$filter", parse: parse_filter };

#[derive(Debug)]
struct Filter {
    input: Compiled,
    variable: VariableId,
    condition: Compiled,
    limit: Option<Compiled>,
}

fn parse_filter(argument: RawBsonRef<'_>, parser: &mut Parser) -> Result<Compiled> {
    let [input, name, condition, limit] = named("$filter", argument, ["input", "as", "cond", "limit"], 28646, 28647)?;
    let missing = |code, name| Error::location(code, format!("$filter needs the argument '{name}'"));
    let input = input.ok_or_else(|| missing(28648, "input"))?;
    let condition = condition.ok_or_else(|| missing(28650, "cond"))?;
    let name = variable_name(name, "this")?;
    let input = parse(input, parser)?;
    let limit = limit.map(|limit| parse(limit, parser)).transpose()?;
    parser.scoped(|parser| {
        let variable = parser.define(name);
        let condition = required("$filter", "cond", Some(condition), 28650, parser)?;
        Ok(Box::new(Filter { input, variable, condition, limit }) as Compiled)
    })
}

impl Expression for Filter {
    fn evaluate<'a>(&'a self, scope: &Scope<'a>) -> Result<Value<'a>> {
        let input = self.input.evaluate(scope)?;
        if input.is_nullish() {
            return Ok(Value::NULL);
        }
        let Some(array) = as_array(&input) else {
            return Err(Error::location(
                28651,
                format!("$filter takes an array as 'input', not {}", input.type_name()),
            ));
        };
        let limit = match &self.limit {
            Some(limit) => limit_of(&limit.evaluate(scope)?)?,
            None => usize::MAX,
        };
        let (mut kept, mut count) = (RawArrayBuf::new(), 0);
        for element in array {
            let element = element?;
            let binding = scope.bind(self.variable, Value::Borrowed(element));
            if self.condition.evaluate(&scope.with(&binding))?.is_true() {
                kept.push(element);
                count += 1;
                if count == limit {
                    break;
                }
            }
        }
        Ok(kept.into())
    }

    fn each_operand(&self, visit: &mut dyn FnMut(&dyn Expression)) {
        visit(&*self.input);
        visit(&*self.condition);
        if let Some(limit) = &self.limit {
            visit(&**limit);
        }
    }
}

fn limit_of(limit: &Value<'_>) -> Result<usize> {
    if limit.is_nullish() {
        return Ok(usize::MAX);
    }
    let number = whole_i32(limit.or_null()).ok_or_else(|| {
        Error::location(327_391, format!("$filter takes a 32-bit integer as 'limit', not {}", limit.type_name()))
    })?;
    match usize::try_from(number) {
        Ok(limit) if limit > 0 => Ok(limit),
        _ => Err(Error::location(327_392, format!("$filter takes a 'limit' greater than 0, not {number}"))),
    }
}
