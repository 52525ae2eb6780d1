//! `{$getField: {field, input}}` or `{$getField: field}`: a field of an object (of `$$CURRENT` by default) by its exact
//! name, dots and dollars included.
//!
//! Missing when there is no such field or the input is missing or no object, null when the input is null. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/aggregation/getField/>.

use super::{Compiled, Expression, Literal, Operator, Parser, Scope, VariableId, parse};
use crate::document::{Value, get, type_name};
use crate::error::{Error, Result};
use bson::{RawBson, RawBsonRef};

pub(super) const OPERATOR: Operator = Operator { name: "$getField", parse: parse_get_field };

#[derive(Debug)]
struct GetField {
    field: Compiled,
    /// `None` for the current document.
    input: Option<Compiled>,
    current: VariableId,
}

fn parse_get_field(argument: RawBsonRef<'_>, parser: &mut Parser) -> Result<Compiled> {
    let current = parser.lookup("CURRENT")?;
    let (field, input) = match argument {
        RawBsonRef::Document(document) if !is_expression(argument) => {
            let (mut field, mut input) = (None, None);
            for entry in document {
                let (name, value) = entry?;
                match name.as_str() {
                    "field" => field = Some(value),
                    "input" => input = Some(value),
                    other => {
                        return Err(Error::location(
                            3_041_701,
                            format!("$getField has no argument '{other}': it takes field, input"),
                        ));
                    }
                }
            }
            let field = field.ok_or_else(|| Error::location(3_041_702, "$getField needs the argument 'field'"))?;
            let input = input.ok_or_else(|| Error::location(3_041_703, "$getField needs the argument 'input'"))?;
            (field, Some(parse(input, parser)?))
        }
        short => (short, None),
    };
    let field = name_expression(field, parser)?;
    if let Some(constant) = field.constant() {
        name_of(constant)?;
    }
    Ok(Box::new(GetField { field, input, current }))
}

/// Whether an object is an operator expression.
fn is_expression(argument: RawBsonRef<'_>) -> bool {
    let RawBsonRef::Document(document) = argument else { return false };
    matches!(document.iter().next(), Some(Ok((name, _))) if name.as_str().starts_with('$'))
}

fn name_expression(field: RawBsonRef<'_>, parser: &mut Parser) -> Result<Compiled> {
    match field {
        RawBsonRef::Document(_) | RawBsonRef::String(_) | RawBsonRef::Array(_) => parse(field, parser),
        other => Ok(Box::new(Literal::new(other))),
    }
}

fn name_of(value: RawBsonRef<'_>) -> Result<&str> {
    match value {
        RawBsonRef::String(name) => Ok(name),
        other => Err(Error::location(
            3_041_704,
            format!("$getField takes an expression that gives a string as 'field', not {}", type_name(other)),
        )),
    }
}

impl Expression for GetField {
    fn evaluate<'a>(&'a self, scope: &Scope<'a>) -> Result<Value<'a>> {
        let field = self.field.evaluate(scope)?;
        let name = match field.get() {
            Some(value) => name_of(value)?,
            None => {
                return Err(Error::location(
                    3_041_704,
                    "$getField takes an expression that gives a string as 'field', but it gave nothing",
                ));
            }
        };
        let input = match &self.input {
            Some(input) => input.evaluate(scope)?,
            None => scope.variable(self.current),
        };
        Ok(match input {
            Value::Borrowed(RawBsonRef::Document(document)) => {
                get(document, name)?.map_or(Value::Missing, Value::Borrowed)
            }
            Value::Owned(RawBson::Document(document)) => {
                get(&document, name)?.map_or(Value::Missing, |value| Value::Owned(value.into()))
            }
            Value::Missing => Value::Missing,
            input if input.is_nullish() => Value::NULL,
            _ => Value::Missing,
        })
    }

    fn each_operand(&self, visit: &mut dyn FnMut(&dyn Expression)) {
        visit(&*self.field);
        if let Some(input) = &self.input {
            visit(&**input);
        }
    }

    /// Without an input, any field of the current document may be read.
    fn reads(&self) -> Option<(VariableId, &str)> {
        self.input.is_none().then_some((self.current, ""))
    }
}
