//! `sheaf top`: a line each second of what a server does, from its `serverStatus`.
//!
//! It works on Sheaf and on MongoDB; what a server does not say is shown as `-`.

use crate::command::print;
use crate::transfer::{self, Result, Trouble};
use bson::{Bson, Document, doc};
use clap::Args;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use store::Store;

/// The lines between two headings.
const HEADING_EVERY: u64 = 20;

/// `sheaf top …`
#[derive(Args)]
pub(crate) struct Arguments {
    /// A mongodb:// URL
    url: String,
    /// Seconds between lines
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0)]
    interval: f64,
    /// How many lines; 0 for no end
    #[arg(long, value_name = "N", default_value_t = 0)]
    rows: u64,
    /// Lines of JSON
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(arguments: Arguments) -> ExitCode {
    transfer::run(top(arguments))
}

/// Columns: name, width, and where the number is; a rate is a difference by time.
const COLUMNS: &[(&str, usize, &str, Kind)] = &[
    ("insert", 8, "opcounters.insert", Kind::Rate),
    ("query", 8, "opcounters.query", Kind::Rate),
    ("update", 8, "opcounters.update", Kind::Rate),
    ("delete", 8, "opcounters.delete", Kind::Rate),
    ("getmore", 8, "opcounters.getmore", Kind::Rate),
    ("command", 8, "opcounters.command", Kind::Rate),
    ("overlay", 8, "sheaf.overlayBytes", Kind::Bytes),
    ("log", 8, "sheaf.logBytes", Kind::Bytes),
    ("flushes", 8, "sheaf.flushes", Kind::Rate),
    ("ckpt", 6, "sheaf.checkpointAgeSeconds", Kind::Plain),
    ("res", 8, "mem.resident", Kind::Mebibytes),
    ("active", 7, "connections.active", Kind::Plain),
    ("conn", 6, "connections.current", Kind::Plain),
    ("cursors", 8, "metrics.cursor.open.total", Kind::Plain),
    ("txns", 5, "transactions.currentOpen", Kind::Plain),
    ("net_in", 9, "network.bytesIn", Kind::ByteRate),
    ("net_out", 9, "network.bytesOut", Kind::ByteRate),
];

/// How a number is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Plain,
    Rate,
    Bytes,
    ByteRate,
    Mebibytes,
}

async fn top(arguments: Arguments) -> Result<()> {
    if !store::is_url(&arguments.url) {
        return Err(Trouble::Usage("top looks at a server: give its mongodb:// URL".to_owned()));
    }
    let interval = Duration::try_from_secs_f64(arguments.interval)
        .ok()
        .filter(|interval| !interval.is_zero())
        .ok_or_else(|| Trouble::Usage("--interval must be more than zero seconds".to_owned()))?;
    let store = Store::connect(&arguments.url).await?;
    let mut before = (Instant::now(), status(&store).await?);
    let mut row = 0;
    while arguments.rows == 0 || row < arguments.rows {
        tokio::time::sleep(interval).await;
        let now = (Instant::now(), status(&store).await?);
        let seconds = (now.0 - before.0).as_secs_f64().max(1e-3);
        let values: Vec<Option<f64>> =
            COLUMNS.iter().map(|column| value(column.3, column.2, &before.1, &now.1, seconds)).collect();
        let text = if arguments.json { json_line(&values) } else { line(&values, row.is_multiple_of(HEADING_EVERY)) };
        if print(&text) == ExitCode::FAILURE {
            return Ok(());
        }
        before = now;
        row += 1;
    }
    Ok(())
}

async fn status(store: &Store) -> Result<Document> {
    Ok(store.run_command("admin", doc! { "serverStatus": 1 }).await?)
}

fn number(status: &Document, path: &str) -> Option<f64> {
    let mut parts = path.split('.');
    let mut value = status.get(parts.next()?)?;
    for part in parts {
        value = value.as_document()?.get(part)?;
    }
    match value {
        Bson::Int32(number) => Some(f64::from(*number)),
        Bson::Int64(number) => Some(*number as f64),
        Bson::Double(number) => Some(*number),
        _ => None,
    }
}

fn value(kind: Kind, path: &str, before: &Document, now: &Document, seconds: f64) -> Option<f64> {
    let current = number(now, path)?;
    match kind {
        Kind::Rate | Kind::ByteRate => Some((current - number(before, path)?).max(0.0) / seconds),
        Kind::Mebibytes => Some(current * f64::from(1 << 20)),
        Kind::Plain | Kind::Bytes => Some(current),
    }
}

fn line(values: &[Option<f64>], heading: bool) -> String {
    let mut text = String::new();
    if heading {
        COLUMNS.iter().for_each(|(name, width, ..)| text.push_str(&format!("{name:>width$}")));
        text.push('\n');
    }
    for ((_, width, _, kind), value) in COLUMNS.iter().zip(values) {
        let cell = match (value, kind) {
            (None, _) => "-".to_owned(),
            (Some(value), Kind::Plain | Kind::Rate) => format!("{value:.0}"),
            (Some(value), _) => short_size(*value),
        };
        text.push_str(&format!("{cell:>width$}"));
    }
    text.push('\n');
    text
}

/// Bytes in three digits or so.
fn short_size(bytes: f64) -> String {
    let mut value = bytes;
    for unit in ["B", "K", "M", "G", "T"] {
        if value < 1000.0 || unit == "T" {
            let digits = usize::from(unit != "B" && value < 10.0);
            return format!("{value:.digits$}{unit}");
        }
        value /= 1024.0;
    }
    format!("{value:.0}")
}

fn json_line(values: &[Option<f64>]) -> String {
    let fields: serde_json::Map<String, serde_json::Value> =
        COLUMNS.iter().zip(values).map(|((name, ..), value)| ((*name).to_owned(), serde_json::json!(value))).collect();
    format!("{}\n", serde_json::Value::Object(fields))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_differences_by_time_and_unknown_numbers_are_dashes() {
        let before = doc! { "opcounters": { "insert": 100_i64 }, "connections": { "current": 3 } };
        let now = doc! { "opcounters": { "insert": 300_i64 }, "connections": { "current": 4 } };
        assert_eq!(value(Kind::Rate, "opcounters.insert", &before, &now, 2.0), Some(100.0));
        assert_eq!(value(Kind::Plain, "connections.current", &before, &now, 2.0), Some(4.0));
        assert_eq!(value(Kind::Plain, "sheaf.overlayBytes", &before, &now, 2.0), None);
        assert_eq!(short_size(0.0), "0B");
        assert_eq!(short_size(2_500_000.0), "2.4M");
        assert_eq!(short_size(999.0 * 1024.0 * 1024.0), "999M");
    }
}
