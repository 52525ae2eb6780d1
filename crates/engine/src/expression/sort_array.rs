//! `{$sortArray: {input, sortBy}}`: an array sorted by its elements (`1`, `-1`) or by fields of them (`{a: 1}`).
//!
//! The sort is stable. Null when the input is null or missing. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/aggregation/sortArray/>.

use super::operand::{as_array, elements, named};
use super::{Compiled, Expression, Operator, Parser, Scope, parse};
use crate::document::Value;
use crate::document::order::ElementOrder;
use crate::error::{Error, Result};
use bson::{RawArrayBuf, RawBsonRef};

pub(super) const OPERATOR: Operator = Operator { name: "$sortArray", parse: parse_sort_array };

#[derive(Debug)]
struct SortArray {
    input: Compiled,
    order: ElementOrder,
}

fn parse_sort_array(argument: RawBsonRef<'_>, parser: &mut Parser) -> Result<Compiled> {
    let [input, order] = named("$sortArray", argument, ["input", "sortBy"], 2_942_500, 2_942_501)?;
    let missing = |code, name| Error::location(code, format!("$sortArray needs the argument '{name}'"));
    let input = input.ok_or_else(|| missing(2_942_502, "input"))?;
    let order = order.ok_or_else(|| missing(2_942_503, "sortBy"))?;
    let order = ElementOrder::parse(order).map_err(|mut error| {
        error.code.0 = match order {
            RawBsonRef::Document(_) => 2_942_505,
            order if super::operand::is_number(order) => 2_942_506,
            _ => 2_942_507,
        };
        error.message = format!("$sortArray: {}", error.message);
        error
    })?;
    Ok(Box::new(SortArray { input: parse(input, parser)?, order }))
}

impl Expression for SortArray {
    fn evaluate<'a>(&'a self, scope: &Scope<'a>) -> Result<Value<'a>> {
        let input = self.input.evaluate(scope)?;
        if input.is_nullish() {
            return Ok(Value::NULL);
        }
        let Some(array) = as_array(&input) else {
            return Err(Error::location(
                2_942_504,
                format!("$sortArray takes an array as 'input', not {}", input.type_name()),
            ));
        };
        let mut sorted = RawArrayBuf::new();
        for element in self.order.sort(elements(array)?, scope.environment.collator())? {
            sorted.push(element);
        }
        Ok(sorted.into())
    }

    fn each_operand(&self, visit: &mut dyn FnMut(&dyn Expression)) {
        visit(&*self.input);
    }
}
