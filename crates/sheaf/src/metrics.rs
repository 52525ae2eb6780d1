//! `--metrics-port N`: numbers for Prometheus at `/metrics`, and health at `/health`; here those of `serve`.
//!
//! Health is `ok`, or `degraded` with the reasons: a document on its way to the limit of 16 MiB, folds that fail. A storage
//! that writes no more is `failed`, with status 503.

use engine::Engine;
use model::keep::service::{Service, Status};
use std::fmt::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use wire::Counters;

/// The most requests at once; more wait.
const MAX_REQUESTS: usize = 16;
/// The most bytes of a request's head.
const MAX_HEAD_BYTES: usize = 8 << 10;
/// How long a request may take.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// The most collections that are listed each for itself.
const MAX_COLLECTIONS: usize = 10_000;

/// Makes what is answered at `/metrics`.
type Metrics = dyn Fn() -> String + Send + Sync;

/// Makes what is answered at `/health`: the status, and the state as JSON.
type Health = dyn Fn() -> (&'static str, String) + Send + Sync;

/// What is answered.
#[derive(Clone)]
pub(crate) struct Pages {
    metrics: Arc<Metrics>,
    health: Arc<Health>,
}

impl Pages {
    /// Pages that are made anew for each request.
    pub(crate) fn new(
        metrics: impl Fn() -> String + Send + Sync + 'static,
        health: impl Fn() -> (&'static str, String) + Send + Sync + 'static,
    ) -> Pages {
        Pages { metrics: Arc::new(metrics), health: Arc::new(health) }
    }

    /// The pages of a server.
    pub(crate) fn of_server(sources: Sources) -> Pages {
        let engine = sources.engine.clone();
        Pages::new(move || metrics(&sources), move || health(&engine))
    }
}

/// What a server's numbers come from.
pub(crate) struct Sources {
    /// The engine.
    pub(crate) engine: Engine,
    /// The server.
    pub(crate) counters: Counters,
    /// What keeps the models in the background.
    pub(crate) service: Option<Arc<Service>>,
}

/// Listens, and answers until the task is dropped.
pub(crate) async fn start(host: &str, port: u16, pages: Pages) -> std::io::Result<SocketAddr> {
    let listener = TcpListener::bind((host, port)).await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        let slots = Arc::new(Semaphore::new(MAX_REQUESTS));
        loop {
            let Ok(slot) = slots.clone().acquire_owned().await else { return };
            let Ok((stream, _)) = listener.accept().await else {
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            };
            let pages = pages.clone();
            tokio::spawn(async move {
                // A peer that goes away or is too slow gets nothing.
                let _ = tokio::time::timeout(REQUEST_TIMEOUT, answer(stream, &pages)).await;
                drop(slot);
            });
        }
    });
    Ok(address)
}

async fn answer(mut stream: TcpStream, pages: &Pages) -> std::io::Result<()> {
    let mut head = Vec::new();
    while !head.windows(4).any(|end| end == b"\r\n\r\n") && head.len() < MAX_HEAD_BYTES {
        let mut buffer = [0; 1024];
        let read = stream.read(&mut buffer).await?;
        if read == 0 {
            break;
        }
        head.extend_from_slice(&buffer[..read]);
    }
    let line = String::from_utf8_lossy(head.split(|byte| *byte == b'\r').next().unwrap_or_default()).into_owned();
    let mut words = line.split(' ');
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let path = path.split('?').next().unwrap_or_default();
    let (status, kind, body) = match (method, path) {
        ("GET" | "HEAD", "/metrics") => ("200 OK", "text/plain; version=0.0.4; charset=utf-8", (pages.metrics)()),
        ("GET" | "HEAD", "/health") => {
            let (status, body) = (pages.health)();
            (status, "application/json", body)
        }
        ("GET" | "HEAD", _) => ("404 Not Found", "text/plain", "there are /metrics and /health\n".to_owned()),
        _ => ("405 Method Not Allowed", "text/plain", "only GET\n".to_owned()),
    };
    let body = if method == "HEAD" { String::new() } else { body };
    let length = body.len();
    let reply = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    );
    stream.write_all(reply.as_bytes()).await?;
    stream.shutdown().await
}

/// A server's health, with the status to give.
fn health(engine: &Engine) -> (&'static str, String) {
    let mut reasons: Vec<String> = Vec::new();
    match engine.large_documents() {
        Ok(large) => {
            reasons.extend(large.iter().map(|one| {
                format!("a document in {} had {} bytes: the limit is {}", one.namespace, one.bytes, 16 << 20)
            }))
        }
        Err(error) => reasons.push(error.to_string()),
    }
    if engine.storage().statistics().folds_failed > 0 {
        reasons.push("folding the log into the tables has failed: see the log".to_owned());
    }
    let failed = engine.storage().failure();
    let (status, word) = match (&failed, reasons.is_empty()) {
        (Some(_), _) => ("503 Service Unavailable", "failed"),
        (None, false) => ("200 OK", "degraded"),
        (None, true) => ("200 OK", "ok"),
    };
    reasons.extend(failed.map(|error| error.to_string()));
    (status, state(word, &reasons))
}

/// A state of health as JSON.
pub(crate) fn state(word: &str, reasons: &[String]) -> String {
    format!("{}\n", serde_json::json!({ "status": word, "reasons": reasons }))
}

/// A metric's lines: its meaning and type, then its values.
#[derive(Default)]
pub(crate) struct Text(pub(crate) String);

impl Text {
    pub(crate) fn family(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    pub(crate) fn one(&mut self, name: &str, kind: &str, help: &str, value: f64) {
        self.family(name, kind, help);
        self.value(name, &[], value);
    }

    pub(crate) fn value(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        self.0.push_str(name);
        if !labels.is_empty() {
            let labels: Vec<String> =
                labels.iter().map(|(label, value)| format!("{label}=\"{}\"", escaped(value))).collect();
            let _ = write!(self.0, "{{{}}}", labels.join(","));
        }
        let _ = writeln!(self.0, " {value}");
    }
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

fn metrics(sources: &Sources) -> String {
    let mut text = Text(String::with_capacity(16 << 10));
    server(&mut text, sources);
    storage(&mut text, &sources.engine);
    collections(&mut text, &sources.engine);
    if let Some(service) = &sources.service {
        models(&mut text, &service.status());
    }
    text.0
}

/// How far what follows in the background is behind.
fn models(text: &mut Text, status: &Status) {
    let help = "How far copies and references that follow in batches are behind, by declaration.";
    text.family("sheaf_model_lag_seconds", "gauge", help);
    for (declaration, lag_ms) in &status.lag_ms {
        text.value("sheaf_model_lag_seconds", &[("declaration", declaration)], *lag_ms as f64 / 1000.0);
    }
    let filling = status.filling.len() as f64;
    text.one("sheaf_model_filling", "gauge", "Declarations that are being filled.", filling);
    text.one("sheaf_model_batches_total", "counter", "Batches done in the background.", status.batches as f64);
    let failed = f64::from(u8::from(status.last_error.is_some()));
    text.one("sheaf_model_failed", "gauge", "1 if a batch has failed since the start: see the log.", failed);
}

fn server(text: &mut Text, sources: &Sources) {
    let read = sources.counters.read();
    text.one("sheaf_uptime_seconds", "gauge", "How long the server runs.", read.uptime.as_secs_f64());
    text.family("sheaf_operations_total", "counter", "Operations by kind.");
    for (kind, count) in &read.operations {
        text.value("sheaf_operations_total", &[("kind", kind)], *count as f64);
    }
    for (name, kind, help, value) in [
        ("sheaf_requests_total", "counter", "Requests.", read.requests),
        ("sheaf_errors_total", "counter", "Operations that were refused or failed.", read.errors),
        ("sheaf_connections", "gauge", "Open connections.", read.connections),
        ("sheaf_connections_active", "gauge", "Connections that run an operation.", read.connections_active),
        ("sheaf_connections_created_total", "counter", "Connections since the start.", read.connections_created),
        ("sheaf_connections_rejected_total", "counter", "Connections turned away.", read.connections_rejected),
        ("sheaf_network_received_bytes_total", "counter", "Bytes received.", read.bytes_in),
        ("sheaf_network_sent_bytes_total", "counter", "Bytes sent.", read.bytes_out),
        ("sheaf_sessions", "gauge", "Logical sessions.", read.sessions),
        ("sheaf_cursors", "gauge", "Open cursors.", sources.engine.open_cursors() as u64),
        ("sheaf_transactions", "gauge", "Open transactions.", sources.engine.open_transaction_count() as u64),
    ] {
        text.one(name, kind, help, value as f64);
    }
}

fn storage(text: &mut Text, engine: &Engine) {
    let now = engine.storage().statistics();
    let limit = engine.storage().overlay_limit_bytes() as f64;
    text.one("sheaf_overlay_bytes", "gauge", "What is logged and not folded yet.", now.overlay_bytes as f64);
    text.one("sheaf_overlay_limit_bytes", "gauge", "The size at which writers wait.", limit);
    let waits = now.writer_waits as f64;
    text.one("sheaf_writer_waits_total", "counter", "Writers that found the overlay full and waited.", waits);
    let age = engine.storage().checkpoint_age().as_secs_f64();
    text.one("sheaf_checkpoint_age_seconds", "gauge", "How long ago the log was last folded into the tables.", age);
    for (name, kind, help, value) in [
        ("sheaf_log_bytes", "gauge", "The log's size on disk.", now.log_bytes),
        ("sheaf_log_segments", "gauge", "Files of the log.", now.log_segments),
        ("sheaf_log_written_bytes_total", "counter", "Bytes written to the log.", now.log_written_bytes),
        ("sheaf_table_bytes", "gauge", "The size of the tables.", now.table_bytes),
        ("sheaf_commits_total", "counter", "Commits flushed.", now.commits),
        ("sheaf_flushes_total", "counter", "Flushes of the log.", now.flushes),
        ("sheaf_folds_total", "counter", "Folds of the log into the tables.", now.folds),
        ("sheaf_folds_failed_total", "counter", "Folds that failed.", now.folds_failed),
        ("sheaf_log_oldest_position", "gauge", "The oldest commit that the log holds.", now.oldest),
        ("sheaf_log_position", "gauge", "The last commit.", now.flushed),
    ] {
        text.one(name, kind, help, value as f64);
    }
    let seconds = |time: Duration| time.as_secs_f64();
    text.one("sheaf_flush_seconds_total", "counter", "Time spent in flushing the log.", seconds(now.flush_time));
    text.one("sheaf_fold_seconds_total", "counter", "Time spent in folding.", seconds(now.fold_time));
    text.one("sheaf_fold_longest_seconds", "gauge", "The longest fold.", seconds(now.fold_longest));
}

fn collections(text: &mut Text, engine: &Engine) {
    let state = engine.state();
    let mut rows = Vec::new();
    for collection in state.catalog.all().filter(|collection| !collection.is_view()).take(MAX_COLLECTIONS) {
        if let Ok(totals) = engine.totals(collection) {
            rows.push((collection.namespace.clone(), totals));
        }
    }
    for (name, help, value) in [
        ("sheaf_collection_documents", "Documents.", 0),
        ("sheaf_collection_bytes", "Bytes of documents; of time series, of what they are packed into.", 1),
        ("sheaf_collection_largest_document_bytes", "The largest document that was written.", 2),
    ] {
        text.family(name, "gauge", help);
        for (namespace, totals) in &rows {
            let number = [totals.count, totals.size_bytes, totals.largest_bytes][value];
            let labels = [("database", namespace.database.as_str()), ("collection", namespace.collection.as_str())];
            text.value(name, &labels, number as f64);
        }
    }
    let alarms = engine.large_documents().map_or(0, |large| large.len());
    let help = "Collections with a document beyond the threshold on its way to 16 MiB.";
    text.one("sheaf_document_alarms", "gauge", help, alarms as f64);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_escaped_and_families_come_before_their_values() {
        let mut text = Text(String::new());
        text.family("a_total", "counter", "Things.");
        text.value("a_total", &[("name", "x\"y\\z")], 3.0);
        assert_eq!(text.0, "# HELP a_total Things.\n# TYPE a_total counter\na_total{name=\"x\\\"y\\\\z\"} 3\n");
    }
}
