//! `advise --calibrate`: what reads and writes cost on this machine's engine.
//!
//! Each constant is the difference between two measurements that differ in one thing only: forty seeks and one, a hundred
//! entries and none, a hundred documents fetched and none, eight kilobytes and none, an index more. All go the same way through
//! the engine: a find by `_id` or in an absent collection has shortcuts of its own, which a seek can't be told from. What is read
//! was folded into the tables first. Times are medians, so that a busy moment doesn't count.

use super::thresholds::Costs;
use bson::{Document, doc};
use std::time::Instant;
use store::{Collection, Find, Result, Store};

/// Documents of a measurement.
const DOCUMENTS: i32 = 4_000;
/// Documents with the same key; the keys are even numbers.
const GROUP: i32 = 100;
/// Times that a read is repeated.
const REPEATS: i32 = 200;
/// Documents of a batch.
const BATCH: i32 = 200;
/// Kilobytes of a large document.
const LARGE_KB: f64 = 8.0;
/// What can't be told from nothing costs this.
const LEAST_US: f64 = 0.01;

/// Measures on an empty store, which is filled.
///
/// # Errors
/// What the store refuses.
pub async fn calibrate(store: &Store) -> Result<Costs> {
    let small = store.collection("calibrate", "small");
    let large = store.collection("calibrate", "large");
    let plain = fill(&small, 0).await?;
    let heavy = fill(&large, (LARGE_KB * 1_000.0) as usize).await?;
    let indexed = store.collection("calibrate", "indexed");
    for field in ["a", "b", "c", "d"] {
        indexed.create_index(doc! { field: 1 }, false).await?;
    }
    let with_indexes = fill(&indexed, 0).await?;
    small.create_index(doc! { "group": 1, "_id": 1 }, false).await?;
    large.create_index(doc! { "group": 1, "_id": 1 }, false).await?;

    if let Some(engine) = store.engine() {
        engine.storage().checkpoint()?;
    }

    let groups = DOCUMENTS / GROUP;
    let without = |n: i32| 2 * (n % groups) + 1;
    let miss = read(&small, |n| doc! { "group": without(n) }, None).await?;
    let all: Vec<i32> = (0..groups).map(without).collect();
    let misses = read(&small, |_| doc! { "group": { "$in": all.clone() } }, None).await?;
    let by_group = |n: i32| doc! { "group": 2 * (n % groups) };
    let covered = read(&small, by_group, Some(doc! { "group": 1, "_id": 1 })).await?;
    let fetched = read(&small, by_group, None).await?;
    let hit = read(&small, |n| doc! { "_id": n }, None).await?;
    let hit_large = read(&large, |n| doc! { "_id": n }, None).await?;
    let index_seek = least((misses - miss) / f64::from(groups - 1));
    let request = least(miss - index_seek);
    let index_entry = least((covered - miss) / f64::from(GROUP));
    let kilobyte_read = least((hit_large - hit) / LARGE_KB);
    let document_fetch = least((fetched - miss) / f64::from(GROUP) - index_entry);
    let index_entry_written = least((with_indexes - plain) / 4.0);
    let kilobyte_written = least((heavy - plain) / LARGE_KB);
    let document_write = least(plain - index_entry_written);
    Ok(Costs {
        index_seek,
        index_entry,
        document_fetch,
        kilobyte_read,
        request,
        document_write,
        kilobyte_written,
        index_entry_written,
    })
}

fn least(microseconds: f64) -> f64 {
    (microseconds.max(LEAST_US) * 100.0).round() / 100.0
}

fn document(n: i32, padding: usize) -> Document {
    let mut document =
        doc! { "_id": n, "group": 2 * (n / GROUP), "a": n, "b": n * 7 % DOCUMENTS, "c": n % 100, "d": -n };
    if padding > 0 {
        document.insert("text", "x".repeat(padding));
    }
    document
}

/// Fills a collection; gives the microseconds of a document.
async fn fill(collection: &Collection, padding: usize) -> Result<f64> {
    let mut times = Vec::new();
    for from in (0..DOCUMENTS).step_by(BATCH as usize) {
        let documents: Vec<Document> = (from..from + BATCH).map(|n| document(n, padding)).collect();
        let begun = Instant::now();
        collection.insert_many(documents, None).await?;
        times.push(begun.elapsed().as_secs_f64() * 1e6 / f64::from(BATCH));
    }
    Ok(median(times))
}

/// The microseconds of a read.
async fn read(collection: &Collection, filter: impl Fn(i32) -> Document, fields: Option<Document>) -> Result<f64> {
    let mut times = Vec::new();
    for turn in 0..REPEATS {
        let options = Find { projection: fields.clone(), ..Find::default() };
        let filter = filter(turn * 17 % DOCUMENTS);
        let begun = Instant::now();
        collection.find(filter, options, None).await?;
        times.push(begun.elapsed().as_secs_f64() * 1e6);
    }
    Ok(median(times))
}

pub(super) fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or(0.0)
}
