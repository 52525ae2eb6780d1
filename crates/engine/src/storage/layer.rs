//! Private writes on top of a view: what a statement or a transaction has written and nobody else sees yet.

use super::view::{Direction, Range, Snapshot, Source, View, is_empty, merge};
use crate::error::Result;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::ops::Bound;

/// Writes by key, in key order; `None` deletes. The last write of a key wins.
#[derive(Clone, Debug, Default)]
pub struct Writes {
    map: BTreeMap<Bytes, Option<Bytes>>,
    size_bytes: usize,
}

impl Writes {
    /// No writes.
    pub fn new() -> Writes {
        Writes::default()
    }

    /// Sets a key's value.
    pub fn put(&mut self, key: impl Into<Bytes>, value: impl Into<Bytes>) {
        self.set(key.into(), Some(value.into()));
    }

    /// Deletes a key.
    pub fn delete(&mut self, key: impl Into<Bytes>) {
        self.set(key.into(), None);
    }

    /// What was written to a key: `None` if nothing, `Some(None)` if it was deleted.
    pub fn get(&self, key: &[u8]) -> Option<Option<&Bytes>> {
        self.map.get(key).map(Option::as_ref)
    }

    /// Takes over later writes, as when a statement's layer joins its transaction's.
    pub fn absorb(&mut self, later: Writes) {
        for (key, value) in later.map {
            self.set(key, value);
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.map.is_empty()
    }

    /// How many keys are written.
    pub fn len(&self) -> usize {
        self.map.len()
    }

    /// The bytes of all keys and values, to bound a transaction by.
    pub fn size_bytes(&self) -> usize {
        self.size_bytes
    }

    /// The writes in key order.
    pub fn iter(&self) -> impl Iterator<Item = (&Bytes, Option<&Bytes>)> {
        self.map.iter().map(|(key, value)| (key, value.as_ref()))
    }

    /// The writes in key order, as [`Changes::writes`](super::Changes::writes) takes them.
    pub fn into_vec(self) -> Vec<(Bytes, Option<Bytes>)> {
        self.map.into_iter().collect()
    }

    fn set(&mut self, key: Bytes, value: Option<Bytes>) {
        let key_size = key.len();
        self.size_bytes += key_size + value.as_ref().map_or(0, Bytes::len);
        if let Some(replaced) = self.map.insert(key, value) {
            self.size_bytes -= key_size + replaced.map_or(0, |value| value.len());
        }
    }

    fn get_over(&self, base: &dyn View, key: &[u8]) -> Result<Option<Bytes>> {
        match self.map.get(key) {
            Some(value) => Ok(value.clone()),
            None => base.get(key),
        }
    }

    fn range_over<'a>(
        &'a self,
        base: &'a dyn View,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
        direction: Direction,
    ) -> Result<Range<'a>> {
        let below = base.range(from, to, direction)?;
        if self.map.is_empty() || is_empty(from, to) {
            return Ok(below);
        }
        let own = self.map.range::<[u8], _>((from, to)).map(|(key, value)| Ok((key.clone(), value.clone())));
        let own: Source<'a> = match direction {
            Direction::Forward => Box::new(own),
            Direction::Backward => Box::new(own.rev()),
        };
        Ok(merge(vec![own], below, direction))
    }
}

/// A layer of writes over a borrowed view, itself a view: layers can lie on layers.
pub struct Layer<'v> {
    base: &'v dyn View,
    writes: Writes,
}

impl<'v> Layer<'v> {
    /// An empty layer.
    pub fn new(base: &'v dyn View) -> Layer<'v> {
        Layer { base, writes: Writes::new() }
    }

    /// A layer that already holds writes.
    pub fn with_writes(base: &'v dyn View, writes: Writes) -> Layer<'v> {
        Layer { base, writes }
    }

    /// Sets a key's value.
    pub fn put(&mut self, key: impl Into<Bytes>, value: impl Into<Bytes>) {
        self.writes.put(key, value);
    }

    /// Deletes a key.
    pub fn delete(&mut self, key: impl Into<Bytes>) {
        self.writes.delete(key);
    }

    /// The writes so far.
    pub fn writes(&self) -> &Writes {
        &self.writes
    }

    /// The writes so far, to be extended.
    pub fn writes_mut(&mut self) -> &mut Writes {
        &mut self.writes
    }

    /// The writes, for a commit or for the layer below.
    pub fn into_writes(self) -> Writes {
        self.writes
    }
}

impl View for Layer<'_> {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>> {
        self.writes.get_over(self.base, key)
    }

    fn range(&self, from: Bound<&[u8]>, to: Bound<&[u8]>, direction: Direction) -> Result<Range<'_>> {
        self.writes.range_over(self.base, from, to, direction)
    }
}

/// Writes over a snapshot of their own: a transaction, kept between its statements.
#[derive(Clone)]
pub struct Overlaid {
    /// What the transaction reads.
    pub snapshot: Snapshot,
    /// What it has written so far.
    pub writes: Writes,
}

impl Overlaid {
    /// No writes yet over a snapshot.
    pub fn new(snapshot: Snapshot) -> Overlaid {
        Overlaid { snapshot, writes: Writes::new() }
    }
}

impl View for Overlaid {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>> {
        self.writes.get_over(&self.snapshot, key)
    }

    fn range(&self, from: Bound<&[u8]>, to: Bound<&[u8]>, direction: Direction) -> Result<Range<'_>> {
        self.writes.range_over(&self.snapshot, from, to, direction)
    }
}
