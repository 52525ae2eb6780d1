//! `{$add: [number or date, …]}`: the sum; numbers are milliseconds where one operand is a date.
//!
//! Null when an operand is null. Integers that overflow become a double. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/aggregation/add/>.

use super::numeric::folded;
use super::{Compiled, Expression, Operator, Parser, Scope, arguments};
use crate::Code;
use crate::document::decimal::Round;
use crate::document::{Number, Value, type_name};
use crate::error::{Error, Result};
use bson::{DateTime, RawBsonRef};

pub(super) const OPERATOR: Operator = Operator { name: "$add", parse: parse_add };

#[derive(Debug)]
struct Add {
    operands: Vec<Compiled>,
}

fn parse_add(argument: RawBsonRef<'_>, parser: &mut Parser) -> Result<Compiled> {
    folded(Add { operands: arguments("$add", argument, 0..=usize::MAX, parser)? })
}

impl Expression for Add {
    fn evaluate<'a>(&'a self, scope: &Scope<'a>) -> Result<Value<'a>> {
        let mut sum = Sum { total: Number::Int32(0), date: None };
        for operand in &self.operands {
            let value = operand.evaluate(scope)?;
            if value.is_nullish() {
                return Ok(Value::NULL);
            }
            sum.add(value.or_null())?;
        }
        sum.result()
    }

    fn each_operand(&self, visit: &mut dyn FnMut(&dyn Expression)) {
        self.operands.iter().for_each(|operand| visit(&**operand));
    }
}

struct Sum {
    total: Number,
    date: Option<DateTime>,
}

impl Sum {
    fn add(&mut self, value: RawBsonRef<'_>) -> Result<()> {
        match value {
            RawBsonRef::DateTime(_) if self.date.is_some() => {
                return Err(Error::location(16612, "only one date allowed in an $add expression"));
            }
            RawBsonRef::DateTime(date) => self.date = Some(date),
            other => {
                let number = Number::of(other).ok_or_else(|| {
                    Error::type_mismatch(format!("$add only supports numeric or date types, not {}", type_name(other)))
                })?;
                self.total = self.total.add(number);
            }
        }
        Ok(())
    }

    fn result(self) -> Result<Value<'static>> {
        let Some(date) = self.date else { return Ok(self.total.into()) };
        let millis = date_millis(self.total).and_then(|millis| date.timestamp_millis().checked_add(millis));
        match millis {
            Some(millis) => Ok(DateTime::from_millis(millis).into()),
            None => Err(Error::new(Code::OVERFLOW, "date overflow in $add")),
        }
    }
}

/// Milliseconds as dates take them: doubles are rounded half away from zero, decimals half to even; `None` beyond 64 bits.
pub(super) fn date_millis(number: Number) -> Option<i64> {
    match number {
        Number::Double(number) => Number::Double(number.round()).to_i64_checked(),
        Number::Decimal(number) => Number::Decimal(number.quantize(0, Round::HalfEven)).to_i64_checked(),
        whole => whole.to_i64_checked(),
    }
}
