//! What can be read: a point, or a range in either direction, over whatever layers lie on top of each other.

use super::Position;
use super::overlay::Generation;
use super::tables::TableView;
use crate::error::Result;
use bytes::Bytes;
use std::ops::Bound;
use std::sync::Arc;

/// The order in which a range is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// From the least key to the greatest.
    Forward,
    /// From the greatest key to the least.
    Backward,
}

/// The entries of a range, in the direction asked for.
pub type Range<'a> = Box<dyn Iterator<Item = Result<(Bytes, Bytes)>> + Send + 'a>;

/// Looks at an entry; false when no more are wanted.
pub type See<'s> = dyn FnMut(&[u8], &[u8]) -> Result<bool> + 's;

/// One layer's part of a range: a key with its value, or with `None` where the layer deletes it.
pub(super) type Source<'a> = Box<dyn Iterator<Item = Result<Layered>> + Send + 'a>;

/// A key and what a layer says of it.
type Layered = (Bytes, Option<Bytes>);

/// Ordered bytes that can be read: a snapshot, the writer's state, or a layer on top of one of them.
pub trait View: Sync {
    /// The value of a key, or `None` where there is none.
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>>;

    /// The entries between two bounds. A range whose lower bound lies beyond its upper bound is empty.
    fn range(&self, from: Bound<&[u8]>, to: Bound<&[u8]>, direction: Direction) -> Result<Range<'_>>;

    /// Shows the entries between two bounds where they lie, for readers that keep few of them, until `see` says no.
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

/// Published data as of one position. It stays as it is, whatever is written or folded meanwhile.
///
/// Cloning costs one reference count. A snapshot keeps the table file from reusing pages, so it should not be kept
/// for more than a minute.
#[derive(Clone)]
pub struct Snapshot(pub(super) Arc<State>);

impl Snapshot {
    /// The position of the last commit that this snapshot shows.
    pub fn position(&self) -> Position {
        self.0.position
    }
}

impl View for Snapshot {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>> {
        self.0.get_at(key, self.0.position)
    }

    fn range(&self, from: Bound<&[u8]>, to: Bound<&[u8]>, direction: Direction) -> Result<Range<'_>> {
        self.0.range_at(from, to, direction, self.0.position)
    }

    fn scan(&self, from: Bound<&[u8]>, to: Bound<&[u8]>, direction: Direction, see: &mut See<'_>) -> Result<()> {
        self.0.scan_at(from, to, direction, self.0.position, see)
    }
}

/// Everything a reader needs, published as one: the tables, what isn't folded into them yet, and how far to look.
///
/// Invariant: `tables` reach at most `position`, and every commit beyond what they reach is in `generations`.
pub(super) struct State {
    pub(super) position: Position,
    pub(super) tables: Arc<dyn TableView>,
    /// Newest first; the first is the active one.
    pub(super) generations: Vec<Arc<Generation>>,
}

impl State {
    pub(super) fn get_at(&self, key: &[u8], position: Position) -> Result<Option<Bytes>> {
        for generation in &self.generations {
            if let Some(value) = generation.get(key, position) {
                return Ok(value);
            }
        }
        self.tables.get(key)
    }

    pub(super) fn range_at(
        &self,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
        direction: Direction,
        position: Position,
    ) -> Result<Range<'_>> {
        if is_empty(from, to) {
            return Ok(Box::new(std::iter::empty()));
        }
        let tables = self.tables.range(from, to, direction)?;
        let mut sources: Vec<Source<'_>> = Vec::with_capacity(self.generations.len() + 1);
        for generation in &self.generations {
            if !generation.is_empty() {
                sources.push(Box::new(generation.range(from, to, direction, position).map(Ok)));
            }
        }
        Ok(if sources.is_empty() { tables } else { merge(sources, tables, direction) })
    }

    /// As [`State::range_at`], but what lies in the tables is not copied.
    fn scan_at(
        &self,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
        direction: Direction,
        position: Position,
        see: &mut See<'_>,
    ) -> Result<()> {
        if is_empty(from, to) {
            return Ok(());
        }
        let mut sources: Vec<Source<'_>> = Vec::with_capacity(self.generations.len());
        for generation in &self.generations {
            if !generation.is_empty() {
                sources.push(Box::new(generation.range(from, to, direction, position).map(Ok)));
            }
        }
        let mut above = Merge::new(sources, direction);
        let mut head = above.pop().transpose()?;
        let mut wanted = true;
        self.tables.scan(from, to, direction, &mut |key, value| {
            while let Some((own, own_value)) = &head {
                let order = match direction {
                    Direction::Forward => own[..].cmp(key),
                    Direction::Backward => key.cmp(own),
                };
                if order.is_gt() {
                    break;
                }
                if let Some(own_value) = own_value {
                    wanted = see(own, own_value)?;
                }
                head = above.pop().transpose()?;
                if !wanted || order.is_eq() {
                    return Ok(wanted);
                }
            }
            wanted = see(key, value)?;
            Ok(wanted)
        })?;
        while let (true, Some((own, own_value))) = (wanted, &head) {
            if let Some(own_value) = own_value {
                wanted = see(own, own_value)?;
            }
            head = above.pop().transpose()?;
        }
        Ok(())
    }
}

/// Whether no key can lie between two bounds (`BTreeMap::range` and its kin panic on some of these).
pub(super) fn is_empty(from: Bound<&[u8]>, to: Bound<&[u8]>) -> bool {
    match (from, to) {
        (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
        (Bound::Included(from), Bound::Included(to)) => from > to,
        (Bound::Included(from) | Bound::Excluded(from), Bound::Included(to) | Bound::Excluded(to)) => from >= to,
    }
}

/// Lays sources, newest first, over a base: for each key the newest says what it is.
pub(super) fn merge<'a>(mut sources: Vec<Source<'a>>, base: Range<'a>, direction: Direction) -> Range<'a> {
    sources.push(Box::new(base.map(|entry| entry.map(|(key, value)| (key, Some(value))))));
    Box::new(Merge::new(sources, direction))
}

struct Merge<'a> {
    sources: Vec<Source<'a>>,
    /// The next entry of each source.
    heads: Vec<Option<Result<Layered>>>,
    direction: Direction,
}

impl<'a> Merge<'a> {
    /// The merge of sources, newest first.
    fn new(mut sources: Vec<Source<'a>>, direction: Direction) -> Merge<'a> {
        let heads = sources.iter_mut().map(Iterator::next).collect();
        Merge { sources, heads, direction }
    }

    /// The next key with what its newest source says of it.
    fn pop(&mut self) -> Option<Result<Layered>> {
        let first = self.first()?;
        let (key, value) = match self.take(first)? {
            Ok(entry) => entry,
            Err(error) => {
                self.heads.clear();
                return Some(Err(error));
            }
        };
        for older in first + 1..self.heads.len() {
            if matches!(&self.heads[older], Some(Ok((other, _))) if *other == key) {
                self.take(older);
            }
        }
        Some(Ok((key, value)))
    }

    /// The source whose head comes first; among equal keys, the newest source. A failed source comes before all.
    fn first(&self) -> Option<usize> {
        let mut best: Option<(usize, &Bytes)> = None;
        for (index, head) in self.heads.iter().enumerate() {
            match head {
                None => {}
                Some(Err(_)) => return Some(index),
                Some(Ok((key, _))) => {
                    let better = match (best, self.direction) {
                        (None, _) => true,
                        (Some((_, least)), Direction::Forward) => key < least,
                        (Some((_, greatest)), Direction::Backward) => key > greatest,
                    };
                    if better {
                        best = Some((index, key));
                    }
                }
            }
        }
        best.map(|(index, _)| index)
    }

    /// Takes a source's head.
    fn take(&mut self, index: usize) -> Option<Result<Layered>> {
        let next = self.sources[index].next();
        std::mem::replace(&mut self.heads[index], next)
    }
}

impl Iterator for Merge<'_> {
    type Item = Result<(Bytes, Bytes)>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.pop()? {
                Ok((key, Some(value))) => return Some(Ok((key, value))),
                Ok((_, None)) => {}
                Err(error) => return Some(Err(error)),
            }
        }
    }
}
