//! Accumulators: many values into one, for `$group`, `$setWindowFields` and the expressions of the same names.
//!
//! They see values only, never expressions or documents: whoever groups evaluates the operand and hands the value over.

use crate::document::Value;
use crate::error::Result;
use std::fmt::Debug;

/// The running state of one accumulation.
pub trait Accumulator: Debug + Send {
    /// Takes one more value.
    ///
    /// # Errors
    /// What the accumulator refuses.
    fn add(&mut self, value: Value<'_>) -> Result<()>;

    /// The result so far.
    ///
    /// # Errors
    /// What can only be refused at the end.
    fn result(&self) -> Result<Value<'static>>;

    /// About how many bytes it holds, for the memory bound of whoever groups.
    fn size_bytes(&self) -> usize;
}
