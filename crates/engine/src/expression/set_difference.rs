//! `{$setDifference: [a, b]}`: the elements of one array that another one lacks, each once, in their order.
//!
//! Null when an argument is null or missing. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/aggregation/setDifference/>.

use super::operand::{as_array, comparison, elements};
use super::sets::ValueSet;
use super::{Environment, Operator};
use crate::document::Value;
use crate::error::{Error, Result};
use bson::RawArrayBuf;

pub(super) const OPERATOR: Operator = Operator {
    name: "$setDifference",
    parse: |argument, parser| comparison("$setDifference", argument, parser, set_difference),
};

fn set_difference<'v>([a, b]: [Value<'v>; 2], environment: &Environment) -> Result<Value<'v>> {
    if a.is_nullish() || b.is_nullish() {
        return Ok(Value::NULL);
    }
    let refuse = |number, which, value: &Value<'v>| {
        Error::location(
            number,
            format!("$setDifference takes an array as its {which} argument, not {}", value.type_name()),
        )
    };
    let first = as_array(&a).ok_or_else(|| refuse(17048, "first", &a))?;
    let second = as_array(&b).ok_or_else(|| refuse(17049, "second", &b))?;
    let collator = environment.collator();
    let excluded = ValueSet::of(second, collator)?;
    // The distinct elements that stay, then the first of each in the array's order.
    let distinct = ValueSet::of(first, collator)?;
    let mut given = vec![false; distinct.len()];
    let mut difference = RawArrayBuf::new();
    for element in elements(first)? {
        let place = distinct.place(element)?;
        if !std::mem::replace(&mut given[place], true) && !excluded.contains(element)? {
            difference.push(element);
        }
    }
    Ok(difference.into())
}
