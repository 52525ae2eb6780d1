//! The log: to standard error, for people or as JSON lines.

use clap::ValueEnum;
use serde::Deserialize;
use std::io::IsTerminal;
use tracing_subscriber::EnvFilter;

/// How log lines look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Format {
    /// For people.
    #[default]
    Human,
    /// One JSON object a line.
    Json,
}

/// Starts logging; `level` is a filter such as `info` or `wire=debug,engine=info`.
pub(crate) fn start(format: Format, level: &str) -> Result<(), String> {
    let filter =
        EnvFilter::try_new(level).map_err(|error| format!("the log level '{level}' can't be read: {error}"))?;
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let started = match format {
        Format::Human => builder.with_ansi(std::io::stderr().is_terminal()).with_target(false).try_init(),
        Format::Json => builder.json().flatten_event(true).try_init(),
    };
    started.map_err(|error| error.to_string())
}
