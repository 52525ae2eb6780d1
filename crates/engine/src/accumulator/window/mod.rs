//! Window functions: a value for each row of a sorted partition, from the rows around it.
//!
//! Whoever runs `$setWindowFields` sorts a partition, evaluates the function's operand and the sort key for each row
//! ([`Rows`]) and asks [`Function::compute`] for the results, one a row. [`frame::Bounds`] says which rows each row sees; a
//! frame never moves backwards from one row to the next, so that values enter and leave it in order, and an accumulator that
//! can forget is started once.

mod fill;
pub mod frame;
mod moving;
mod rank;
mod scale;
mod slope;

pub use moving::Alpha;

use super::{Accumulator, AccumulatorKind, Options};
use crate::document::Value;
use crate::document::collation::Collator;
use crate::error::Result;
use frame::Bounds;
use std::ops::Range;

/// A sorted partition: for each row the operand's value and the parts of the sort key.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'r> {
    /// What the function's operand gives for each row.
    pub operands: &'r [Value<'static>],
    /// Each row's sort key; empty parts when there is no `sortBy`.
    pub keys: &'r [Vec<Value<'static>>],
    /// For each part of the sort key whether high values come first.
    pub descending: &'r [bool],
    /// The operation's collation.
    pub collator: Option<&'r Collator>,
}

impl Rows<'_> {
    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.operands.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.operands.is_empty()
    }

    /// A row's first sort key part, null without one.
    fn time(&self, row: usize) -> &Value<'static> {
        static NONE: Value<'static> = Value::NULL;
        self.keys[row].first().unwrap_or(&NONE)
    }
}

/// A window function.
#[derive(Clone, Debug)]
pub enum Function {
    /// An accumulator over the frame.
    Accumulate(&'static AccumulatorKind, Options),
    /// `$covariancePop` (false) or `$covarianceSamp` (true) of operands `[x, y]`.
    Covariance(bool),
    /// `$rank`: the place, rows with equal keys sharing one and leaving a gap.
    Rank,
    /// `$denseRank`: the same without gaps.
    DenseRank,
    /// `$documentNumber`: the place, each row its own.
    DocumentNumber,
    /// `$shift`: the operand of the row that many rows on; the default where there is none.
    Shift(i64, Value<'static>),
    /// `$derivative`: the rate of change over the frame, per so many milliseconds where the sort key is a date.
    Derivative(Option<i64>),
    /// `$integral`: the area under the curve over the frame, in units of so many milliseconds where the key is a date.
    Integral(Option<i64>),
    /// `$expMovingAvg`.
    ExpMovingAvg(Alpha),
    /// `$linearFill`: nulls filled on the line between the values around them.
    LinearFill,
    /// `$locf`: nulls filled with the last value before them.
    Locf,
    /// `$minMaxScaler`: the operand scaled from the frame's extremes to the given ones.
    MinMaxScaler(Value<'static>, Value<'static>),
}

impl Function {
    /// The results, one a row.
    ///
    /// # Errors
    /// What the function refuses of the operands or the sort keys.
    pub fn compute(&self, rows: &Rows<'_>, bounds: &Bounds) -> Result<Vec<Value<'static>>> {
        match self {
            Function::Accumulate(kind, options) => {
                let frames = bounds.frames(rows)?;
                match kind.start_removable {
                    Some(start) if bounds.slides() => slide(&mut *start(options), rows, &frames),
                    _ => grow(&|| (kind.start)(options), rows, &frames),
                }
            }
            Function::Covariance(sample) => slide(&mut *super::covariance::start(*sample), rows, &bounds.frames(rows)?),
            Function::Rank => rank::rank(rows, rank::Ties::Gap),
            Function::DenseRank => rank::rank(rows, rank::Ties::NoGap),
            Function::DocumentNumber => rank::rank(rows, rank::Ties::Apart),
            Function::Shift(by, default) => Ok(rank::shift(rows, *by, default)),
            Function::Derivative(unit) => slope::derivative(rows, &bounds.frames(rows)?, *unit),
            Function::Integral(unit) => slope::integral(rows, &bounds.frames(rows)?, *unit),
            Function::ExpMovingAvg(alpha) => moving::exponential_average(rows, *alpha),
            Function::LinearFill => fill::linear(rows),
            Function::Locf => Ok(fill::last_carried_forward(rows)),
            Function::MinMaxScaler(low, high) => scale::min_max(rows, &bounds.frames(rows)?, low, high),
        }
    }
}

/// Runs an accumulator that can forget along the frames.
fn slide(accumulator: &mut dyn Accumulator, rows: &Rows<'_>, frames: &[Range<usize>]) -> Result<Vec<Value<'static>>> {
    let mut held = 0..0;
    let mut results = Vec::with_capacity(frames.len());
    for frame in frames {
        while held.end < frame.end {
            accumulator.add(rows.operands[held.end].borrow())?;
            held.end += 1;
        }
        while held.start < frame.start.min(held.end) {
            accumulator.remove(rows.operands[held.start].borrow())?;
            held.start += 1;
        }
        results.push(accumulator.result()?);
    }
    Ok(results)
}

/// Runs an accumulator along the frames, adding while the frame only grows and starting anew when a row leaves it.
fn grow(
    start: &dyn Fn() -> Box<dyn Accumulator>,
    rows: &Rows<'_>,
    frames: &[Range<usize>],
) -> Result<Vec<Value<'static>>> {
    let mut accumulator = start();
    let mut held = 0..0;
    let mut results: Vec<Value<'static>> = Vec::with_capacity(frames.len());
    for frame in frames {
        if held == *frame && !results.is_empty() {
            results.push(results.last().expect("just seen not to be empty").clone());
            continue;
        }
        if held.start != frame.start {
            accumulator = start();
            held = frame.start..frame.start;
        }
        while held.end < frame.end {
            accumulator.add(rows.operands[held.end].borrow())?;
            held.end += 1;
        }
        results.push(accumulator.result()?);
    }
    Ok(results)
}
