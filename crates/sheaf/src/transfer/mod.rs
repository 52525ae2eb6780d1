//! What the tools that move documents share: where from and where to, batches, progress, what can go wrong.

pub(crate) mod batch;
pub(crate) mod files;
pub(crate) mod load;
pub(crate) mod progress;
pub(crate) mod summary;

use crate::command::complain;
use clap::Args;
use std::fmt;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use store::{CollectionInfo, Store};

/// Databases that belong to the server.
const SERVERS_OWN: &[&str] = &["admin", "config", "local"];

/// What the tools' functions return.
pub(crate) type Result<T, E = Trouble> = std::result::Result<T, E>;

/// Why a tool stopped.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// The store refuses or fails.
    Store(store::Error),
    /// A file can't be read or written.
    File(PathBuf, std::io::Error),
    /// A file holds something it should not.
    Content(String),
    /// The arguments don't fit together.
    Usage(String),
    /// It was done, and what was compared afterwards differs.
    Differs(String),
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trouble::Store(error) => write!(f, "{error}"),
            Trouble::File(path, error) => write!(f, "{}: {error}", path.display()),
            Trouble::Content(what) | Trouble::Usage(what) | Trouble::Differs(what) => f.write_str(what),
        }
    }
}

impl From<store::Error> for Trouble {
    fn from(error: store::Error) -> Trouble {
        Trouble::Store(error)
    }
}

impl From<engine::Error> for Trouble {
    fn from(error: engine::Error) -> Trouble {
        Trouble::Store(error.into())
    }
}

impl From<bson::error::Error> for Trouble {
    fn from(error: bson::error::Error) -> Trouble {
        Trouble::Content(error.to_string())
    }
}

/// Says which file an error was about.
pub(crate) fn at(path: &Path) -> impl FnOnce(std::io::Error) -> Trouble + '_ {
    |error| Trouble::File(path.to_owned(), error)
}

/// Runs a tool to its end.
pub(crate) fn run(tool: impl Future<Output = Result<()>>) -> ExitCode {
    let outcome = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime.block_on(tool),
        Err(error) => Err(Trouble::Usage(error.to_string())),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(trouble) => {
            complain(&format!("sheaf: {trouble}\n"));
            ExitCode::FAILURE
        }
    }
}

/// Opens what is there: a folder must exist.
pub(crate) async fn open_existing(place: &str) -> Result<Store> {
    if !store::is_url(place) && !Path::new(place).is_dir() {
        return Err(Trouble::Usage(format!("{place} is neither a folder nor a mongodb:// URL")));
    }
    Ok(::model::store_at(place).await?)
}

/// Closes a store; an embedded one flushes and folds.
pub(crate) fn close(store: &Store) -> Result<()> {
    match store.engine() {
        Some(engine) => Ok(engine.clone().close()?),
        None => Ok(()),
    }
}

/// Which collections a tool works on.
#[derive(Args, Debug, Clone, Default)]
pub(crate) struct Selection {
    /// Only this database
    #[arg(long, value_name = "NAME")]
    pub(crate) db: Option<String>,
    /// Only this collection of it
    #[arg(long, value_name = "NAME", requires = "db")]
    pub(crate) collection: Option<String>,
    /// Leave out collections of this name
    #[arg(long, value_name = "NAME")]
    pub(crate) exclude_collection: Vec<String>,
}

impl Selection {
    /// Whether a collection is among them.
    pub(crate) fn holds(&self, database: &str, collection: &str) -> bool {
        match &self.db {
            Some(only) if only != database => return false,
            None if SERVERS_OWN.contains(&database) => return false,
            _ => {}
        }
        let is_own = collection.starts_with("system.") && collection != "system.js";
        self.collection.as_deref().is_none_or(|only| only == collection)
            && !is_own
            && !self.exclude_collection.iter().any(|name| name == collection)
    }

    /// The collections of a store that are among them, by name.
    pub(crate) async fn of(&self, store: &Store) -> Result<Vec<(String, CollectionInfo)>> {
        let mut found = Vec::new();
        for database in store.list_databases().await? {
            if self.db.as_ref().is_some_and(|only| *only != database.name) {
                continue;
            }
            for info in store.list_collections(&database.name).await? {
                if self.holds(&database.name, &info.name) {
                    found.push((database.name.clone(), info));
                }
            }
        }
        Ok(found)
    }
}

/// An RFC 3339 time, or seconds since 1970, in milliseconds.
pub(crate) fn parse_time(text: &str) -> Result<i64, String> {
    if let Ok(seconds) = text.parse::<i64>() {
        return Ok(seconds.saturating_mul(1000));
    }
    bson::DateTime::parse_rfc3339_str(text)
        .map(bson::DateTime::timestamp_millis)
        .map_err(|_| format!("{text} is no time: give seconds since 1970, or e.g. 2026-05-01T12:00:00Z"))
}
