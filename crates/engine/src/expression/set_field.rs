//! `{$setField: {field, input, value}}`: an object with a field set, by its exact name, dots and dollars included.
//!
//! A missing value (`$$REMOVE`) removes the field. Null when the input is null or missing. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/aggregation/setField/>.

use super::operand::named;
use super::{Compiled, Expression, Operator, Parser, Scope, parse};
use crate::document::{Value, append, type_name};
use crate::error::{Code, Error, Result};
use bson::{RawBsonRef, RawDocumentBuf};

pub(super) const OPERATOR: Operator = Operator { name: "$setField", parse: parse_set_field };

#[derive(Debug)]
struct SetField {
    name: &'static str,
    field: String,
    input: Compiled,
    /// `None` removes the field.
    value: Option<Compiled>,
}

fn parse_set_field(argument: RawBsonRef<'_>, parser: &mut Parser) -> Result<Compiled> {
    let [field, input, value] = named("$setField", argument, ["field", "input", "value"], 4_161_100, 4_161_101)?;
    let field = field.ok_or_else(|| missing("$setField", "field", 4_161_102))?;
    let value = value.ok_or_else(|| missing("$setField", "value", 4_161_103))?;
    let input = input.ok_or_else(|| missing("$setField", "input", 4_161_109))?;
    finish("$setField", field, input, Some(value), parser)
}

/// The error for an argument that is not there.
pub(super) fn missing(name: &str, argument: &str, code: i32) -> Error {
    Error::location(code, format!("{name} needs the argument '{argument}'"))
}

/// Parses the rest, for `$unsetField` too.
pub(super) fn finish(
    name: &'static str,
    field: RawBsonRef<'_>,
    input: RawBsonRef<'_>,
    value: Option<RawBsonRef<'_>>,
    parser: &mut Parser,
) -> Result<Compiled> {
    let input = parse(input, parser)?;
    let value = value.map(|value| parse(value, parser)).transpose()?;
    let field = constant_name(name, field, parser)?;
    Ok(Box::new(SetField { name, field, input, value }))
}

fn constant_name(name: &str, field: RawBsonRef<'_>, parser: &mut Parser) -> Result<String> {
    if let RawBsonRef::String(text) = field
        && text.starts_with('$')
    {
        return Err(Error::location(
            4_161_108,
            format!("{name} takes a constant as 'field', not a field path: use $literal for a name with a dollar"),
        ));
    }
    let parsed = parse(field, parser)?;
    let Some(constant) = parsed.constant().filter(|_| is_written_constant(field)) else {
        return Err(Error::location(4_161_106, format!("{name} takes a constant as 'field'")));
    };
    match constant {
        RawBsonRef::String(text) if text.contains('\0') => {
            Err(Error::new(Code(9_534_700), "the name of a field may not hold a null byte"))
        }
        RawBsonRef::String(text) => Ok(text.to_owned()),
        other => Err(Error::location(4_161_107, format!("{name} takes a string as 'field', not {}", type_name(other)))),
    }
}

/// Whether a value is a constant as it stands, without being computed.
fn is_written_constant(field: RawBsonRef<'_>) -> bool {
    match field {
        RawBsonRef::Document(object) => match object.iter().next() {
            Some(Ok((name, _))) => matches!(name.as_str(), "$literal" | "$const"),
            _ => true,
        },
        _ => true,
    }
}

impl Expression for SetField {
    fn evaluate<'a>(&'a self, scope: &Scope<'a>) -> Result<Value<'a>> {
        let input = self.input.evaluate(scope)?;
        if input.is_nullish() {
            return Ok(Value::NULL);
        }
        let Some(RawBsonRef::Document(document)) = input.get() else {
            return Err(Error::location(
                4_161_105,
                format!("{} takes an object as 'input', not {}", self.name, input.type_name()),
            ));
        };
        let value = match &self.value {
            Some(value) => value.evaluate(scope)?,
            None => Value::Missing,
        };
        let (mut changed, mut placed) = (RawDocumentBuf::new(), false);
        for field in document {
            let (name, old) = field?;
            if name.as_str() != self.field {
                append(&mut changed, name.as_str(), old)?;
            } else if let (Some(new), false) = (value.get(), placed) {
                append(&mut changed, name.as_str(), new)?;
                placed = true;
            }
        }
        if let (Some(new), false) = (value.get(), placed) {
            append(&mut changed, &self.field, new)?;
        }
        Ok(changed.into())
    }

    fn each_operand(&self, visit: &mut dyn FnMut(&dyn Expression)) {
        visit(&*self.input);
        if let Some(value) = &self.value {
            visit(&**value);
        }
    }
}
