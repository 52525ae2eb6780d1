//! `sheaf lint`: what hurts in a live database, or will.

use super::{complain, print};
use ::model::advise::thresholds::Thresholds;
use ::model::lint::{Options, Previous, Report, Severity, TABLE, bad_shop, judge};
use ::model::observe::{Bounds, observe};
use clap::{Args, ValueEnum};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, UNIX_EPOCH};

/// Nothing could be looked at.
const COULD_NOT_RUN: u8 = 2;

/// `sheaf lint …`
#[derive(Args)]
pub(crate) struct Arguments {
    /// A mongodb:// URL, or a folder
    #[arg(required_unless_present = "rules")]
    place: Option<String>,
    /// Only this database; may be repeated
    #[arg(long, value_name = "NAME")]
    database: Vec<String>,
    /// How the report is written
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    /// The exit code is 1 from this severity on
    #[arg(long, value_enum, default_value = "warning", value_name = "SEVERITY")]
    deny: Deny,
    /// Leave a rule out; may be repeated
    #[arg(long, value_name = "RULE")]
    allow: Vec<String>,
    /// Documents read of each collection
    #[arg(long, default_value_t = 2_000, value_name = "N")]
    documents: u32,
    /// The most seconds the server may take for one question
    #[arg(long, default_value_t = 20, value_name = "SECONDS")]
    seconds: u64,
    /// An index is unused after so many days
    #[arg(long, default_value_t = 7.0, value_name = "DAYS")]
    unused_days: f64,
    /// Limits of your own: a file like the one that `sheaf advise` takes
    #[arg(long, value_name = "FILE")]
    thresholds: Option<PathBuf>,
    /// Compare array lengths with those of the run that wrote this file, and write it anew
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// List the rules
    #[arg(long)]
    rules: bool,
    /// Write a shop with every fault and N orders into the database badShop, to try the rules on
    #[arg(long, value_name = "N")]
    plant: Option<usize>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    Text,
    Json,
    Sarif,
}

#[derive(Clone, Copy, ValueEnum)]
enum Deny {
    Notice,
    Warning,
    Error,
}

/// Runs the command.
pub(crate) fn run(arguments: Arguments) -> ExitCode {
    if arguments.rules {
        let lines: Vec<String> = TABLE.iter().map(|rule| format!("{:22} {}\n", rule.name, rule.finds)).collect();
        return print(&lines.concat());
    }
    match super::block_on(look(&arguments)) {
        Ok(Some(report)) => {
            let text = match arguments.format {
                Format::Text => report.render(),
                Format::Json => report.to_json(),
                Format::Sarif => report.to_sarif(),
            };
            let severity = match arguments.deny {
                Deny::Notice => Severity::Notice,
                Deny::Warning => Severity::Warning,
                Deny::Error => Severity::Error,
            };
            let printed = print(&text);
            if report.reaches(severity) { ExitCode::FAILURE } else { printed }
        }
        Ok(None) => ExitCode::SUCCESS,
        Err(message) => {
            complain(&format!("sheaf lint: {message}\n"));
            ExitCode::from(COULD_NOT_RUN)
        }
    }
}

async fn look(arguments: &Arguments) -> Result<Option<Report>, String> {
    let text = |error: store::Error| error.to_string();
    let place = arguments.place.as_deref().unwrap_or_default();
    if !store::is_url(place) && !Path::new(place).is_dir() && arguments.plant.is_none() {
        return Err(format!("there is no folder {place}: give a folder of Sheaf's or a mongodb:// URL"));
    }
    for rule in &arguments.allow {
        if !TABLE.iter().any(|known| known.name == rule) {
            return Err(format!("there is no rule {rule}: `sheaf lint --rules` lists them"));
        }
    }
    let thresholds = match &arguments.thresholds {
        Some(path) => {
            let read = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
            Thresholds::with(&read).map_err(|error| error.to_string())?
        }
        None => Thresholds::default(),
    };
    let now_ms = UNIX_EPOCH.elapsed().map_or(0, |since| since.as_millis() as i64);
    let store = ::model::store_at(place).await.map_err(text)?;
    if let Some(orders) = arguments.plant {
        bad_shop::plant(&store, orders, now_ms).await.map_err(text)?;
        if store.engine().is_none() {
            bad_shop::profiled(&store, now_ms).await.map_err(text)?;
        }
        return Ok(None);
    }
    let mut databases = arguments.database.clone();
    if databases.is_empty() {
        databases.extend(store.default_database().map(str::to_owned));
    }
    let bounds = Bounds {
        documents: arguments.documents.max(1),
        time: Duration::from_secs(arguments.seconds),
        ..Bounds::default()
    };
    let observed = observe(&store, &databases, bounds, now_ms).await.map_err(text)?;
    let mut previous = None;
    if let Some(path) = &arguments.state {
        if let Ok(text) = std::fs::read_to_string(path) {
            let read = serde_json::from_str(&text);
            previous = Some(read.map_err(|error| format!("{} is not a state of lint: {error}", path.display()))?);
        }
        let state = serde_json::to_string_pretty(&Previous::of(&observed)).map_err(|error| error.to_string())?;
        std::fs::write(path, state).map_err(|error| format!("can't write {}: {error}", path.display()))?;
    }
    let options = Options { allow: arguments.allow.clone(), unused_days: arguments.unused_days, previous };
    Ok(Some(judge(&observed, &thresholds, &options)))
}
