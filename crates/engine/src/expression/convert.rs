//! `{$convert: {input, to, onError, onNull, format, byteOrder, base}}`: a value converted to another type.
//!
//! `to` is a type's name or number, or `{type, subtype}`. A null input gives `onNull` (or null) before anything else is
//! looked at; `onError` is taken when the value does not convert. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/aggregation/convert/>.

use super::conversion::{Manner, Target, convert};
use super::conversion_binary::{BinaryFormat, ByteOrder};
use super::numeric::folded;
use super::{Compiled, Expression, Operator, Parser, Scope, parse};
use crate::Code;
use crate::document::{Number, Value, get, number};
use crate::error::{Error, Result};
use bson::RawBsonRef;

pub(super) const OPERATOR: Operator = Operator { name: "$convert", parse: parse_convert };

#[derive(Debug)]
struct Convert {
    input: Compiled,
    to: Compiled,
    on_error: Option<Compiled>,
    on_null: Option<Compiled>,
    format: Option<Compiled>,
    byte_order: Option<Compiled>,
    base: Option<Compiled>,
}

fn parse_convert(argument: RawBsonRef<'_>, parser: &mut Parser) -> Result<Compiled> {
    let RawBsonRef::Document(document) = argument else {
        return Err(Error::failed_to_parse("$convert expects an object of named arguments"));
    };
    let names = ["input", "to", "onError", "onNull", "format", "byteOrder", "base"];
    let mut fields = [const { None }; 7];
    for field in document {
        let (name, value) = field?;
        let Some(position) = names.iter().position(|known| *known == name.as_str()) else {
            return Err(Error::failed_to_parse(format!("$convert found an unknown argument: {}", name.as_str())));
        };
        fields[position] = Some(parse(value, parser)?);
    }
    let [input, to, on_error, on_null, format, byte_order, base] = fields;
    let missing = |name: &str| Error::failed_to_parse(format!("Missing '{name}' parameter to $convert"));
    folded(Convert {
        input: input.ok_or_else(|| missing("input"))?,
        to: to.ok_or_else(|| missing("to"))?,
        on_error,
        on_null,
        format,
        byte_order,
        base,
    })
}

/// The target type of `to`; `None` when it is null.
fn target(to: &Value<'_>) -> Result<Option<Target>> {
    let RawBsonRef::Document(document) = to.or_null() else {
        return if to.is_nullish() { Ok(None) } else { Target::parse(to.or_null()).map(Some) };
    };
    let kind = get(document, "type")?.ok_or_else(|| Error::failed_to_parse("$convert's 'to' object needs a 'type'"))?;
    match (Target::parse(kind)?, get(document, "subtype")?) {
        (Target::Binary(_), Some(subtype)) => subtype_of(subtype).map(|subtype| Some(Target::Binary(subtype))),
        (target, _) => Ok(Some(target)),
    }
}

fn subtype_of(value: RawBsonRef<'_>) -> Result<u8> {
    if Number::of(value).is_none() {
        return Err(Error::location(4341108, "$convert's 'subtype' must be a number"));
    }
    match number::exact_i64(value) {
        None => Err(Error::location(4341106, "$convert's 'subtype' must be a whole number")),
        Some(subtype @ (0..=9 | 128..=255)) => Ok(subtype as u8),
        Some(subtype) => {
            Err(Error::location(4341107, format!("$convert's 'subtype' is no subtype of binData: {subtype}")))
        }
    }
}

fn base_of(value: &Value<'_>) -> Result<u32> {
    match number::exact_i64(value.or_null()) {
        Some(base @ (2 | 8 | 10 | 16)) => Ok(base as u32),
        Some(base) => Err(Error::location(3501301, format!("$convert's 'base' must be 2, 8, 10 or 16, but is {base}"))),
        None => Err(Error::location(3501300, "$convert's 'base' must be a whole number")),
    }
}

impl Convert {
    /// An option's value by `read`; `None` when it is absent or null.
    fn option<T>(
        operand: Option<&Compiled>,
        scope: &Scope<'_>,
        read: fn(&Value<'_>) -> Result<T>,
    ) -> Result<Option<T>> {
        let Some(operand) = operand else { return Ok(None) };
        let value = operand.evaluate(scope)?;
        if value.is_nullish() { Ok(None) } else { read(&value).map(Some) }
    }
}

impl Expression for Convert {
    fn evaluate<'a>(&'a self, scope: &Scope<'a>) -> Result<Value<'a>> {
        let input = self.input.evaluate(scope)?;
        if input.is_nullish() {
            return self.on_null.as_ref().map_or(Ok(Value::NULL), |on_null| on_null.evaluate(scope));
        }
        let Some(target) = target(&self.to.evaluate(scope)?)? else { return Ok(Value::NULL) };
        let manner = Manner {
            byte_order: Convert::option(self.byte_order.as_ref(), scope, ByteOrder::parse)?
                .unwrap_or(ByteOrder::Little),
            format: Convert::option(self.format.as_ref(), scope, BinaryFormat::parse)?,
            base: Convert::option(self.base.as_ref(), scope, base_of)?,
        };
        match (convert(input.or_null(), target, manner), &self.on_error) {
            (Err(error), Some(on_error)) if error.code == Code::CONVERSION_FAILURE => on_error.evaluate(scope),
            (result, _) => result,
        }
    }

    fn each_operand(&self, visit: &mut dyn FnMut(&dyn Expression)) {
        visit(&*self.input);
        visit(&*self.to);
        let options = [&self.on_error, &self.on_null, &self.format, &self.byte_order, &self.base];
        options.into_iter().flatten().for_each(|operand| visit(&**operand));
    }
}
