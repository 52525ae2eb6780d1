//! Tables in memory: the twin of the table file, and what tests compare it with.

use super::{Reached, TableView, Tables};
use crate::error::Result;
use crate::storage::view::{Direction, Range};
use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

/// A map that is copied when a commit finds it shared with a view.
#[derive(Default)]
pub(in crate::storage) struct MemoryTables {
    current: Mutex<(Arc<Map>, Reached)>,
}

#[derive(Clone, Default)]
struct Map(BTreeMap<Bytes, Bytes>);

impl Tables for MemoryTables {
    fn reached(&self) -> Result<Reached> {
        Ok(self.current.lock().1)
    }

    fn view(&self) -> Result<Arc<dyn TableView>> {
        Ok(self.current.lock().0.clone())
    }

    fn commit(&self, batch: &mut dyn Iterator<Item = (Bytes, Option<Bytes>)>, reached: Reached) -> Result<()> {
        let mut map = self.current.lock().0.as_ref().clone();
        for (key, value) in batch {
            match value {
                Some(value) => map.0.insert(key, value),
                None => map.0.remove(&key),
            };
        }
        *self.current.lock() = (Arc::new(map), reached);
        Ok(())
    }

    fn renew(&self) -> Result<Option<Arc<dyn TableView>>> {
        Ok(None)
    }

    fn size_bytes(&self) -> u64 {
        let map = self.current.lock().0.clone();
        map.0.iter().map(|(key, value)| (key.len() + value.len()) as u64).sum()
    }
}

impl TableView for Map {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>> {
        Ok(self.0.get(key).cloned())
    }

    fn range(&self, from: Bound<&[u8]>, to: Bound<&[u8]>, direction: Direction) -> Result<Range<'_>> {
        let entries = self.0.range::<[u8], _>((from, to)).map(|(key, value)| Ok((key.clone(), value.clone())));
        Ok(match direction {
            Direction::Forward => Box::new(entries),
            Direction::Backward => Box::new(entries.rev()),
        })
    }
}
