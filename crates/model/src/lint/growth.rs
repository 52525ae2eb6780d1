//! How arrays grow: by the times of their elements, or since an earlier run.

use crate::observe::path::{DAY_MS, PathStats};
use crate::observe::{Collection, Observed};
use jiff::civil::Date;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a run measured, to be compared with by a later one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Previous {
    /// When, in milliseconds since 1970.
    pub at_ms: i64,
    /// The array lengths by `database.collection path`.
    pub arrays: BTreeMap<String, Lengths>,
}

/// The lengths of the arrays at a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Lengths {
    /// The longest.
    pub longest: u64,
    /// The 99th percentile.
    pub p99: u64,
}

impl Previous {
    /// What was measured in a run.
    pub fn of(observed: &Observed) -> Previous {
        let mut arrays = BTreeMap::new();
        for database in &observed.databases {
            for collection in &database.collections {
                for (path, stats) in &collection.sample.paths {
                    if !stats.lengths.is_empty() {
                        let lengths = Lengths { longest: stats.longest(), p99: stats.length_at(0.99) };
                        arrays.insert(format!("{}.{} {path}", database.name, collection.info.name), lengths);
                    }
                }
            }
        }
        Previous { at_ms: observed.now_ms, arrays }
    }
}

/// How the largest array of a path grows.
pub(super) struct Growth {
    pub(super) elements_per_day: f64,
    pub(super) length: u64,
    pub(super) by: &'static str,
}

/// The growth of the arrays at a path; `None` where it isn't seen, or where arrays stop at a cap.
pub(super) fn of(stats: &PathStats, previous: Option<(Lengths, i64)>, now_ms: i64) -> Option<Growth> {
    let length = stats.longest();
    if stats.is_capped() {
        return None;
    }
    if let Some((before, at_ms)) = previous {
        let days = (now_ms - at_ms) as f64 / DAY_MS;
        let gained = length.saturating_sub(before.longest);
        if days > 0.0 && gained > 0 {
            return Some(Growth { elements_per_day: gained as f64 / days, length, by: "since the last run" });
        }
    }
    let most_are_ordered = stats.growth.len() as u64 > stats.unordered_times * 9;
    let largest = stats.growth.iter().max_by_key(|known| known.0).filter(|_| most_are_ordered)?;
    Some(Growth { elements_per_day: largest.1, length: largest.0.into(), by: "by its elements' times" })
}

/// The bytes of one element of the arrays at a path.
pub(super) fn element_bytes(collection: &Collection, path: &str) -> u64 {
    let prefix = format!("{path}[]");
    let Some(elements) = collection.sample.paths.get(&prefix).filter(|elements| elements.values > 0) else { return 16 };
    let mut bytes = 7.0; // its type, and its index as a name
    for (inner, stats) in &collection.sample.paths {
        let is_inside =
            inner == &prefix || inner.strip_prefix(&prefix).is_some_and(|rest| rest.starts_with(['.', '[']));
        if is_inside {
            let values = (stats.numbers() + stats.of("date") + stats.of("timestamp")) as f64 * 8.0
                + stats.of("objectId") as f64 * 12.0
                + stats.of("object") as f64 * 5.0
                + stats.bytes as f64
                + stats.of("string") as f64 * 5.0;
            let name = crate::observe::sample::last_name(inner).len() as f64 + 2.0;
            let names = if inner == &prefix { 0.0 } else { name * stats.values as f64 };
            bytes += (values + names) / elements.values as f64;
        }
    }
    bytes as u64
}

/// The date after so many days; `None` beyond a century.
pub(super) fn date_after(now_ms: i64, days: f64) -> Option<Date> {
    if !days.is_finite() || days > 36_500.0 {
        return None;
    }
    let then = jiff::Timestamp::from_millisecond(now_ms + (days * DAY_MS) as i64).ok()?;
    Some(jiff::tz::Offset::UTC.to_datetime(then).date())
}
