//! `{$toUpper: value}`: a string with its ASCII letters in upper case.
//!
//! Other letters stay as they are. Other values are read as text, null as the empty string. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/aggregation/toUpper/>.

use super::operand::function;
use super::{Environment, Operator, text};
use crate::document::Value;
use crate::error::Result;

pub(super) const OPERATOR: Operator =
    Operator { name: "$toUpper", parse: |argument, parser| function("$toUpper", argument, parser, to_upper) };

fn to_upper<'v>([value]: [Value<'v>; 1], _: &Environment) -> Result<Value<'v>> {
    Ok(text::coerce(&value)?.to_ascii_uppercase().into())
}
