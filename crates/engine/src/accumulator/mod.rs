//! Accumulators: many values into one, for `$group`, `$setWindowFields` and the expressions of the same names.
//!
//! They see values only, never expressions or documents: whoever groups evaluates the operand and hands the value over.
//! [`ACCUMULATORS`] alone says which there are, what argument each takes ([`Argument`]) and how it starts. What an argument
//! holds beside the operand (`n`, `p`, the direction of `sortBy`) comes in [`Options`], evaluated.
//!
//! Over a sliding window some accumulators can forget a value again ([`Accumulator::remove`]); the others are computed anew
//! for each row (see [`window`]).

mod add_to_set;
mod array_union;
mod average;
mod count;
mod covariance;
mod ends;
mod extremes;
pub mod merge_objects;
pub mod percentile;
mod push;
mod ranked;
mod sliding;
pub mod std_dev;
pub mod summation;
pub mod window;

use crate::document::Value;
use crate::document::collation::Collator;
use crate::error::{Error, Result};
use bson::{RawBson, RawBsonRef};
use std::fmt::Debug;
use std::sync::Arc;

/// The running state of one accumulation.
pub trait Accumulator: Debug + Send {
    /// Takes one more value.
    ///
    /// # Errors
    /// What the accumulator refuses.
    fn add(&mut self, value: Value<'_>) -> Result<()>;

    /// Forgets the oldest value that is still in, which the caller hands over again; only where the table says that it can.
    ///
    /// # Errors
    /// `InternalError` (1) when it can't.
    fn remove(&mut self, value: Value<'_>) -> Result<()> {
        let _ = value;
        Err(Error::internal("this accumulator forgets nothing"))
    }

    /// The result so far; never missing.
    ///
    /// # Errors
    /// What can only be refused at the end.
    fn result(&self) -> Result<Value<'static>>;

    /// About how many bytes it holds, for the memory bound of whoever groups.
    fn size_bytes(&self) -> usize;
}

/// What stands in an accumulator's argument.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Argument {
    /// An expression: the operand.
    Operand,
    /// Nothing: `{}`.
    Nothing,
    /// `{input, n}`; the operand is `input`.
    Several,
    /// `{output, sortBy}`; the operand is an array of the output and the parts of the sort key.
    Sorted,
    /// `{output, sortBy, n}`.
    SeveralSorted,
    /// `{input, method}`; the operand is `input`.
    Median,
    /// `{input, p, method}`.
    Percentile,
}

/// The evaluated parts of an accumulator's argument beside its operand.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// How many values the result holds at most.
    pub n: usize,
    /// For each part of the sort key whether high values come first.
    pub descending: Vec<bool>,
    /// The percentiles wanted, each from 0 to 1.
    pub percentiles: Vec<f64>,
    /// How a percentile between two values is found.
    pub method: percentile::Method,
    /// The operation's collation.
    pub collator: Option<Arc<Collator>>,
}

/// Starts an accumulation.
pub type Start = fn(&Options) -> Box<dyn Accumulator>;

/// A row of the accumulator table.
pub struct AccumulatorKind {
    /// The name with its `$`.
    pub name: &'static str,
    /// What stands in its argument.
    pub argument: Argument,
    /// Starts an accumulation.
    pub start: Start,
    /// Starts one that can forget, where it can.
    pub start_removable: Option<Start>,
    /// Whether it may stand in `$group`.
    pub in_group: bool,
    /// Whether it may stand in `$setWindowFields`.
    pub in_window: bool,
}

const fn kind(name: &'static str, argument: Argument, start: Start) -> AccumulatorKind {
    AccumulatorKind { name, argument, start, start_removable: None, in_group: true, in_window: true }
}

const fn removable(name: &'static str, argument: Argument, start: Start, start_removable: Start) -> AccumulatorKind {
    AccumulatorKind { start_removable: Some(start_removable), ..kind(name, argument, start) }
}

/// All accumulators, sorted by name.
pub static ACCUMULATORS: &[AccumulatorKind] = &[
    removable("$addToSet", Argument::Operand, add_to_set::start, sliding::start_set),
    removable("$avg", Argument::Operand, average::start, average::start),
    kind("$bottom", Argument::Sorted, |options| ranked::start(options, ranked::End::Bottom, true)),
    kind("$bottomN", Argument::SeveralSorted, |options| ranked::start(options, ranked::End::Bottom, false)),
    kind("$concatArrays", Argument::Operand, array_union::start_concat),
    removable("$count", Argument::Nothing, count::start, count::start),
    removable(
        "$first",
        Argument::Operand,
        |_| ends::start_single(ends::End::First),
        |_| sliding::start_end(false, None),
    ),
    removable(
        "$firstN",
        Argument::Several,
        |options| ends::start_several(ends::End::First, options.n),
        |options| sliding::start_end(false, Some(options.n)),
    ),
    removable("$last", Argument::Operand, |_| ends::start_single(ends::End::Last), |_| sliding::start_end(true, None)),
    removable(
        "$lastN",
        Argument::Several,
        |options| ends::start_several(ends::End::Last, options.n),
        |options| sliding::start_end(true, Some(options.n)),
    ),
    removable(
        "$max",
        Argument::Operand,
        |options| extremes::start_single(options, extremes::End::Highest),
        |options| sliding::start_extreme(options, true),
    ),
    kind("$maxN", Argument::Several, |options| extremes::start_several(options, extremes::End::Highest)),
    kind("$median", Argument::Median, |options| percentile::start(options, true)),
    AccumulatorKind { in_window: false, ..kind("$mergeObjects", Argument::Operand, merge_objects::start) },
    removable(
        "$min",
        Argument::Operand,
        |options| extremes::start_single(options, extremes::End::Lowest),
        |options| sliding::start_extreme(options, false),
    ),
    kind("$minN", Argument::Several, |options| extremes::start_several(options, extremes::End::Lowest)),
    kind("$percentile", Argument::Percentile, |options| percentile::start(options, false)),
    removable("$push", Argument::Operand, push::start, push::start),
    kind("$setUnion", Argument::Operand, array_union::start_union),
    removable("$stdDevPop", Argument::Operand, |_| std_dev::start(false), |_| std_dev::start_removable(false)),
    removable("$stdDevSamp", Argument::Operand, |_| std_dev::start(true), |_| std_dev::start_removable(true)),
    removable("$sum", Argument::Operand, summation::start, summation::start),
    kind("$top", Argument::Sorted, |options| ranked::start(options, ranked::End::Top, true)),
    kind("$topN", Argument::SeveralSorted, |options| ranked::start(options, ranked::End::Top, false)),
];

/// The table row of that name.
pub fn find(name: &str) -> Option<&'static AccumulatorKind> {
    ACCUMULATORS.binary_search_by(|kind| kind.name.cmp(name)).ok().map(|found| &ACCUMULATORS[found])
}

/// About how many bytes a kept value takes.
fn kept_bytes(value: &RawBson) -> usize {
    size_of::<RawBson>()
        + match value {
            RawBson::Document(document) => document.as_bytes().len(),
            RawBson::Array(array) => array.as_bytes().len(),
            RawBson::String(text) | RawBson::Symbol(text) | RawBson::JavaScriptCode(text) => text.len(),
            RawBson::Binary(binary) => binary.bytes.len(),
            _ => 0,
        }
}

/// The value to keep, null for a missing one.
fn kept(value: Value<'_>) -> RawBson {
    match value {
        Value::Missing => RawBson::Null,
        Value::Borrowed(value) => value.into(),
        Value::Owned(value) => value,
    }
}

/// Values as an array.
fn array_of<'a>(values: impl IntoIterator<Item = RawBsonRef<'a>>) -> Value<'static> {
    let mut array = bson::RawArrayBuf::new();
    values.into_iter().for_each(|value| array.push(value));
    array.into()
}
