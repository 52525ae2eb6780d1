//! `{$dateDiff: {startDate, endDate, unit, timezone, startOfWeek}}`: how many boundaries of the unit lie between two dates.
//!
//! An int64, negative when the end comes first; null when an operand is null. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/aggregation/dateDiff/>.

use super::date_operand::{FieldCodes, ZoneOperand, date_millis, named_fields, required, start_of_week, unit};
use super::numeric::folded;
use super::{Compiled, Expression, Literal, Operator, Parser, Scope};
use crate::document::Value;
use crate::document::date::{Unit, difference};
use crate::error::{Error, Result};
use bson::RawBsonRef;

pub(super) const OPERATOR: Operator = Operator { name: "$dateDiff", parse: parse_date_diff };

const NAME: &str = "$dateDiff";
const CODES: FieldCodes = FieldCodes { not_an_object: 5166301, unknown_field: 5166302 };
const SUNDAY: i64 = 7;

#[derive(Debug)]
struct DateDiff {
    start: Compiled,
    end: Compiled,
    unit: Compiled,
    zone: ZoneOperand,
    start_of_week: Option<Compiled>,
}

fn parse_date_diff(argument: RawBsonRef<'_>, parser: &mut Parser) -> Result<Compiled> {
    let names = ["startDate", "endDate", "unit", "timezone", "startOfWeek"];
    let [start, end, unit, zone, start_of_week] = named_fields(NAME, argument, names, &CODES, parser)?;
    let parsed = DateDiff {
        start: required(start, NAME, "startDate", 5166303)?,
        end: required(end, NAME, "endDate", 5166304)?,
        unit: required(unit, NAME, "unit", 5166305)?,
        zone: ZoneOperand::new(zone)?,
        start_of_week,
    };
    let dates_known = parsed.start.constant().is_some() && parsed.end.constant().is_some();
    if !dates_known && constant_null(parsed.start_of_week.as_ref()) {
        return Ok(Box::new(Literal::new(RawBsonRef::Null)));
    }
    folded(parsed)
}

/// Whether an operand is there and is the constant null.
pub(super) fn constant_null(operand: Option<&Compiled>) -> bool {
    operand.is_some_and(|operand| matches!(operand.constant(), Some(RawBsonRef::Null | RawBsonRef::Undefined)))
}

impl Expression for DateDiff {
    fn evaluate<'a>(&'a self, scope: &Scope<'a>) -> Result<Value<'a>> {
        let (start, end) = (self.start.evaluate(scope)?, self.end.evaluate(scope)?);
        let unit_value = self.unit.evaluate(scope)?;
        if start.is_nullish() || end.is_nullish() || unit_value.is_nullish() {
            return Ok(Value::NULL);
        }
        let Some(zone) = self.zone.resolve(scope)? else { return Ok(Value::NULL) };
        let (start, end) = (date_millis(&start, NAME, 5166307)?, date_millis(&end, NAME, 5166307)?);
        let unit = unit(&unit_value, NAME)?;
        let first_day = match &self.start_of_week {
            Some(operand) if unit == Unit::Week => match operand.evaluate(scope)? {
                value if value.is_nullish() => return Ok(Value::NULL),
                value => start_of_week(&value, NAME)?,
            },
            _ => SUNDAY,
        };
        match difference(start, end, unit, &zone, first_day) {
            Some(count) => Ok(count.into()),
            None => Err(Error::location(5166308, "$dateDiff overflowed")),
        }
    }

    fn each_operand(&self, visit: &mut dyn FnMut(&dyn Expression)) {
        visit(&*self.start);
        visit(&*self.end);
        visit(&*self.unit);
        self.zone.each_operand(visit);
        self.start_of_week.iter().for_each(|operand| visit(&**operand));
    }
}
