//! What the expressions named like accumulators share: they accumulate their operands' values, or the elements of a
//! single operand that is an array.

use super::operand::{ANY_COUNT, as_array, comparison_over, comparison_over_many, named, over_many, required};
use super::{Compiled, Environment, Parser, arguments};
use crate::accumulator::{self, Options};
use crate::document::number::{Number, exact_i64};
use crate::document::{Value, type_name};
use crate::error::{Error, Result};
use bson::RawBsonRef;

/// Parses an expression such as `{$sum: [a, b]}` or `{$sum: array}`.
pub(super) fn parse_fold(
    name: &'static str,
    argument: RawBsonRef<'_>,
    parser: &mut Parser,
    compute: super::operand::ComputeMany,
) -> Result<Compiled> {
    let operands = arguments(name, argument, ANY_COUNT, parser)?;
    Ok(if matches!(name, "$min" | "$max") {
        comparison_over_many(operands, compute)
    } else {
        over_many(operands, compute)
    })
}

/// Accumulates the operands, or the elements of a single one that is an array.
pub(super) fn fold<'v>(name: &str, values: Vec<Value<'v>>, environment: &Environment) -> Result<Value<'v>> {
    let options = Options { collator: environment.collator.clone(), ..Options::default() };
    let kind = accumulator::find(name).expect("the expression has an accumulator of the same name");
    let mut accumulator = (kind.start)(&options);
    // Unlike the accumulator, the expression $avg rounds int64 values to doubles first.
    let mut take = |value: Value<'_>| match value.get() {
        Some(RawBsonRef::Int64(number)) if name == "$avg" => accumulator.add(Value::from(number as f64)),
        _ => accumulator.add(value),
    };
    match &values[..] {
        [single] if as_array(single).is_some() => {
            for element in as_array(single).expect("just seen to be one") {
                take(Value::Borrowed(element?))?;
            }
        }
        _ => values.into_iter().try_for_each(take)?,
    }
    accumulator.result()
}

/// Parses `{$firstN: {input, n}}` and its like over an array.
pub(super) fn parse_several(
    name: &'static str,
    argument: RawBsonRef<'_>,
    parser: &mut Parser,
    compute: super::operand::Compute<2>,
) -> Result<Compiled> {
    let [input, n] = named(name, argument, ["input", "n"], 5_787_801, 5_787_901)?;
    let n = required(name, "n", n, 5_787_906, parser)?;
    let input = required(name, "input", input, 5_787_907, parser)?;
    Ok(comparison_over([input, n], compute))
}

/// Accumulates an array's elements with a bound `n`.
pub(super) fn several<'v>(name: &str, [input, n]: [Value<'v>; 2], environment: &Environment) -> Result<Value<'v>> {
    let n = bound(name, &n)?;
    let Some(array) = as_array(&input) else {
        return Err(Error::location(5_788_200, format!("{name} takes an array as 'input', not {}", input.type_name())));
    };
    let options = Options { n, collator: environment.collator.clone(), ..Options::default() };
    let kind = accumulator::find(name).expect("the expression has an accumulator of the same name");
    let mut accumulator = (kind.start)(&options);
    for element in array {
        accumulator.add(Value::Borrowed(element?))?;
    }
    accumulator.result()
}

/// Reads an `n`.
///
/// # Errors
/// `Location5787902`, `Location5787903`, `Location5787908` when it is no number, no integer or not above zero.
pub(super) fn bound(name: &str, n: &Value<'_>) -> Result<usize> {
    let given = n.or_null();
    if Number::of(given).is_none() {
        return Err(Error::location(5_787_902, format!("{name} takes a number as 'n', not {}", type_name(given))));
    }
    let whole = exact_i64(given)
        .ok_or_else(|| Error::location(5_787_903, format!("{name} takes an 'n' without a fraction, of 64 bits")))?;
    match usize::try_from(whole) {
        Ok(n) if n > 0 => Ok(n),
        _ => Err(Error::location(5_787_908, format!("{name} takes an 'n' greater than 0, not {whole}"))),
    }
}
