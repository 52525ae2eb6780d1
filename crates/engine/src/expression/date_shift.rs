//! What `$dateAdd` and `$dateSubtract` share.

use super::date_operand::{FieldCodes, ZoneOperand, date_millis, named_fields, required, unit};
use super::numeric::folded;
use super::{Compiled, Expression, Parser, Scope};
use crate::document::date::{Unit, add};
use crate::document::{Value, number};
use crate::error::{Error, Result};
use bson::{DateTime, RawBsonRef};

const CODES: FieldCodes = FieldCodes { not_an_object: 5166400, unknown_field: 5166401 };

#[derive(Debug)]
struct DateShift {
    name: &'static str,
    start: Compiled,
    unit: Compiled,
    amount: Compiled,
    zone: ZoneOperand,
    sign: i64,
}

/// Parses an operator that moves a date by `sign` times an amount of units.
pub(super) fn date_shift(
    name: &'static str,
    argument: RawBsonRef<'_>,
    parser: &mut Parser,
    sign: i64,
) -> Result<Compiled> {
    let names = ["startDate", "unit", "amount", "timezone"];
    let [start, unit, amount, zone] = named_fields(name, argument, names, &CODES, parser)?;
    folded(DateShift {
        name,
        start: required(start, name, "startDate", 5166402)?,
        unit: required(unit, name, "unit", 5166402)?,
        amount: required(amount, name, "amount", 5166402)?,
        zone: ZoneOperand::new(zone)?,
        sign,
    })
}

impl Expression for DateShift {
    fn evaluate<'a>(&'a self, scope: &Scope<'a>) -> Result<Value<'a>> {
        let start = self.start.evaluate(scope)?;
        let (unit_value, amount) = (self.unit.evaluate(scope)?, self.amount.evaluate(scope)?);
        if start.is_nullish() || unit_value.is_nullish() || amount.is_nullish() {
            return Ok(Value::NULL);
        }
        let Some(zone) = self.zone.resolve(scope)? else { return Ok(Value::NULL) };
        let millis = date_millis(&start, self.name, 5166403)?;
        let unit = unit(&unit_value, self.name)?;
        let amount = number::exact_i64(amount.or_null()).ok_or_else(|| {
            Error::location(5166405, format!("{} expects an integer amount of time units", self.name))
        })?;
        let amount = amount.checked_mul(self.sign).ok_or_else(|| {
            Error::location(6045000, format!("invalid {} 'amount' parameter value: {amount}", self.name))
        })?;
        match add(millis, unit, amount, &zone) {
            Some(millis) => Ok(DateTime::from_millis(millis).into()),
            None if matches!(unit, Unit::Year | Unit::Quarter | Unit::Month | Unit::Week | Unit::Day) => {
                Err(Error::location(5976500, format!("invalid {} 'amount' parameter value: {amount}", self.name)))
            }
            None => Err(Error::location(5166406, format!("{} overflowed", self.name))),
        }
    }

    fn each_operand(&self, visit: &mut dyn FnMut(&dyn Expression)) {
        visit(&*self.start);
        visit(&*self.unit);
        visit(&*self.amount);
        self.zone.each_operand(visit);
    }
}
