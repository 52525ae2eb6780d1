//! An accumulator with its argument parsed, as `$group`, `$bucket` and `$setWindowFields` write it: `{$sum: "$a"}`,
//! `{$topN: {n, sortBy, output}}`.
//!
//! Whoever groups starts one accumulation for each group ([`Accumulation::start`]) and hands it the operand of each row
//! ([`Accumulation::operand`]).

use super::accumulated::bound;
use super::operand::{named, required};
use super::percentile::parse_arguments;
use super::{Compiled, Expression, Parser, Scope, parse};
use crate::accumulator::percentile::Method;
use crate::accumulator::{self, Accumulator, AccumulatorKind, Argument, Options};
use crate::document::order::{SortField, parse_pattern, sort_key};
use crate::document::{Value, type_name};
use crate::error::{Code, Error, Result};
use bson::{RawArrayBuf, RawBsonRef};

/// A parsed accumulator.
#[derive(Debug)]
pub struct Accumulation {
    kind: &'static AccumulatorKind,
    operand: Option<Compiled>,
    n: Option<Compiled>,
    sort_by: Vec<SortField>,
    percentiles: Vec<f64>,
    method: Method,
    in_group: bool,
}

impl std::fmt::Debug for AccumulatorKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

impl Accumulation {
    /// Parses an accumulator of `$group` and its like.
    ///
    /// # Errors
    /// `Location15952` for an unknown name, `Location40237` for an array as the operand, and what the argument
    /// has wrong.
    pub fn parse_in_group(name: &str, argument: RawBsonRef<'_>, parser: &mut Parser) -> Result<Accumulation> {
        match accumulator::find(name) {
            Some(kind) if kind.in_group => {
                if kind.argument == Argument::Operand && matches!(argument, RawBsonRef::Array(_)) {
                    return Err(Error::location(
                        40237,
                        format!("the accumulator {name} takes one operand, not an array"),
                    ));
                }
                let parsed = Accumulation::parse(kind, argument, parser).map_err(as_in_group)?;
                Ok(Accumulation { in_group: true, ..parsed })
            }
            _ => Err(Error::location(15952, format!("unknown group operator '{name}'"))),
        }
    }

    /// Parses the argument of an accumulator.
    ///
    /// # Errors
    /// What the argument has wrong.
    pub fn parse(
        kind: &'static AccumulatorKind,
        argument: RawBsonRef<'_>,
        parser: &mut Parser,
    ) -> Result<Accumulation> {
        let mut parsed = Accumulation {
            kind,
            operand: None,
            n: None,
            sort_by: Vec::new(),
            percentiles: Vec::new(),
            method: Method::default(),
            in_group: false,
        };
        match kind.argument {
            Argument::Operand => parsed.operand = Some(parse(argument, parser)?),
            Argument::Nothing => {
                if !matches!(argument, RawBsonRef::Document(document) if document.is_empty()) {
                    return Err(Error::type_mismatch(format!("{} takes no arguments: write {{}}", kind.name)));
                }
            }
            Argument::Several => {
                let [input, n] = named(kind.name, argument, ["input", "n"], 5_787_801, 5_787_901)?;
                parsed.n = Some(required(kind.name, "n", n, 5_787_906, parser)?);
                parsed.operand = Some(required(kind.name, "input", input, 5_787_907, parser)?);
            }
            Argument::Sorted | Argument::SeveralSorted => parsed.parse_sorted(argument, parser)?,
            Argument::Median | Argument::Percentile => {
                let takes_p = kind.argument == Argument::Percentile;
                let arguments = parse_arguments(kind.name, takes_p, argument, parser)?;
                parsed.operand = Some(arguments.input);
                parsed.percentiles = arguments.percentiles;
                parsed.method = arguments.method;
            }
        }
        if let Some(n) = parsed.n.as_ref().and_then(|n| n.constant()) {
            bound(kind.name, &Value::Borrowed(n))?;
        }
        Ok(parsed)
    }

    fn parse_sorted(&mut self, argument: RawBsonRef<'_>, parser: &mut Parser) -> Result<()> {
        let name = self.kind.name;
        let takes_n = self.kind.argument == Argument::SeveralSorted;
        let (output, sort_by, n) = if takes_n {
            let [output, sort_by, n] = named(name, argument, ["output", "sortBy", "n"], 5_788_001, 5_788_002)?;
            self.n = Some(required(name, "n", n, 5_788_003, parser)?);
            (output, sort_by, n)
        } else {
            let [output, sort_by] = named(name, argument, ["output", "sortBy"], 5_788_001, 5_788_002)?;
            (output, sort_by, None)
        };
        debug_assert_eq!(n.is_some(), takes_n);
        self.operand = Some(required(name, "output", output, 5_788_004, parser)?);
        self.sort_by = match sort_by {
            Some(RawBsonRef::Document(pattern)) => parse_pattern(pattern)?,
            Some(other) => {
                return Err(Error::new(
                    Code(10065),
                    format!("{name} takes an object as 'sortBy', not {}", type_name(other)),
                ));
            }
            None => return Err(Error::location(5_788_005, format!("{name} needs the argument 'sortBy'"))),
        };
        Ok(())
    }

    /// The accumulator's name.
    pub fn name(&self) -> &'static str {
        self.kind.name
    }

    /// The accumulator's table row.
    pub fn kind(&self) -> &'static AccumulatorKind {
        self.kind
    }

    /// Starts an accumulation. The scope's document is what `n` may refer to: in `$group` the group's `{_id: …}`.
    ///
    /// # Errors
    /// What `n` refuses.
    pub fn start(&self, scope: &Scope<'_>) -> Result<Box<dyn Accumulator>> {
        let options = self.options(scope).map_err(|error| if self.in_group { as_in_group(error) } else { error })?;
        Ok((self.kind.start)(&options))
    }

    /// The evaluated options.
    ///
    /// # Errors
    /// What `n` refuses.
    pub fn options(&self, scope: &Scope<'_>) -> Result<Options> {
        let n = match &self.n {
            Some(n) => bound(self.kind.name, &n.evaluate(scope)?)?,
            None => 1,
        };
        Ok(Options {
            n,
            descending: self.sort_by.iter().map(|field| field.descending).collect(),
            percentiles: self.percentiles.clone(),
            method: self.method,
            collator: scope.environment.collator.clone(),
        })
    }

    /// The value of a row that the accumulation takes.
    ///
    /// # Errors
    /// What the operand refuses.
    pub fn operand<'a>(&'a self, scope: &Scope<'a>) -> Result<Value<'a>> {
        let Some(operand) = &self.operand else { return Ok(Value::NULL) };
        let value = operand.evaluate(scope).map_err(|error| if self.in_group { as_in_group(error) } else { error })?;
        if self.sort_by.is_empty() {
            return Ok(value);
        }
        let mut row = RawArrayBuf::new();
        row.push(value.or_null());
        if let RawBsonRef::Document(document) = scope.root {
            for part in sort_key(document, &self.sort_by, scope.environment.collator())? {
                row.push(part.or_null());
            }
        }
        Ok(row.into())
    }

    /// Calls `visit` for each expression in the argument; the paths of `sortBy` are given by [`Accumulation::sort_paths`].
    pub fn each_operand(&self, visit: &mut dyn FnMut(&dyn Expression)) {
        self.operand.iter().chain(&self.n).for_each(|operand| visit(&**operand));
    }

    /// The paths that `sortBy` reads.
    pub fn sort_paths(&self) -> impl Iterator<Item = &str> {
        self.sort_by.iter().map(|field| &*field.path)
    }
}

/// Divisions by zero and a wrong `n` have other codes in MongoDB's `$group` than elsewhere.
fn as_in_group(mut error: Error) -> Error {
    error.code.0 = match error.code.0 {
        2 if error.message.ends_with("$divide by zero") => 4_848_401,
        16610 => 4_848_403,
        5_787_902 | 5_787_903 | 5_787_908 => 7_548_606,
        code => code,
    };
    error
}
