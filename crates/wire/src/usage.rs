//! How much each collection is used, for `top`: times and counts by kind of operation since the start.

use parking_lot::RwLock;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The most collections that are counted; further ones aren't.
const MAX_NAMESPACES: usize = 100_000;

/// All collections' counters.
#[derive(Default)]
pub(crate) struct Usage {
    namespaces: RwLock<HashMap<String, Arc<Counters>>>,
}

/// The counters of the collection that a connection used last, so that a busy connection looks nothing up.
pub(crate) struct Used {
    database: String,
    collection: String,
    counters: Arc<Counters>,
}

/// A kind of operation, in the order of `top`'s fields.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Total,
    ReadLock,
    WriteLock,
    Queries,
    GetMore,
    Insert,
    Update,
    Remove,
    Commands,
}

/// The kinds with their names.
pub(crate) const KINDS: [(Kind, &str); 9] = [
    (Kind::Total, "total"),
    (Kind::ReadLock, "readLock"),
    (Kind::WriteLock, "writeLock"),
    (Kind::Queries, "queries"),
    (Kind::GetMore, "getmore"),
    (Kind::Insert, "insert"),
    (Kind::Update, "update"),
    (Kind::Remove, "remove"),
    (Kind::Commands, "commands"),
];

/// One collection's counters.
#[derive(Default)]
pub(crate) struct Counters {
    counts: [AtomicU64; KINDS.len()],
    times_us: [AtomicU64; KINDS.len()],
}

impl Counters {
    fn add(&self, kind: Kind, time_us: u64) {
        self.counts[kind as usize].fetch_add(1, Ordering::Relaxed);
        self.times_us[kind as usize].fetch_add(time_us, Ordering::Relaxed);
    }

    /// How often, and for how many microseconds.
    pub(crate) fn of(&self, kind: Kind) -> (u64, u64) {
        (self.counts[kind as usize].load(Ordering::Relaxed), self.times_us[kind as usize].load(Ordering::Relaxed))
    }
}

impl Usage {
    /// Counts an operation on a collection.
    pub(crate) fn count(
        &self,
        used: &mut Option<Used>,
        database: &str,
        collection: &str,
        command: &str,
        took: Duration,
    ) {
        let time_us = took.as_micros() as u64;
        let fits = |used: &Used| used.collection == collection && used.database == database;
        if !used.as_ref().is_some_and(fits) {
            let Some(counters) = self.counters(database, collection) else { return };
            *used = Some(Used { database: database.to_owned(), collection: collection.to_owned(), counters });
        }
        let counters = &used.as_ref().expect("it was set above").counters;
        let (kind, lock) = kinds(command);
        counters.add(Kind::Total, time_us);
        counters.add(lock, time_us);
        counters.add(kind, time_us);
    }

    fn counters(&self, database: &str, collection: &str) -> Option<Arc<Counters>> {
        let name = format!("{database}.{collection}");
        if let Some(known) = self.namespaces.read().get(&name) {
            return Some(known.clone());
        }
        let mut namespaces = self.namespaces.write();
        if namespaces.len() >= MAX_NAMESPACES {
            return None;
        }
        Some(namespaces.entry(name).or_default().clone())
    }

    /// All counted collections, by name.
    pub(crate) fn all(&self) -> Vec<(String, Arc<Counters>)> {
        let mut all: Vec<_> =
            self.namespaces.read().iter().map(|(name, counters)| (name.clone(), counters.clone())).collect();
        all.sort_by(|a, b| a.0.cmp(&b.0));
        all
    }

    /// Forgets a collection that was dropped.
    pub(crate) fn forget(&self, name: &str) {
        self.namespaces.write().remove(name);
    }
}

/// What an operation is counted as.
fn kinds(command: &str) -> (Kind, Kind) {
    match command {
        "find" => (Kind::Queries, Kind::ReadLock),
        "getMore" => (Kind::GetMore, Kind::ReadLock),
        "insert" => (Kind::Insert, Kind::WriteLock),
        "update" => (Kind::Update, Kind::WriteLock),
        "delete" => (Kind::Remove, Kind::WriteLock),
        "findAndModify" | "create" | "drop" | "createIndexes" | "dropIndexes" | "collMod" | "renameCollection" => {
            (Kind::Commands, Kind::WriteLock)
        }
        _ => (Kind::Commands, Kind::ReadLock),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_counted_by_collection_and_kind() {
        let usage = Usage::default();
        let mut used = None;
        let took = Duration::from_micros(5);
        usage.count(&mut used, "shop", "items", "find", took);
        usage.count(&mut used, "shop", "items", "update", took);
        usage.count(&mut used, "shop", "orders", "insert", took);
        let all = usage.all();
        let names: Vec<&str> = all.iter().map(|entry| entry.0.as_str()).collect();
        assert_eq!(names, ["shop.items", "shop.orders"]);
        let counted: Vec<u64> = KINDS.iter().map(|(kind, _)| all[0].1.of(*kind).0).collect();
        assert_eq!(counted, [2, 1, 1, 1, 0, 0, 1, 0, 0]);
    }
}
