//! `{$setEquals: [array, …]}`: whether two or more arrays have the same distinct elements.
//!
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/aggregation/setEquals/>.

use super::operand::{ANY_COUNT, as_array, comparison_over_many};
use super::sets::ValueSet;
use super::{Compiled, Environment, Operator, Parser, arguments};
use crate::document::{Value, type_name};
use crate::error::{Error, Result};
use bson::RawBsonRef;

pub(super) const OPERATOR: Operator = Operator { name: "$setEquals", parse: parse_set_equals };

fn parse_set_equals(argument: RawBsonRef<'_>, parser: &mut Parser) -> Result<Compiled> {
    let operands = arguments("$setEquals", argument, ANY_COUNT, parser)?;
    if operands.len() < 2 {
        return Err(Error::location(
            17045,
            format!("$setEquals takes at least 2 arguments, but {} were passed in", operands.len()),
        ));
    }
    for constant in operands.iter().filter_map(|operand| operand.constant()) {
        if !matches!(constant, RawBsonRef::Array(_)) {
            return Err(Error::location(
                5_887_502,
                format!("$setEquals only takes arrays, not {}", type_name(constant)),
            ));
        }
    }
    Ok(comparison_over_many(operands, set_equals))
}

fn set_equals<'v>(values: Vec<Value<'v>>, environment: &Environment) -> Result<Value<'v>> {
    let mut sets = Vec::with_capacity(values.len());
    for value in &values {
        let Some(array) = as_array(value) else {
            return Err(Error::location(17044, format!("$setEquals only takes arrays, not {}", value.type_name())));
        };
        sets.push(ValueSet::of(array, environment.collator())?);
    }
    for set in &sets[1..] {
        if set.len() != sets[0].len() || !sets[0].contains_all(set)? {
            return Ok(Value::from(false));
        }
    }
    Ok(Value::from(true))
}
