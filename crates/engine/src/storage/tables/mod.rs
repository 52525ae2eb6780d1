//! The tables: the fold of the log up to a position, in an ordered key-value store that only the folder writes.

pub(super) mod file;
pub(super) mod memory;
mod points;

use super::Position;
use super::view::{Direction, Range, See};
use crate::error::Result;
use bytes::Bytes;
use std::ops::Bound;
use std::sync::Arc;

/// How far the tables reach: the last commit folded into them.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Reached {
    pub(super) position: Position,
    pub(super) time: u64,
}

/// A store of ordered bytes with few, sorted, durable commits and many reads.
pub(super) trait Tables: Send + Sync {
    /// How far the last commit reached; `position` is 0 if there was none.
    fn reached(&self) -> Result<Reached>;

    /// What the last commit left, unaffected by later ones.
    fn view(&self) -> Result<Arc<dyn TableView>>;

    /// Applies a batch, sorted by key, each key once, durably and together with how far it reaches.
    fn commit(&self, batch: &mut dyn Iterator<Item = (Bytes, Option<Bytes>)>, reached: Reached) -> Result<()>;

    /// After a failed commit: makes another attempt possible, if it can be. A view that is returned shows the same
    /// content and must replace the current one; commits fail until all older views are gone.
    fn renew(&self) -> Result<Option<Arc<dyn TableView>>>;

    /// The bytes the store takes.
    fn size_bytes(&self) -> u64;
}

/// The tables as one commit left them.
pub(super) trait TableView: Send + Sync {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>>;

    /// The caller made sure that the range isn't inverted.
    fn range(&self, from: Bound<&[u8]>, to: Bound<&[u8]>, direction: Direction) -> Result<Range<'_>>;

    /// Shows the entries of a range where they lie, until `see` says no.
    fn scan(&self, from: Bound<&[u8]>, to: Bound<&[u8]>, direction: Direction, see: &mut See<'_>) -> Result<()> {
        for entry in self.range(from, to, direction)? {
            let (key, value) = entry?;
            if !see(&key, &value)? {
                break;
            }
        }
        Ok(())
    }
}
