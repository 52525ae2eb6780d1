//! A window function with its argument parsed, as `$setWindowFields` writes it:
//! `{$sum: "$a", window: {documents: [-1, 0]}}`.
//!
//! Whoever runs the stage sorts a partition, evaluates [`WindowExpression::operand`] for each row and hands the values and
//! the sort keys to [`WindowExpression::compute`].

use super::operand::{is_number, whole_i32};
use super::{Accumulation, Compiled, Environment, Expression, Parser, Scope, parse};
use crate::accumulator::window::frame::{Bound, Bounds, Unit};
use crate::accumulator::window::{Alpha, Function, Rows};
use crate::accumulator::{self, Argument};
use crate::document::number::{Number, exact_i64};
use crate::document::order::SortField;
use crate::document::{Value, type_name};
use crate::error::{Error, Result};
use bson::{RawBsonRef, RawDocument, RawDocumentBuf};

/// A parsed window function.
#[derive(Debug)]
pub struct WindowExpression {
    operand: Operand,
    function: Function,
    bounds: Bounds,
}

#[derive(Debug)]
enum Operand {
    None,
    Expression(Compiled),
    Accumulation(Accumulation),
}

/// Every window function that is no accumulator.
const OWN_FUNCTIONS: &[&str] = &[
    "$covariancePop",
    "$covarianceSamp",
    "$denseRank",
    "$derivative",
    "$documentNumber",
    "$expMovingAvg",
    "$integral",
    "$linearFill",
    "$locf",
    "$minMaxScaler",
    "$rank",
    "$shift",
];

/// What an output field holds.
struct Output<'a> {
    name: &'a str,
    argument: RawBsonRef<'a>,
    window: Option<RawBsonRef<'a>>,
    /// Another field beside.
    other: Option<&'a str>,
}

impl WindowExpression {
    /// The names of all window functions, sorted.
    pub fn names() -> Vec<&'static str> {
        let accumulators = accumulator::ACCUMULATORS.iter().filter(|kind| kind.in_window).map(|kind| kind.name);
        let mut names: Vec<_> = accumulators.chain(OWN_FUNCTIONS.iter().copied()).collect();
        names.sort_unstable();
        names
    }

    /// Parses the value of an output field of `$setWindowFields`; `sort_by` is the stage's.
    ///
    /// # Errors
    /// `FailedToParse` (9) and the functions' own codes for what is wrong.
    pub fn parse(spec: &RawDocument, sort_by: &[SortField], parser: &mut Parser) -> Result<WindowExpression> {
        let output = Output::read(spec)?;
        match output.name {
            "$rank" | "$denseRank" | "$documentNumber" => return rank(&output, sort_by),
            _ => {}
        }
        if let Some(other) = output.other {
            return Err(Error::failed_to_parse(format!(
                "the window function {} stands beside '{other}': only 'window' may stand there",
                output.name
            )));
        }
        if let Some(kind) = accumulator::find(output.name).filter(|kind| kind.in_window) {
            let bounds = bounds(output.window, sort_by)?;
            let accumulation = Accumulation::parse(kind, output.argument, parser)?;
            // Options are constants: nothing is in scope but the environment.
            let (root, environment) = (RawDocumentBuf::new(), Environment::fixed());
            let options = accumulation.options(&Scope::new(&root, &environment))?;
            let operand = match kind.argument {
                Argument::Nothing => Operand::None,
                _ => Operand::Accumulation(accumulation),
            };
            return Ok(WindowExpression { operand, function: Function::Accumulate(kind, options), bounds });
        }
        match output.name {
            "$covariancePop" | "$covarianceSamp" => Ok(WindowExpression {
                operand: Operand::Expression(parse(output.argument, parser)?),
                function: Function::Covariance(output.name == "$covarianceSamp"),
                bounds: bounds(output.window, sort_by)?,
            }),
            "$derivative" | "$integral" => slope(&output, sort_by, parser),
            "$expMovingAvg" => moving_average(&output, sort_by, parser),
            "$linearFill" | "$locf" => fill(&output, sort_by, parser),
            "$minMaxScaler" => scaler(&output, sort_by, parser),
            "$shift" => shift(&output, sort_by, parser),
            name => Err(Error::failed_to_parse(format!("Unrecognized window function, {name}"))),
        }
    }

    /// The operand's value for a row.
    ///
    /// # Errors
    /// What the operand refuses.
    pub fn operand<'a>(&'a self, scope: &Scope<'a>) -> Result<Value<'a>> {
        match &self.operand {
            Operand::None => Ok(Value::NULL),
            Operand::Expression(operand) => operand.evaluate(scope),
            Operand::Accumulation(accumulation) => accumulation.operand(scope),
        }
    }

    /// The results for a sorted partition, one a row.
    ///
    /// # Errors
    /// What the function refuses.
    pub fn compute(&self, rows: &Rows<'_>, environment: &Environment) -> Result<Vec<Value<'static>>> {
        match (&self.function, &environment.collator) {
            (Function::Accumulate(kind, options), Some(collator)) => {
                let options = accumulator::Options { collator: Some(collator.clone()), ..options.clone() };
                Function::Accumulate(kind, options).compute(rows, &self.bounds)
            }
            (function, _) => function.compute(rows, &self.bounds),
        }
    }

    /// Calls `visit` for each expression in the argument.
    pub fn each_operand(&self, visit: &mut dyn FnMut(&dyn Expression)) {
        match &self.operand {
            Operand::None => {}
            Operand::Expression(operand) => visit(&**operand),
            Operand::Accumulation(accumulation) => accumulation.each_operand(visit),
        }
    }
}

impl<'a> Output<'a> {
    fn read(spec: &'a RawDocument) -> Result<Output<'a>> {
        let mut function = None;
        let (mut window, mut other) = (None, None);
        for field in spec {
            let (name, value) = field?;
            match name.as_str() {
                "window" => window = Some(value),
                name if name.starts_with('$') && function.is_none() => function = Some((name, value)),
                name => other = Some(name),
            }
        }
        let Some((name, argument)) = function else {
            return Err(Error::failed_to_parse("an output field of $setWindowFields needs a window function"));
        };
        Ok(Output { name, argument, window, other })
    }

    /// Refuses a `window`.
    fn without_window(&self) -> Result<()> {
        match self.window {
            Some(_) => Err(Error::failed_to_parse(format!("{} takes no 'window'", self.name))),
            None => Ok(()),
        }
    }

    /// The named arguments of an object.
    fn named<const N: usize>(&self, names: [&str; N]) -> Result<[Option<RawBsonRef<'a>>; N]> {
        super::operand::named(self.name, self.argument, names, 9, 9)
    }

    fn required(&self, name: &str, argument: Option<RawBsonRef<'a>>) -> Result<RawBsonRef<'a>> {
        argument.ok_or_else(|| Error::failed_to_parse(format!("{} needs the argument '{name}'", self.name)))
    }
}

fn rank(output: &Output<'_>, sort_by: &[SortField]) -> Result<WindowExpression> {
    let name = output.name;
    if output.window.is_some() || output.other.is_some() {
        return Err(Error::location(5_371_601, format!("{name} takes no other arguments, no 'window' either")));
    }
    if !matches!(output.argument, RawBsonRef::Document(document) if document.is_empty()) {
        return Err(Error::location(5_371_603, format!("{name} takes an empty object")));
    }
    if sort_by.len() != 1 {
        return Err(Error::location(5_371_602, format!("{name} needs a sortBy of exactly one field")));
    }
    let function = match name {
        "$rank" => Function::Rank,
        "$denseRank" => Function::DenseRank,
        _ => Function::DocumentNumber,
    };
    Ok(WindowExpression { operand: Operand::None, function, bounds: Bounds::WHOLE })
}

fn slope(output: &Output<'_>, sort_by: &[SortField], parser: &mut Parser) -> Result<WindowExpression> {
    let name = output.name;
    let [input, unit] = output.named(["input", "unit"])?;
    let input = parse(output.required("input", input)?, parser)?;
    if sort_by.len() != 1 {
        return Err(Error::failed_to_parse(format!("{name} needs a sortBy of exactly one field")));
    }
    if name == "$derivative" && output.window.is_none() {
        return Err(Error::failed_to_parse("$derivative needs a 'window'"));
    }
    let unit = unit.map(|unit| unit_of(unit)).transpose()?;
    let unit = match unit {
        Some(unit) => Some(unit.millis().ok_or_else(|| {
            Error::location(5_490_704, format!("{name} takes a unit of fixed length: week, day, hour or a shorter one"))
        })?),
        None => None,
    };
    let function = if name == "$derivative" { Function::Derivative(unit) } else { Function::Integral(unit) };
    Ok(WindowExpression { operand: Operand::Expression(input), function, bounds: bounds(output.window, sort_by)? })
}

fn moving_average(output: &Output<'_>, sort_by: &[SortField], parser: &mut Parser) -> Result<WindowExpression> {
    output.without_window()?;
    let [input, n, alpha] = output.named(["input", "N", "alpha"])?;
    let input = parse(output.required("input", input)?, parser)?;
    if sort_by.is_empty() {
        return Err(Error::failed_to_parse("$expMovingAvg needs a sortBy"));
    }
    let alpha = match (n, alpha) {
        (Some(n), None) => match exact_i64(n) {
            Some(n) if n > 0 && !matches!(n, i64::MAX) => Alpha::FromN(n),
            _ => return Err(Error::failed_to_parse("$expMovingAvg takes an integer above 0 as 'N'")),
        },
        (None, Some(alpha)) => match Number::of(alpha) {
            Some(number) if number.to_f64() > 0.0 && number.to_f64() < 1.0 => Alpha::Given(number),
            _ => return Err(Error::failed_to_parse("$expMovingAvg takes a number between 0 and 1 as 'alpha'")),
        },
        _ => return Err(Error::failed_to_parse("$expMovingAvg takes either 'N' or 'alpha'")),
    };
    Ok(WindowExpression {
        operand: Operand::Expression(input),
        function: Function::ExpMovingAvg(alpha),
        bounds: Bounds::WHOLE,
    })
}

fn fill(output: &Output<'_>, sort_by: &[SortField], parser: &mut Parser) -> Result<WindowExpression> {
    output.without_window()?;
    let function = if output.name == "$locf" { Function::Locf } else { Function::LinearFill };
    if output.name == "$linearFill" && sort_by.len() != 1 {
        return Err(Error::location(605_001, "$linearFill needs a sortBy of exactly one field"));
    }
    let operand = Operand::Expression(parse(output.argument, parser)?);
    Ok(WindowExpression { operand, function, bounds: Bounds::WHOLE })
}

fn scaler(output: &Output<'_>, sort_by: &[SortField], parser: &mut Parser) -> Result<WindowExpression> {
    let [input, low, high] = output.named(["input", "min", "max"])?;
    let input = parse(output.required("input", input)?, parser)?;
    let mut end = |argument: Option<RawBsonRef<'_>>, default: i32| match argument {
        None => Ok(Value::from(default)),
        Some(argument) => constant("$minMaxScaler", argument, parser),
    };
    let (low, high) = (end(low, 0)?, end(high, 1)?);
    if !is_number(low.or_null()) || !is_number(high.or_null()) {
        return Err(Error::failed_to_parse("$minMaxScaler takes numbers as 'min' and 'max'"));
    }
    Ok(WindowExpression {
        operand: Operand::Expression(input),
        function: Function::MinMaxScaler(low, high),
        bounds: bounds(output.window, sort_by)?,
    })
}

fn shift(output: &Output<'_>, sort_by: &[SortField], parser: &mut Parser) -> Result<WindowExpression> {
    output.without_window()?;
    let [value, by, default] = output.named(["output", "by", "default"])?;
    if sort_by.is_empty() {
        return Err(Error::failed_to_parse("$shift needs a sortBy"));
    }
    let value = parse(output.required("output", value)?, parser)?;
    let by = whole_i32(output.required("by", by)?)
        .ok_or_else(|| Error::failed_to_parse("$shift takes a 32-bit integer as 'by'"))?;
    let default = match default {
        None => Value::NULL,
        Some(default) => constant("$shift", default, parser)?,
    };
    Ok(WindowExpression {
        operand: Operand::Expression(value),
        function: Function::Shift(by.into(), default),
        bounds: Bounds::WHOLE,
    })
}

/// Evaluates an argument that may not depend on a document.
fn constant(name: &str, argument: RawBsonRef<'_>, parser: &mut Parser) -> Result<Value<'static>> {
    let parsed = parse(argument, parser)?;
    if !super::dependencies(&*parsed).is_some_and(|fields| fields.is_empty()) {
        return Err(Error::failed_to_parse(format!("{name} takes constants there, not what depends on a document")));
    }
    let (root, environment) = (RawDocumentBuf::new(), Environment::fixed());
    Ok(parsed.evaluate(&Scope::new(&root, &environment))?.into_owned())
}

fn unit_of(unit: RawBsonRef<'_>) -> Result<Unit> {
    match unit {
        RawBsonRef::String(name) => {
            Unit::named(name).ok_or_else(|| Error::failed_to_parse(format!("'{name}' is no unit of time")))
        }
        other => Err(Error::failed_to_parse(format!("a unit of time is a string, not {}", type_name(other)))),
    }
}

fn bounds(window: Option<RawBsonRef<'_>>, sort_by: &[SortField]) -> Result<Bounds> {
    let window = match window {
        None => return Ok(Bounds::WHOLE),
        Some(RawBsonRef::Document(window)) => window,
        Some(_) => return Err(Error::failed_to_parse("'window' must be an object")),
    };
    let (mut documents, mut range, mut unit) = (None, None, None);
    for field in window {
        let (name, value) = field?;
        match name.as_str() {
            "documents" => documents = Some(value),
            "range" => range = Some(value),
            "unit" => unit = Some(value),
            other => return Err(Error::failed_to_parse(format!("'window' has no field '{other}'"))),
        }
    }
    match (documents, range) {
        (Some(_), Some(_)) => Err(Error::failed_to_parse("'window' takes either 'documents' or 'range'")),
        (None, None) if unit.is_some() => Err(Error::failed_to_parse("'unit' only stands beside 'range'")),
        (None, None) => Ok(Bounds::WHOLE),
        (Some(documents), None) => {
            if unit.is_some() {
                return Err(Error::failed_to_parse("'unit' only stands beside 'range'"));
            }
            by_position(documents, sort_by)
        }
        (None, Some(range)) => by_value(range, unit, sort_by),
    }
}

/// The two ends of a frame.
fn ends<'a>(name: &str, bounds: RawBsonRef<'a>) -> Result<[RawBsonRef<'a>; 2]> {
    if let RawBsonRef::Array(array) = bounds
        && let Ok([lower, upper]) = <[_; 2]>::try_from(super::operand::elements(array)?)
    {
        return Ok([lower, upper]);
    }
    Err(Error::failed_to_parse(format!("'{name}' of a window takes an array of two bounds")))
}

fn by_position(documents: RawBsonRef<'_>, sort_by: &[SortField]) -> Result<Bounds> {
    let end = |value: RawBsonRef<'_>| match value {
        RawBsonRef::String("unbounded") => Ok(Bound::Unbounded),
        RawBsonRef::String("current") => Ok(Bound::Current),
        other => whole_i32(other).map(|offset| Bound::Offset(offset.into())).ok_or_else(|| {
            Error::failed_to_parse("a bound of 'documents' is 'unbounded', 'current' or a 32-bit integer")
        }),
    };
    let [lower, upper] = ends("documents", documents)?;
    let (lower, upper) = (end(lower)?, end(upper)?);
    let offset = |bound| match bound {
        Bound::Unbounded => None,
        Bound::Current => Some(0),
        Bound::Offset(offset) => Some(offset),
    };
    if let (Some(lower), Some(upper)) = (offset(lower), offset(upper))
        && lower > upper
    {
        return Err(Error::location(5_339_900, "the lower bound of a window may not be above its upper bound"));
    }
    if sort_by.is_empty() && (offset(lower).is_some() || offset(upper).is_some()) {
        return Err(Error::location(5_339_901, "bounds by position other than 'unbounded' need a sortBy"));
    }
    Ok(Bounds::Documents(lower, upper))
}

fn by_value(range: RawBsonRef<'_>, unit: Option<RawBsonRef<'_>>, sort_by: &[SortField]) -> Result<Bounds> {
    let unit = unit.map(unit_of).transpose()?;
    let end = |value: RawBsonRef<'_>| match value {
        RawBsonRef::String("unbounded") => Ok(Bound::Unbounded),
        RawBsonRef::String("current") => Ok(Bound::Current),
        other => match Number::of(other) {
            Some(offset) if unit.is_none() || offset.to_i64_exact().is_some() => Ok(Bound::Offset(offset)),
            Some(_) => Err(Error::failed_to_parse("with a unit, a bound of 'range' is an integer")),
            None => Err(Error::failed_to_parse("a bound of 'range' is 'unbounded', 'current' or a number")),
        },
    };
    let [lower, upper] = ends("range", range)?;
    let (lower, upper) = (end(lower)?, end(upper)?);
    let offset = |bound| match bound {
        Bound::Unbounded => None,
        Bound::Current => Some(Number::Int32(0)),
        Bound::Offset(offset) => Some(offset),
    };
    if let (Some(lower), Some(upper)) = (offset(lower), offset(upper))
        && lower.compare(upper).is_gt()
    {
        return Err(Error::location(5_339_900, "the lower bound of a window may not be above its upper bound"));
    }
    let bounded = offset(lower).is_some() || offset(upper).is_some();
    if bounded && sort_by.len() != 1 {
        return Err(Error::location(5_339_902, "bounds by value need a sortBy of exactly one field"));
    }
    if bounded && sort_by[0].descending {
        return Err(Error::location(8_947_401, "bounds by value need an ascending sortBy"));
    }
    Ok(Bounds::Range(lower, upper, unit))
}
