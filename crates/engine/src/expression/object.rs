//! Object and array expressions: `{a: expression, …}` and `[expression, …]`.

use super::{Compiled, Expression, Literal, Parser, Scope, parse as parse_any};
use crate::document::{Value, append};
use crate::error::{Error, Result};
use bson::{RawArray, RawArrayBuf, RawBsonRef, RawDocument, RawDocumentBuf};

#[derive(Debug)]
struct ObjectExpression {
    fields: Vec<(String, Compiled)>,
}

pub(super) fn parse(document: &RawDocument, parser: &mut Parser) -> Result<Compiled> {
    parser.nested(|parser| {
        let mut fields: Vec<(String, Compiled)> = Vec::new();
        for field in document {
            let (name, value) = field?;
            let name = name.as_str();
            check_name(name)?;
            if fields.iter().any(|(known, _)| known == name) {
                return Err(Error::location(
                    16406,
                    format!("duplicate field name specified in object literal: {name}"),
                ));
            }
            fields.push((name.to_owned(), parse_any(value, parser)?));
        }
        Ok(folded(ObjectExpression { fields }))
    })
}

/// A literal when all fields are constant.
fn folded(object: ObjectExpression) -> Compiled {
    let mut document = RawDocumentBuf::new();
    for (name, field) in &object.fields {
        match field.constant().map(|value| append(&mut document, name, value)) {
            Some(Ok(())) => {}
            _ => return Box::new(object),
        }
    }
    Box::new(Literal::new(RawBsonRef::Document(&document)))
}

fn check_name(name: &str) -> Result<()> {
    if name.is_empty() {
        return Err(Error::location(15998, "FieldPath field names may not be empty strings."));
    }
    if name.starts_with('$') {
        return Err(Error::location(
            16410,
            format!(
                "FieldPath field names may not start with '$'. Consider using $getField or $setField. Found '{name}'."
            ),
        ));
    }
    if name.contains('.') {
        return Err(Error::location(
            16412,
            "FieldPath field names may not contain '.'. Consider using $getField or $setField.",
        ));
    }
    Ok(())
}

impl Expression for ObjectExpression {
    fn evaluate<'a>(&'a self, scope: &Scope<'a>) -> Result<Value<'a>> {
        let mut document = RawDocumentBuf::new();
        for (name, expression) in &self.fields {
            if let Some(value) = expression.evaluate(scope)?.get() {
                append(&mut document, name, value)?;
            }
        }
        Ok(document.into())
    }

    fn each_operand(&self, visit: &mut dyn FnMut(&dyn Expression)) {
        self.fields.iter().for_each(|(_, expression)| visit(&**expression));
    }
}

#[derive(Debug)]
struct ArrayExpression {
    elements: Vec<Compiled>,
}

pub(super) fn parse_array(array: &RawArray, parser: &mut Parser) -> Result<Compiled> {
    parser.nested(|parser| {
        let elements = array.into_iter().map(|element| parse_any(element?, parser)).collect::<Result<Vec<_>>>()?;
        Ok(Box::new(ArrayExpression { elements }) as Compiled)
    })
}

impl Expression for ArrayExpression {
    fn evaluate<'a>(&'a self, scope: &Scope<'a>) -> Result<Value<'a>> {
        let mut array = RawArrayBuf::new();
        for element in &self.elements {
            array.push(element.evaluate(scope)?.get().unwrap_or(RawBsonRef::Null));
        }
        Ok(array.into())
    }

    fn each_operand(&self, visit: &mut dyn FnMut(&dyn Expression)) {
        self.elements.iter().for_each(|element| visit(&**element));
    }
}
