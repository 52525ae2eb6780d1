//! `{$strcasecmp: [a, b]}`: compares two strings without regard to the case of ASCII letters: -1, 0 or 1.
//!
//! Other values are read as text, null as the empty string. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/aggregation/strcasecmp/>.

use super::operand::function;
use super::{Environment, Operator, text};
use crate::document::Value;
use crate::error::Result;

pub(super) const OPERATOR: Operator =
    Operator { name: "$strcasecmp", parse: |argument, parser| function("$strcasecmp", argument, parser, strcasecmp) };

fn strcasecmp<'v>([a, b]: [Value<'v>; 2], _: &Environment) -> Result<Value<'v>> {
    let (a, b) = (text::coerce(&a)?.to_ascii_uppercase(), text::coerce(&b)?.to_ascii_uppercase());
    Ok(Value::from(a.as_bytes().cmp(b.as_bytes()) as i32))
}
