//! Readings of machines over time, and what they come to by window.
//!
//! The documents are those of `models/metrics`: a time-series collection by the machine, with an end of life.

use crate::error::{Error, Result};
use crate::id::Time;
use crate::read;
use bson::{Bson, Document, doc};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use store::{Aggregate, Collection, Index, Store};

/// The most readings of one call.
pub const MAX_READINGS: usize = 10_000;

/// The most windows of one answer.
const MAX_WINDOWS: i64 = 5_000;

/// How a machine was at a moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reading {
    /// The machine.
    pub server: String,
    /// When.
    pub at: Time,
    /// Processor use, from zero to one.
    pub cpu: f64,
    /// Memory use, from zero to one.
    pub memory: f64,
    /// Free bytes on the disk.
    pub disk_free: i64,
}

/// How long a window is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Unit {
    /// A minute.
    Minute,
    /// An hour.
    Hour,
    /// A day, in UTC.
    Day,
}

/// What the readings of a window come to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Window {
    /// When it begins.
    pub at: Time,
    /// How many readings it has.
    pub readings: i64,
    /// Their mean processor use.
    pub cpu: f64,
    /// Their highest processor use.
    pub highest_cpu: f64,
    /// Their mean memory use.
    pub memory: f64,
    /// The lowest of the free bytes.
    pub least_disk_free: i64,
}

/// Readings in one database of a store.
#[derive(Clone)]
pub struct Metrics {
    readings: Collection,
}

impl Metrics {
    /// The readings in a database.
    pub fn new(store: &Store, database: &str) -> Metrics {
        Metrics { readings: store.collection(database, "readings") }
    }

    /// Creates the collection: a time series whose readings end after a time, unless it is there.
    ///
    /// # Errors
    /// A store that fails or has no time series.
    pub async fn ensure(&self, keep: Duration) -> Result<()> {
        let options = doc! {
            "timeseries": { "timeField": "timestamp", "metaField": "serverId", "granularity": "minutes" },
            "expireAfterSeconds": keep.as_secs() as i64,
        };
        match self.readings.create(options).await {
            Err(error) if error.code != Some(48) => return Err(error.into()),
            _ => {}
        }
        let index = Index::new(doc! { "serverId": 1, "timestamp": 1 });
        Ok(self.readings.create_indexes(vec![index]).await?)
    }

    /// Notes readings.
    ///
    /// # Errors
    /// [`Error::Invalid`] for too many.
    pub async fn record(&self, readings: &[Reading]) -> Result<()> {
        if readings.len() > MAX_READINGS {
            return Err(Error::Invalid(format!("at most {MAX_READINGS} readings at once")));
        }
        let document = |reading: &Reading| {
            doc! {
                "timestamp": reading.at, "serverId": &reading.server, "cpu": reading.cpu, "memory": reading.memory,
                "diskFree": reading.disk_free,
            }
        };
        Ok(self.readings.insert_many(readings.iter().map(document).collect(), None).await?)
    }

    /// What a machine's readings come to, window by window, the oldest first.
    ///
    /// # Errors
    /// A store that fails.
    pub async fn windows(&self, server: &str, from: Time, to: Time, unit: Unit) -> Result<Vec<Window>> {
        let unit = match unit {
            Unit::Minute => "minute",
            Unit::Hour => "hour",
            Unit::Day => "day",
        };
        let pipeline = vec![
            doc! { "$match": { "serverId": server, "timestamp": { "$gte": from, "$lt": to } } },
            doc! { "$group": {
                "_id": { "$dateTrunc": { "date": "$timestamp", "unit": unit } },
                "readings": { "$sum": 1_i64 },
                "cpu": { "$avg": "$cpu" },
                "highestCpu": { "$max": "$cpu" },
                "memory": { "$avg": "$memory" },
                "leastDiskFree": { "$min": "$diskFree" },
            } },
            doc! { "$sort": { "_id": 1 } },
            doc! { "$limit": MAX_WINDOWS },
        ];
        let found = self.readings.aggregate(pipeline, Aggregate::default(), None).await?.collect(None).await?;
        let float = |document: &Document, field: &str| document.get(field).and_then(Bson::as_f64).unwrap_or_default();
        let window = |found: &Document| Window {
            at: read::time(found, "_id"),
            readings: read::number(found, "readings"),
            cpu: float(found, "cpu"),
            highest_cpu: float(found, "highestCpu"),
            memory: float(found, "memory"),
            least_disk_free: read::number(found, "leastDiskFree"),
        };
        Ok(found.iter().map(window).collect())
    }
}
