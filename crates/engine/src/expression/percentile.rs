//! `{$percentile: {input, p, method}}`: the percentiles `p` (each from 0 to 1) of the numbers in an array, or of a single
//! number, as an array; nulls without a number.
//!
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/aggregation/percentile/>.

use super::operand::{as_array, named};
use super::{Compiled, Environment, Expression, Operator, Parser, Scope, parse};
use crate::accumulator::percentile::Method;
use crate::accumulator::{self, Options};
use crate::document::number::Number;
use crate::document::{Value, type_name};
use crate::error::{Code, Error, Result};
use bson::RawBsonRef;

pub(super) const OPERATOR: Operator =
    Operator { name: "$percentile", parse: |argument, parser| parse_percentile("$percentile", true, argument, parser) };

#[derive(Debug)]
struct Percentile {
    name: &'static str,
    arguments: PercentileArguments,
}

/// The arguments of `$percentile` and, without `p`, of `$median`.
#[derive(Debug)]
pub(super) struct PercentileArguments {
    pub(super) input: Compiled,
    pub(super) percentiles: Vec<f64>,
    pub(super) method: Method,
}

/// Parses the expression of that name.
pub(super) fn parse_percentile(
    name: &'static str,
    takes_p: bool,
    argument: RawBsonRef<'_>,
    parser: &mut Parser,
) -> Result<Compiled> {
    Ok(Box::new(Percentile { name, arguments: parse_arguments(name, takes_p, argument, parser)? }))
}

/// Parses the arguments.
pub(super) fn parse_arguments(
    name: &str,
    takes_p: bool,
    argument: RawBsonRef<'_>,
    parser: &mut Parser,
) -> Result<PercentileArguments> {
    if !matches!(argument, RawBsonRef::Document(_)) {
        let code = if takes_p { 7_429_703 } else { 7_436_100 };
        return Err(Error::location(code, format!("{name} takes an object, not {}", type_name(argument))));
    }
    let [input, p, method] = if takes_p {
        named(name, argument, ["input", "p", "method"], 40415, 40415)?
    } else {
        let [input, method] = named(name, argument, ["input", "method"], 40415, 40415)?;
        [input, None, method]
    };
    let missing = |part| Error::location(40414, format!("{name} needs the argument '{part}'"));
    let input = parse(input.ok_or_else(|| missing("input"))?, parser)?;
    let percentiles = if takes_p { parse_p(p.ok_or_else(|| missing("p"))?, parser)? } else { Vec::new() };
    let method = match method.ok_or_else(|| missing("method"))? {
        RawBsonRef::String(method) => Method::named(method).ok_or_else(|| {
            Error::new(
                Code::BAD_VALUE,
                format!("{name} takes 'approximate', 'discrete' or 'continuous' as 'method', not '{method}'"),
            )
        })?,
        other => {
            return Err(Error::type_mismatch(format!("{name} takes a string as 'method', not {}", type_name(other))));
        }
    };
    Ok(PercentileArguments { input, percentiles, method })
}

fn parse_p(p: RawBsonRef<'_>, parser: &mut Parser) -> Result<Vec<f64>> {
    let refused = || Error::location(7_750_301, "$percentile takes an array of one or more numbers as 'p'");
    let environment = Environment::fixed();
    let parsed = parse(p, parser)?;
    if !super::dependencies(&*parsed).is_some_and(|fields| fields.is_empty()) {
        return Err(Error::location(7_750_300, "$percentile takes a constant as 'p'"));
    }
    let root = bson::RawDocumentBuf::new();
    let scope = Scope::new(&root, &environment);
    let value = parsed.evaluate(&scope)?;
    let array = as_array(&value).filter(|array| !array.is_empty()).ok_or_else(refused)?;
    let mut percentiles = Vec::new();
    for element in array {
        let element = element?;
        let number = Number::of(element)
            .ok_or_else(|| Error::location(7_750_302, "$percentile only takes numbers in 'p'"))?
            .to_f64();
        if !(0.0..=1.0).contains(&number) {
            return Err(Error::location(
                7_750_303,
                format!("$percentile takes numbers from 0 to 1 in 'p', not {number}"),
            ));
        }
        percentiles.push(number);
    }
    Ok(percentiles)
}

impl Expression for Percentile {
    fn evaluate<'a>(&'a self, scope: &Scope<'a>) -> Result<Value<'a>> {
        let options = Options {
            percentiles: self.arguments.percentiles.clone(),
            method: self.arguments.method,
            ..Options::default()
        };
        let kind = accumulator::find(self.name).expect("the expression has an accumulator of the same name");
        let mut accumulator = (kind.start)(&options);
        let input = self.arguments.input.evaluate(scope)?;
        match as_array(&input) {
            Some(array) => {
                for element in array {
                    accumulator.add(Value::Borrowed(element?))?;
                }
            }
            None => accumulator.add(input)?,
        }
        accumulator.result()
    }

    fn each_operand(&self, visit: &mut dyn FnMut(&dyn Expression)) {
        visit(&*self.arguments.input);
    }
}
