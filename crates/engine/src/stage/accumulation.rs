//! The fields of a grouping stage's output, as `$group`, `$bucket` and `$bucketAuto` write them.

use crate::document::RawBsonRef;
use crate::error::{Error, Result};
use crate::expression::{Accumulation, Parser};

/// Parses `name: {$accumulator: argument}`.
///
/// # Errors
/// `Location40234` to `Location40238`, `Location15952`, and as [`Accumulation::parse_in_group`].
pub(super) fn parse_field(name: &str, value: RawBsonRef<'_>, parser: &mut Parser) -> Result<Accumulation> {
    if name.contains('.') {
        return Err(Error::location(40235, format!("The field name '{name}' cannot contain '.'")));
    }
    if name.starts_with('$') {
        return Err(Error::location(40236, format!("The field name '{name}' cannot be an operator name")));
    }
    let not_one = || Error::location(40234, format!("The field '{name}' must be an accumulator object"));
    let RawBsonRef::Document(document) = value else { return Err(not_one()) };
    let mut fields = document.iter();
    let (operator, argument) = fields.next().transpose()?.ok_or_else(not_one)?;
    let operator = operator.as_str();
    if !operator.starts_with('$') {
        return Err(not_one());
    }
    if fields.next().is_some() {
        return Err(Error::location(40238, format!("The field '{name}' must specify one accumulator")));
    }
    if matches!(argument, RawBsonRef::Array(_)) {
        return Err(Error::location(40237, format!("The {operator} accumulator is a unary operator")));
    }
    Accumulation::parse_in_group(operator, argument, parser).map_err(as_in_group)
}

/// A count that is no positive whole number has a code of its own where rows are grouped.
pub(super) fn as_in_group(error: Error) -> Error {
    match error.code.0 {
        5_787_902 | 5_787_903 | 5_787_908 => Error::location(7_548_606, error.message),
        _ => error,
    }
}
