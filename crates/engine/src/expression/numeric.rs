//! What the operators on numbers share: parsing, null for null, refusing other types, constants computed at parsing.

use super::{Compiled, Environment, Expression, Literal, Parser, Scope, arguments, exactly};
use crate::document::decimal::{Decimal, Round};
use crate::document::{Number, Value};
use crate::error::{Error, Result};
use bson::{RawBsonRef, RawDocumentBuf};

/// An operator of one number.
#[derive(Debug)]
struct Unary {
    name: &'static str,
    operand: Compiled,
    compute: fn(Number) -> Result<Number>,
}

/// Parses an operator of one number: null gives null, and what is no number is refused with `Location28765`.
pub(super) fn unary(
    name: &'static str,
    argument: RawBsonRef<'_>,
    parser: &mut Parser,
    compute: fn(Number) -> Result<Number>,
) -> Result<Compiled> {
    let [operand] = exactly(name, argument, parser)?;
    folded(Unary { name, operand, compute })
}

impl Expression for Unary {
    fn evaluate<'a>(&'a self, scope: &Scope<'a>) -> Result<Value<'a>> {
        let value = self.operand.evaluate(scope)?;
        if value.is_nullish() {
            return Ok(Value::NULL);
        }
        match Number::of(value.or_null()) {
            Some(number) => Ok((self.compute)(number)?.into()),
            None => Err(Error::location(
                28765,
                format!("{} only supports numeric types, not {}", self.name, value.type_name()),
            )),
        }
    }

    fn each_operand(&self, visit: &mut dyn FnMut(&dyn Expression)) {
        visit(&*self.operand);
    }
}

/// Two operands and what to make of them; null when either is null.
#[derive(Debug)]
struct Binary {
    operands: [Compiled; 2],
    compute: fn(&Value<'_>, &Value<'_>) -> Result<Value<'static>>,
}

/// Parses an operator of two values of which neither is null; otherwise it gives null.
pub(super) fn binary(
    name: &'static str,
    argument: RawBsonRef<'_>,
    parser: &mut Parser,
    compute: fn(&Value<'_>, &Value<'_>) -> Result<Value<'static>>,
) -> Result<Compiled> {
    folded(Binary { operands: exactly(name, argument, parser)?, compute })
}

impl Expression for Binary {
    fn evaluate<'a>(&'a self, scope: &Scope<'a>) -> Result<Value<'a>> {
        let (left, right) = (self.operands[0].evaluate(scope)?, self.operands[1].evaluate(scope)?);
        if left.is_nullish() || right.is_nullish() {
            return Ok(Value::NULL);
        }
        (self.compute)(&left, &right)
    }

    fn each_operand(&self, visit: &mut dyn FnMut(&dyn Expression)) {
        self.operands.iter().for_each(|operand| visit(&**operand));
    }
}

/// `$round` and `$trunc`.
#[derive(Debug)]
struct ToPlaces {
    name: &'static str,
    operands: Vec<Compiled>,
    round: Round,
}

/// Parses `[number, place]` of `$round` and `$trunc`.
pub(super) fn to_places(
    name: &'static str,
    argument: RawBsonRef<'_>,
    parser: &mut Parser,
    round: Round,
) -> Result<Compiled> {
    folded(ToPlaces { name, operands: arguments(name, argument, 1..=2, parser)?, round })
}

impl ToPlaces {
    fn places(&self, value: &Value<'_>) -> Result<i32> {
        let name = self.name;
        let number = Number::of(value.or_null()).ok_or_else(|| {
            Error::location(16004, format!("{name}'s place must be a number, not {}", value.type_name()))
        })?;
        if let (Number::Double(_), None) = (number, number.to_i64_checked()) {
            return Err(Error::location(31109, format!("{name}'s place is out of range of a 64-bit integer")));
        }
        let places = number
            .to_i64_exact()
            .ok_or_else(|| Error::location(51082, format!("{name}'s place must be a whole number")))?;
        match i32::try_from(places) {
            Ok(places) if (-20..=100).contains(&places) => Ok(places),
            _ => Err(Error::location(
                51083,
                format!("cannot apply {name} with precision value {places}: it must be in [-20, 100]"),
            )),
        }
    }
}

impl Expression for ToPlaces {
    fn evaluate<'a>(&'a self, scope: &Scope<'a>) -> Result<Value<'a>> {
        let value = self.operands[0].evaluate(scope)?;
        if value.is_nullish() {
            return Ok(Value::NULL);
        }
        let number = Number::of(value.or_null()).ok_or_else(|| {
            Error::location(51081, format!("{} only supports numeric types, not {}", self.name, value.type_name()))
        })?;
        let places = match self.operands.get(1) {
            None => 0,
            Some(operand) => match operand.evaluate(scope)? {
                value if value.is_nullish() => return Ok(Value::NULL),
                value => self.places(&value)?,
            },
        };
        let rounded = number.round_to_places(places, self.round).ok_or_else(|| {
            Error::location(51080, format!("invalid conversion from Decimal128 result in {}: it overflows", self.name))
        })?;
        Ok(rounded.into())
    }

    fn each_operand(&self, visit: &mut dyn FnMut(&dyn Expression)) {
        self.operands.iter().for_each(|operand| visit(&**operand));
    }
}

/// A function that is computed on doubles, or on decimals for a decimal.
pub(super) fn transcendental(number: Number, double: fn(f64) -> f64, decimal: fn(Decimal) -> Decimal) -> Number {
    match number {
        Number::Decimal(number) => Number::Decimal(decimal(number)),
        other => Number::Double(double(other.to_f64())),
    }
}

/// Computes an expression whose operands are all constants once, at parsing. Not for operators that compare strings: they
/// depend on the collation.
///
/// An error is kept as a [`Failed`] node: it is raised at the end of parsing unless an operator around it drops the node.
///
/// # Errors
/// None so far; the type is a parser's.
pub(super) fn folded(expression: impl Expression + 'static) -> Result<Compiled> {
    let mut constant = true;
    expression.each_operand(&mut |operand| constant &= operand.constant().is_some());
    if constant {
        let root = RawDocumentBuf::new();
        let environment = Environment::fixed();
        match expression.evaluate(&Scope::new(&root, &environment)) {
            Ok(value) => {
                if let Some(value) = value.get() {
                    return Ok(Box::new(Literal::new(value)));
                }
            }
            Err(error) => return Ok(Box::new(Failed { error })),
        }
    }
    Ok(Box::new(expression))
}

/// An operator whose operands are constants that it refuses.
#[derive(Debug)]
struct Failed {
    error: Error,
}

impl Expression for Failed {
    fn evaluate<'a>(&'a self, _: &Scope<'a>) -> Result<Value<'a>> {
        Err(self.error.clone())
    }

    fn failure(&self) -> Option<&Error> {
        Some(&self.error)
    }
}
