//! `{$zip: {inputs, useLongestLength, defaults}}`: arrays transposed, the n-th elements of all in the n-th array.
//!
//! Null when one of the inputs is null or missing. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/aggregation/zip/>.

use super::operand::{as_array, elements, named};
use super::{Compiled, Expression, Operator, Parser, Scope, parse};
use crate::document::{Value, type_name};
use crate::error::{Error, Result};
use bson::{RawArray, RawArrayBuf, RawBsonRef};

pub(super) const OPERATOR: Operator = Operator { name: "$zip", parse: parse_zip };

#[derive(Debug)]
struct Zip {
    inputs: Vec<Compiled>,
    longest: bool,
    defaults: Vec<Compiled>,
}

fn parse_zip(argument: RawBsonRef<'_>, parser: &mut Parser) -> Result<Compiled> {
    let [inputs, longest, defaults] =
        named("$zip", argument, ["inputs", "useLongestLength", "defaults"], 34460, 34464)?;
    let mut all = |array: &RawArray| -> Result<Vec<Compiled>> {
        array.into_iter().map(|element| parse(element?, parser)).collect()
    };
    let inputs = match inputs {
        Some(RawBsonRef::Array(inputs)) => all(inputs)?,
        Some(other) => {
            return Err(Error::location(
                34461,
                format!("$zip takes an array of arrays as 'inputs', not {}", type_name(other)),
            ));
        }
        None => Vec::new(),
    };
    let defaults = match defaults {
        Some(RawBsonRef::Array(defaults)) => all(defaults)?,
        Some(other) => {
            return Err(Error::location(34462, format!("$zip takes an array as 'defaults', not {}", type_name(other))));
        }
        None => Vec::new(),
    };
    let longest = match longest {
        Some(RawBsonRef::Boolean(longest)) => longest,
        Some(other) => {
            return Err(Error::location(
                34463,
                format!("$zip takes true or false as 'useLongestLength', not {}", type_name(other)),
            ));
        }
        None => false,
    };
    if inputs.is_empty() {
        return Err(Error::location(34465, "$zip needs at least one array in 'inputs'"));
    }
    if !longest && !defaults.is_empty() {
        return Err(Error::location(34466, "$zip takes 'defaults' only together with useLongestLength: true"));
    }
    if !defaults.is_empty() && defaults.len() != inputs.len() {
        return Err(Error::location(34467, "$zip takes as many 'defaults' as 'inputs'"));
    }
    Ok(Box::new(Zip { inputs, longest, defaults }))
}

impl Expression for Zip {
    fn evaluate<'a>(&'a self, scope: &Scope<'a>) -> Result<Value<'a>> {
        let inputs = self.inputs.iter().map(|input| input.evaluate(scope)).collect::<Result<Vec<_>>>()?;
        let mut columns = Vec::with_capacity(inputs.len());
        for input in &inputs {
            if input.is_nullish() {
                return Ok(Value::NULL);
            }
            let Some(array) = as_array(input) else {
                return Err(Error::location(
                    34468,
                    format!("$zip takes arrays in 'inputs', not {}", input.type_name()),
                ));
            };
            columns.push(elements(array)?);
        }
        let lengths = columns.iter().map(Vec::len);
        let rows = if self.longest { lengths.max() } else { lengths.min() }.unwrap_or(0);
        let defaults = self.defaults.iter().map(|default| default.evaluate(scope)).collect::<Result<Vec<_>>>()?;
        let mut zipped = RawArrayBuf::new();
        for row in 0..rows {
            let mut entry = RawArrayBuf::new();
            for (column, elements) in columns.iter().enumerate() {
                let default = defaults.get(column).map_or(RawBsonRef::Null, Value::or_null);
                entry.push(elements.get(row).copied().unwrap_or(default));
            }
            zipped.push(entry);
        }
        Ok(zipped.into())
    }

    fn each_operand(&self, visit: &mut dyn FnMut(&dyn Expression)) {
        self.inputs.iter().chain(&self.defaults).for_each(|operand| visit(&**operand));
    }
}
