//! What most operators share: functions over their operands' values, named arguments, whole numbers, bounded strings.

use super::{Compiled, Environment, Expression, Literal, Parser, Scope, arguments, exactly, parse};
use crate::document::{Value, number};
use crate::error::{Error, Result};
use bson::{RawArray, RawBson, RawBsonRef, RawDocumentBuf};
use std::ops::RangeInclusive;

/// A string that an expression makes must stay below this many bytes (16 MiB).
pub(super) const MAX_STRING_BYTES: usize = 16 * 1024 * 1024;

/// How many operands a variadic operator takes when it has no bound of its own.
pub(super) const ANY_COUNT: RangeInclusive<usize> = 0..=usize::MAX;

/// Computes an operator from the values of a fixed number of operands.
pub(super) type Compute<const N: usize> = for<'v> fn([Value<'v>; N], &Environment) -> Result<Value<'v>>;

/// Computes an operator from the values of any number of operands.
pub(super) type ComputeMany = for<'v> fn(Vec<Value<'v>>, &Environment) -> Result<Value<'v>>;

#[derive(Debug)]
struct Function<const N: usize> {
    operands: [Compiled; N],
    compute: Compute<N>,
}

impl<const N: usize> Expression for Function<N> {
    fn evaluate<'a>(&'a self, scope: &Scope<'a>) -> Result<Value<'a>> {
        let mut values = std::array::from_fn(|_| Value::Missing);
        for (value, operand) in values.iter_mut().zip(&self.operands) {
            *value = operand.evaluate(scope)?;
        }
        (self.compute)(values, scope.environment)
    }

    fn each_operand(&self, visit: &mut dyn FnMut(&dyn Expression)) {
        self.operands.iter().for_each(|operand| visit(&**operand));
    }
}

#[derive(Debug)]
struct FunctionOfMany {
    operands: Vec<Compiled>,
    compute: ComputeMany,
}

impl Expression for FunctionOfMany {
    fn evaluate<'a>(&'a self, scope: &Scope<'a>) -> Result<Value<'a>> {
        let values = self.operands.iter().map(|operand| operand.evaluate(scope)).collect::<Result<Vec<_>>>()?;
        (self.compute)(values, scope.environment)
    }

    fn each_operand(&self, visit: &mut dyn FnMut(&dyn Expression)) {
        self.operands.iter().for_each(|operand| visit(&**operand));
    }
}

/// The most bytes that a constant computed at parsing may hold.
const MAX_FOLDED_BYTES: usize = 64 * 1024;

/// Parses an operator of exactly `N` operands that needs nothing but their values.
///
/// # Errors
/// `Location16020` for another count, and what the operands refuse.
pub(super) fn function<const N: usize>(
    name: &str,
    argument: RawBsonRef<'_>,
    parser: &mut Parser,
    compute: Compute<N>,
) -> Result<Compiled> {
    Ok(over(exactly(name, argument, parser)?, compute))
}

/// The same for an operator that compares values, by the operation's collation: nothing is computed at parsing.
///
/// # Errors
/// As [`function`].
pub(super) fn comparison<const N: usize>(
    name: &str,
    argument: RawBsonRef<'_>,
    parser: &mut Parser,
    compute: Compute<N>,
) -> Result<Compiled> {
    Ok(comparison_over(exactly(name, argument, parser)?, compute))
}

/// Parses an operator of several operands that needs nothing but their values.
///
/// # Errors
/// `Location28667` for a count out of range, and what the operands refuse.
pub(super) fn variadic(
    name: &str,
    argument: RawBsonRef<'_>,
    count: RangeInclusive<usize>,
    parser: &mut Parser,
    compute: ComputeMany,
) -> Result<Compiled> {
    Ok(over_many(arguments(name, argument, count, parser)?, compute))
}

/// The operator over operands that are parsed already.
pub(super) fn over<const N: usize>(operands: [Compiled; N], compute: Compute<N>) -> Compiled {
    folded(Function { operands, compute })
}

/// The same for any number of operands.
pub(super) fn over_many(operands: Vec<Compiled>, compute: ComputeMany) -> Compiled {
    folded(FunctionOfMany { operands, compute })
}

/// The operator that compares values, by the operation's collation, over operands that are parsed already.
pub(super) fn comparison_over<const N: usize>(operands: [Compiled; N], compute: Compute<N>) -> Compiled {
    Box::new(Function { operands, compute })
}

/// The same for any number of operands.
pub(super) fn comparison_over_many(operands: Vec<Compiled>, compute: ComputeMany) -> Compiled {
    Box::new(FunctionOfMany { operands, compute })
}

/// Computes an operator of constants at once. What it refuses it shall refuse when it is evaluated, if it ever is.
fn folded(expression: impl Expression + 'static) -> Compiled {
    let mut constant = true;
    expression.each_operand(&mut |operand| constant &= operand.constant().is_some());
    if constant {
        let (root, environment) = (RawDocumentBuf::new(), Environment::fixed());
        let value = expression.evaluate(&Scope::new(&root, &environment)).map(Value::into_owned);
        if let Ok(Value::Owned(value)) = value
            && held_bytes(&value) <= MAX_FOLDED_BYTES
        {
            return Box::new(Literal::new(value.as_raw_bson_ref()));
        }
    }
    Box::new(expression)
}

fn held_bytes(value: &RawBson) -> usize {
    match value {
        RawBson::Array(array) => array.as_bytes().len(),
        RawBson::Document(document) => document.as_bytes().len(),
        RawBson::String(text) => text.len(),
        _ => 0,
    }
}

/// The operands of a commutative operator with the constant ones behind the others, so that a null among those counts first.
pub(super) fn constants_last(mut operands: Vec<Compiled>) -> Vec<Compiled> {
    operands.sort_by_key(|operand| operand.constant().is_some());
    operands
}

/// Splits an object of named arguments; the last one given wins.
///
/// # Errors
/// `Location<not_object>` and `Location<unknown>`.
pub(super) fn named<'a, const N: usize>(
    operator: &str,
    argument: RawBsonRef<'a>,
    names: [&str; N],
    not_object: i32,
    unknown: i32,
) -> Result<[Option<RawBsonRef<'a>>; N]> {
    let RawBsonRef::Document(document) = argument else {
        return Err(Error::location(
            not_object,
            format!("{operator} takes an object with named arguments ({})", names.join(", ")),
        ));
    };
    let mut found = [None; N];
    for field in document {
        let (name, value) = field?;
        let name = name.as_str();
        let Some(position) = names.iter().position(|known| *known == name) else {
            return Err(Error::location(
                unknown,
                format!("{operator} has no argument '{name}': it takes {}", names.join(", ")),
            ));
        };
        found[position] = Some(value);
    }
    Ok(found)
}

/// Parses a named argument that must be there.
///
/// # Errors
/// `Location<missing>` when it is not.
pub(super) fn required(
    operator: &str,
    name: &str,
    argument: Option<RawBsonRef<'_>>,
    missing: i32,
    parser: &mut Parser,
) -> Result<Compiled> {
    match argument {
        Some(value) => parse(value, parser),
        None => Err(Error::location(missing, format!("{operator} needs the argument '{name}'"))),
    }
}

/// An array argument, whoever owns its bytes; `None` for other types.
pub(super) fn as_array<'v>(value: &'v Value<'_>) -> Option<&'v RawArray> {
    match value.get() {
        Some(RawBsonRef::Array(array)) => Some(array),
        _ => None,
    }
}

/// The elements of an array in order.
///
/// # Errors
/// `InvalidBSON` (22) when the bytes are malformed.
pub(super) fn elements(array: &RawArray) -> Result<Vec<RawBsonRef<'_>>> {
    Ok(array.into_iter().collect::<std::result::Result<Vec<_>, _>>()?)
}

/// The element of an array value at a position, borrowed where the array is.
///
/// # Errors
/// `InvalidBSON` (22) when the bytes are malformed.
pub(super) fn element_at<'v>(array: Value<'v>, position: usize) -> Result<Value<'v>> {
    Ok(match array {
        Value::Borrowed(RawBsonRef::Array(array)) => array.get(position)?.map_or(Value::Missing, Value::Borrowed),
        Value::Owned(RawBson::Array(array)) => {
            array.get(position)?.map_or(Value::Missing, |element| Value::Owned(element.into()))
        }
        _ => Value::Missing,
    })
}

/// A number without a fraction that fits an int32; `None` for all else.
pub(super) fn whole_i32(value: RawBsonRef<'_>) -> Option<i32> {
    number::exact_i32(value)
}

/// Whether the value is a number of any type.
pub(super) fn is_number(value: RawBsonRef<'_>) -> bool {
    matches!(value, RawBsonRef::Int32(_) | RawBsonRef::Int64(_) | RawBsonRef::Double(_) | RawBsonRef::Decimal128(_))
}

/// A count as MongoDB gives it: int32 while it fits.
pub(super) fn count(number: usize) -> Value<'static> {
    i32::try_from(number).map_or_else(|_| Value::from(number as i64), Value::from)
}

/// A computed string.
///
/// # Errors
/// `Location16493` when it is too long.
pub(super) fn string<'v>(text: String) -> Result<Value<'v>> {
    check_length(text.len())?;
    Ok(text.into())
}

/// Refuses a string of so many bytes.
///
/// # Errors
/// `Location16493` when it is too long.
pub(super) fn check_length(bytes: usize) -> Result<()> {
    if bytes >= MAX_STRING_BYTES {
        return Err(Error::location(
            16493,
            format!("a string of {bytes} bytes is too long: it must stay below 16 MiB"),
        ));
    }
    Ok(())
}

/// A name that a variable bound by an operator may have.
///
/// # Errors
/// `FailedToParse` (9) for an empty name, one that does not begin with a lower case letter, or one with other characters
/// than letters, digits and `_`.
pub(super) fn check_bound_name(name: &str) -> Result<()> {
    let Some(first) = name.chars().next() else {
        return Err(Error::failed_to_parse("a variable's name may not be empty"));
    };
    if name == "CURRENT" {
        return Ok(());
    }
    let allowed = |c: char| !c.is_ascii() || c.is_ascii_alphanumeric() || c == '_';
    if (first.is_ascii() && !first.is_ascii_lowercase()) || !name.chars().all(allowed) {
        return Err(Error::failed_to_parse(format!(
            "'{name}' is no name for a variable: it must begin with a lower case letter and hold letters, digits and '_' only"
        )));
    }
    Ok(())
}

/// The name in an operator's `as`, or its default.
///
/// # Errors
/// As [`check_bound_name`]; `FailedToParse` (9) when it is no string.
pub(super) fn variable_name<'a>(argument: Option<RawBsonRef<'a>>, default: &'a str) -> Result<&'a str> {
    match argument {
        None => Ok(default),
        Some(RawBsonRef::String(name)) => check_bound_name(name).map(|()| name),
        Some(_) => Err(Error::failed_to_parse("a variable's name must be a string")),
    }
}
