//! `{$indexOfCP: [string, part, start, end]}`: the code point position where a string first holds another one, or -1.
//!
//! The part must begin within `[start, end)`. Null when the string is null or missing. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/aggregation/indexOfCP/>.

use super::index_of_bytes::{Search, search};
use super::operand::{count, variadic};
use super::{Environment, Operator};
use crate::document::Value;
use crate::error::Result;

pub(super) const OPERATOR: Operator = Operator {
    name: "$indexOfCP",
    parse: |argument, parser| variadic("$indexOfCP", argument, 2..=4, parser, index_of_cp),
};

fn index_of_cp<'v>(values: Vec<Value<'v>>, _: &Environment) -> Result<Value<'v>> {
    let Some(Search { text, part, start, end }) = search("$indexOfCP", &values, 40093, 40094)? else {
        return Ok(Value::NULL);
    };
    if text.is_empty() && part.is_empty() && start == 0 && (end == 0 || end == usize::MAX) {
        return Ok(Value::from(0));
    }
    for (position, (offset, _)) in text.char_indices().enumerate().skip(start) {
        if position >= end {
            break;
        }
        if text[offset..].starts_with(part) {
            return Ok(count(position));
        }
    }
    Ok(Value::from(-1))
}
