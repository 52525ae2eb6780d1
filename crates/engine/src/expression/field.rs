//! `"$path"`, `"$$variable"` and `"$$variable.path"`.

use super::{Compiled, Expression, Parser, Scope, VariableId};
use crate::document::{FieldPath, Value};
use crate::error::{Error, Result};

/// A reference to a field of the document or of a variable.
#[derive(Debug)]
pub struct FieldReference {
    variable: VariableId,
    path: Option<FieldPath>,
}

pub(super) fn parse(text: &str, parser: &Parser) -> Result<Compiled> {
    if let Some(name) = text.strip_prefix("$$") {
        let (variable, path) = name.split_once('.').map_or((name, None), |(variable, path)| (variable, Some(path)));
        check_variable_name(variable)?;
        if path == Some("") {
            return Err(Error::location(40353, "FieldPath must not end with a '.'."));
        }
        let path = path.map(FieldPath::parse).transpose()?;
        return Ok(Box::new(FieldReference { variable: parser.lookup(variable)?, path }));
    }
    let path = &text[1..];
    if path.is_empty() {
        return Err(Error::location(16872, "'$' by itself is not a valid FieldPath"));
    }
    Ok(Box::new(FieldReference { variable: parser.lookup("CURRENT")?, path: Some(FieldPath::parse(path)?) }))
}

/// Refuses a name that no variable may have when it is read.
fn check_variable_name(name: &str) -> Result<()> {
    let Some(first) = name.chars().next() else {
        return Err(Error::failed_to_parse("empty variable names are not allowed"));
    };
    if !first.is_ascii_alphabetic() && first.is_ascii() {
        return Err(Error::failed_to_parse(format!("'{name}' starts with an invalid character for a variable name")));
    }
    match name.chars().find(|c| c.is_ascii() && !c.is_ascii_alphanumeric() && *c != '_') {
        Some(bad) => {
            Err(Error::failed_to_parse(format!("'{name}' contains an invalid character for a variable name: '{bad}'")))
        }
        None => Ok(()),
    }
}

impl Expression for FieldReference {
    fn evaluate<'a>(&'a self, scope: &Scope<'a>) -> Result<Value<'a>> {
        let value = match self.variable {
            VariableId::NOW => scope.environment.now.into(),
            VariableId::CLUSTER_TIME => scope.environment.cluster_time.into(),
            VariableId::REMOVE => Value::Missing,
            variable => scope.variable(variable),
        };
        match (&self.path, value) {
            (None, value) => Ok(value),
            (Some(path), Value::Borrowed(value)) => path.evaluate(value),
            (Some(path), value) => match value.get() {
                Some(value) => Ok(path.evaluate(value)?.into_owned()),
                None => Ok(Value::Missing),
            },
        }
    }

    fn reads(&self) -> Option<(VariableId, &str)> {
        Some((self.variable, self.path.as_ref().map_or("", FieldPath::as_str)))
    }
}
