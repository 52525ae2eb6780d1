//! `sheaf infer`: a model of what a live database holds and is asked.

use super::{block_on, complain, print};
use ::model::infer::infer;
use ::model::observe::{Bounds, observe};
use clap::Args;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, UNIX_EPOCH};

/// `sheaf infer …`
#[derive(Args)]
pub(crate) struct Arguments {
    /// A mongodb:// URL, or a folder
    place: String,
    /// The database; needed where there are several
    #[arg(long, value_name = "NAME")]
    database: Option<String>,
    /// Write the model to this file, e.g. shop.sheaf.kdl
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Documents read of each collection
    #[arg(long, default_value_t = 2_000, value_name = "N")]
    documents: u32,
    /// The most seconds the server may take for one question
    #[arg(long, default_value_t = 20, value_name = "SECONDS")]
    seconds: u64,
}

/// Runs the command.
pub(crate) fn run(arguments: Arguments) -> ExitCode {
    match block_on(model(&arguments)) {
        Ok(text) => match &arguments.out {
            None => print(&text),
            Some(path) => match std::fs::write(path, text) {
                Ok(()) => ExitCode::SUCCESS,
                Err(error) => {
                    complain(&format!("sheaf infer: can't write {}: {error}\n", path.display()));
                    ExitCode::FAILURE
                }
            },
        },
        Err(message) => {
            complain(&format!("sheaf infer: {message}\n"));
            ExitCode::FAILURE
        }
    }
}

async fn model(arguments: &Arguments) -> Result<String, String> {
    let text = |error: store::Error| error.to_string();
    if !store::is_url(&arguments.place) && !Path::new(&arguments.place).is_dir() {
        return Err(format!("there is no folder {}: give a folder of Sheaf's or a mongodb:// URL", arguments.place));
    }
    let store = ::model::store_at(&arguments.place).await.map_err(text)?;
    let named = arguments.database.clone().or_else(|| store.default_database().map(str::to_owned));
    let bounds = Bounds {
        documents: arguments.documents.max(1),
        time: Duration::from_secs(arguments.seconds),
        ..Bounds::default()
    };
    let now_ms = UNIX_EPOCH.elapsed().map_or(0, |since| since.as_millis() as i64);
    let databases: Vec<String> = named.into_iter().collect();
    let observed = observe(&store, &databases, bounds, now_ms).await.map_err(text)?;
    match &observed.databases[..] {
        [database] => infer(&store, database, bounds).await.map_err(text),
        [] => Err("there is no database".to_owned()),
        several => {
            let names: Vec<&str> = several.iter().map(|database| database.name.as_str()).collect();
            Err(format!("there are several databases, choose one with --database: {}", names.join(", ")))
        }
    }
}
