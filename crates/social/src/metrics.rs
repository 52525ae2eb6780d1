//! Readings and logs of machines over time, and what they come to by window.
//!
//! The documents are those of `models/metrics`: time-series collections by the machine, with an end of life. What windows
//! come to is computed from them when it is asked for, over the machine's and the time's range alone.

use crate::error::{Error, Result};
use crate::id::{Id, Page, PageRequest, Time};
use crate::network::latest_first;
use crate::read;
use bson::{Bson, Document, doc};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::time::Duration;
use store::{Aggregate, Collection, Find, Index, Store, Update};

/// The longest line of a log, in characters.
pub const MAX_LINE: usize = 2_000;

/// The most readings, or lines, of one call.
pub const MAX_READINGS: usize = 10_000;

/// The most windows of one answer.
pub const MAX_WINDOWS: i64 = 5_000;

/// The longest id, name or region of a machine, in bytes.
pub const MAX_SERVER_TEXT: usize = 100;

/// A machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Server {
    /// Its id.
    pub id: String,
    /// Its name in the network, which no other has.
    pub host: String,
    /// Where it stands.
    pub region: String,
}

fn server(found: &Document) -> Server {
    Server { id: read::text(found, "_id"), host: read::text(found, "host"), region: read::text(found, "region") }
}

/// How a machine was at a moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
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

/// How much a line of a log matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Level {
    /// For whoever looks for a fault.
    Debug,
    /// What went as it should.
    Info,
    /// What may become a fault.
    Warning,
    /// A fault.
    Error,
}

impl Level {
    const ALL: [Level; 4] = [Level::Debug, Level::Info, Level::Warning, Level::Error];

    fn name(self) -> &'static str {
        match self {
            Level::Debug => "debug",
            Level::Info => "info",
            Level::Warning => "warning",
            Level::Error => "error",
        }
    }
}

/// A line of a machine's log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogLine {
    /// The machine.
    pub server: String,
    /// When.
    pub at: Time,
    /// How much it matters.
    pub level: Level,
    /// What it says.
    pub message: String,
}

/// How many lines of a level a window has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogWindow {
    /// When it begins.
    pub at: Time,
    /// The level.
    pub level: Level,
    /// How many.
    pub lines: i64,
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

impl Unit {
    fn name(self) -> &'static str {
        match self {
            Unit::Minute => "minute",
            Unit::Hour => "hour",
            Unit::Day => "day",
        }
    }

    fn duration_ms(self) -> i64 {
        match self {
            Unit::Minute => 60_000,
            Unit::Hour => 3_600_000,
            Unit::Day => 86_400_000,
        }
    }
}

/// What the readings of a window come to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
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

/// Readings and logs in one database of a store.
#[derive(Clone)]
pub struct Metrics {
    servers: Collection,
    readings: Collection,
    logs: Collection,
}

impl Metrics {
    /// The readings and logs in a database.
    pub fn new(store: &Store, database: &str) -> Metrics {
        let collection = |name: &str| store.collection(database, name);
        Metrics { servers: collection("servers"), readings: collection("readings"), logs: collection("logs") }
    }

    /// Creates the collections, unless they are there: time series whose measurements end after a time.
    ///
    /// # Errors
    /// A store that fails or has no time series.
    pub async fn ensure(&self, keep: Duration) -> Result<()> {
        for (series, granularity) in [(&self.readings, "minutes"), (&self.logs, "seconds")] {
            let options = doc! {
                "timeseries": { "timeField": "timestamp", "metaField": "serverId", "granularity": granularity },
                "expireAfterSeconds": keep.as_secs() as i64,
            };
            match series.create(options).await {
                Err(error) if error.code != Some(48) => return Err(error.into()),
                _ => {}
            }
            series.create_indexes(vec![Index::new(doc! { "serverId": 1, "timestamp": 1 })]).await?;
        }
        let indexes = vec![Index::unique(doc! { "host": 1 }), Index::new(doc! { "region": 1, "_id": 1 })];
        Ok(self.servers.create_indexes(indexes).await?)
    }

    /// Notes a machine, or what is new of it.
    ///
    /// # Errors
    /// [`Error::NameTaken`] if another machine has the host's name, [`Error::Invalid`].
    pub async fn put_server(&self, server: &Server) -> Result<()> {
        let fits = |text: &String| !text.trim().is_empty() && text.len() <= MAX_SERVER_TEXT;
        if ![&server.id, &server.host, &server.region].into_iter().all(fits) {
            let why = format!("a server's id, host and region have 1 to {MAX_SERVER_TEXT} bytes");
            return Err(Error::Invalid(why));
        }
        let facts = doc! { "$set": { "host": &server.host, "region": &server.region } };
        let upsert = Update { upsert: true, ..Update::default() };
        match self.servers.update_one(doc! { "_id": &server.id }, facts, upsert, None).await {
            Err(error) if error.is_duplicate_key() => Err(Error::NameTaken(server.host.clone())),
            done => Ok(done.map(|_| ())?),
        }
    }

    /// A machine.
    ///
    /// # Errors
    /// [`Error::UnknownServer`].
    pub async fn server(&self, id: &str) -> Result<Server> {
        let found = self.servers.find_one(doc! { "_id": id }, None).await?;
        found.as_ref().map(server).ok_or_else(|| Error::UnknownServer(id.to_owned()))
    }

    /// The machine of a host's name.
    ///
    /// # Errors
    /// A store that fails.
    pub async fn server_by_host(&self, host: &str) -> Result<Option<Server>> {
        Ok(self.servers.find_one(doc! { "host": host }, None).await?.as_ref().map(server))
    }

    /// The machines of a region by their ids.
    ///
    /// # Errors
    /// A store that fails.
    pub async fn servers(&self, region: &str, page: &PageRequest) -> Result<Page<Server>> {
        let mut filter = doc! { "region": region };
        if let Some(after) = &page.after {
            filter.insert("_id", doc! { "$gt": after });
        }
        let find = Find { sort: Some(doc! { "_id": 1 }), limit: page.size() as i64 + 1, ..Find::default() };
        let found = self.servers.find(filter, find, None).await?.iter().map(server).collect();
        Ok(Page::cut(found, page.size(), |server: &Server| server.id.clone()))
    }

    /// Refuses what is of machines that nobody put.
    async fn all_known(&self, named: impl Iterator<Item = &str>) -> Result<()> {
        let named: BTreeSet<&str> = named.collect();
        let page = Find { projection: Some(doc! { "_id": 1 }), ..Find::default() };
        let ids: Vec<&str> = named.iter().copied().collect();
        let found = self.servers.find(doc! { "_id": { "$in": ids } }, page, None).await?;
        let found: BTreeSet<&str> = found.iter().filter_map(|server| server.get_str("_id").ok()).collect();
        match named.difference(&found).next() {
            Some(unknown) => Err(Error::UnknownServer((*unknown).to_owned())),
            None => Ok(()),
        }
    }

    /// Notes readings, all or none. A time series has no unique key: noted again, they count again.
    ///
    /// # Errors
    /// [`Error::Invalid`] for too many or a number that is none, [`Error::UnknownServer`].
    pub async fn record(&self, readings: &[Reading]) -> Result<()> {
        if readings.is_empty() || readings.len() > MAX_READINGS {
            return Err(Error::Invalid(format!("1 to {MAX_READINGS} readings at once")));
        }
        if !readings.iter().all(|reading| reading.cpu.is_finite() && reading.memory.is_finite()) {
            return Err(Error::Invalid("a reading's processor and memory use are numbers".into()));
        }
        self.all_known(readings.iter().map(|reading| reading.server.as_str())).await?;
        let document = |reading: &Reading| {
            doc! {
                "_id": Id::new(), "timestamp": reading.at, "serverId": &reading.server, "cpu": reading.cpu,
                "memory": reading.memory, "diskFree": reading.disk_free,
            }
        };
        Ok(self.readings.insert_many(readings.iter().map(document).collect(), None).await?)
    }

    /// Refuses a time of more windows than one answer has.
    fn check_windows(from: Time, to: Time, unit: Unit) -> Result<()> {
        let windows = to.timestamp_ms().saturating_sub(from.timestamp_ms()) / unit.duration_ms();
        if windows >= MAX_WINDOWS {
            let why = format!("an answer has at most {MAX_WINDOWS} windows: ask for a shorter time or longer windows");
            return Err(Error::Invalid(why));
        }
        Ok(())
    }

    /// What a machine's readings come to, window by window, the oldest first; none for windows without readings.
    ///
    /// # Errors
    /// [`Error::UnknownServer`]; [`Error::Invalid`] for a time of more than [`MAX_WINDOWS`] windows.
    pub async fn windows(&self, server: &str, from: Time, to: Time, unit: Unit) -> Result<Vec<Window>> {
        Metrics::check_windows(from, to, unit)?;
        self.server(server).await?;
        let pipeline = vec![
            doc! { "$match": { "serverId": server, "timestamp": { "$gte": from, "$lt": to } } },
            doc! { "$group": {
                "_id": { "$dateTrunc": { "date": "$timestamp", "unit": unit.name() } },
                "readings": { "$sum": 1_i64 },
                "cpu": { "$avg": "$cpu" },
                "highestCpu": { "$max": "$cpu" },
                "memory": { "$avg": "$memory" },
                "leastDiskFree": { "$min": "$diskFree" },
            } },
            doc! { "$sort": { "_id": 1 } },
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

    /// Notes lines of logs, all or none. As with readings, what is noted again is there twice.
    ///
    /// # Errors
    /// [`Error::Invalid`] for too many, or one that is too long; [`Error::UnknownServer`].
    pub async fn log(&self, lines: &[LogLine]) -> Result<()> {
        let long = |line: &LogLine| line.message.chars().count() > MAX_LINE;
        if lines.is_empty() || lines.len() > MAX_READINGS || lines.iter().any(long) {
            return Err(Error::Invalid(format!("1 to {MAX_READINGS} lines at once, of {MAX_LINE} characters")));
        }
        self.all_known(lines.iter().map(|line| line.server.as_str())).await?;
        let document = |line: &LogLine| {
            doc! {
                "_id": Id::new(), "timestamp": line.at, "serverId": &line.server, "level": line.level.name(),
                "message": &line.message,
            }
        };
        Ok(self.logs.insert_many(lines.iter().map(document).collect(), None).await?)
    }

    /// The lines of a machine's log in a time, the newest first.
    ///
    /// # Errors
    /// [`Error::UnknownServer`], [`Error::InvalidCursor`].
    pub async fn lines(&self, server: &str, from: Time, to: Time, page: &PageRequest) -> Result<Page<LogLine>> {
        self.server(server).await?;
        let filter = doc! { "serverId": server, "timestamp": { "$gte": from, "$lt": to } };
        let found = latest_first(&self.logs, filter, "timestamp", None, page).await?;
        let line = |found: &Document| LogLine {
            server: read::text(found, "serverId"),
            at: read::time(found, "timestamp"),
            level: level(found.get_str("level").unwrap_or_default()),
            message: read::text(found, "message"),
        };
        Ok(Page { items: found.items.iter().map(line).collect(), next: found.next })
    }

    /// How many lines of each level a machine's log has, window by window, the oldest first.
    ///
    /// # Errors
    /// As [`Metrics::windows`].
    pub async fn log_windows(&self, server: &str, from: Time, to: Time, unit: Unit) -> Result<Vec<LogWindow>> {
        Metrics::check_windows(from, to, unit)?;
        self.server(server).await?;
        let window = doc! { "$dateTrunc": { "date": "$timestamp", "unit": unit.name() } };
        let pipeline = vec![
            doc! { "$match": { "serverId": server, "timestamp": { "$gte": from, "$lt": to } } },
            doc! { "$group": { "_id": { "at": window, "level": "$level" }, "lines": { "$sum": 1_i64 } } },
            doc! { "$sort": { "_id": 1 } },
        ];
        let found = self.logs.aggregate(pipeline, Aggregate::default(), None).await?.collect(None).await?;
        let window = |found: &Document| {
            let key = found.get_document("_id").ok()?;
            let level = level(key.get_str("level").unwrap_or_default());
            Some(LogWindow { at: read::time(key, "at"), level, lines: read::number(found, "lines") })
        };
        Ok(found.iter().filter_map(window).collect())
    }
}

/// The level of a name.
fn level(name: &str) -> Level {
    Level::ALL.into_iter().find(|level| level.name() == name).unwrap_or(Level::Info)
}
