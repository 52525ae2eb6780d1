//! What the API counts, in Prometheus' text format.

use parking_lot::RwLock;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

/// Upper bounds of the histogram's buckets, in microseconds.
const BOUNDS_US: [u64; 12] =
    [500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 5_000_000];

/// What is counted for each route.
#[derive(Default)]
struct Route {
    statuses: BTreeMap<u16, AtomicU64>,
    buckets: [AtomicU64; BOUNDS_US.len()],
    count: AtomicU64,
    sum_us: AtomicU64,
}

/// The counters. Routes are those of the table, so that their number is bounded.
#[derive(Default)]
pub(crate) struct Metrics {
    routes: RwLock<BTreeMap<(String, String), Route>>,
    /// Calls at work.
    pub(crate) in_flight: AtomicI64,
    /// Open connections.
    pub(crate) connections: AtomicI64,
    /// Open streams.
    pub(crate) streams: AtomicI64,
    /// Answers that were given again for an `Idempotency-Key`.
    pub(crate) replays: AtomicU64,
    /// Calls that were refused because of their caller's rate.
    pub(crate) rate_limited: AtomicU64,
    /// Calls that were refused because of too many at work.
    pub(crate) overloaded: AtomicU64,
    /// Handlers that panicked.
    pub(crate) panics: AtomicU64,
}

impl Metrics {
    /// Counts an answer.
    pub(crate) fn answered(&self, method: &str, route: &str, status: u16, took: Duration) {
        let key = (method.to_owned(), route.to_owned());
        {
            let routes = self.routes.read();
            if let Some(found) = routes.get(&key)
                && let Some(count) = found.statuses.get(&status)
            {
                count.fetch_add(1, Ordering::Relaxed);
                return found.time(took);
            }
        }
        let mut routes = self.routes.write();
        let found = routes.entry(key).or_default();
        found.statuses.entry(status).or_default().fetch_add(1, Ordering::Relaxed);
        found.time(took);
    }

    /// The counters as text.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        let routes = self.routes.read();
        head(&mut text, "sheaf_http_requests_total", "counter", "Answers by method, route and status.");
        for ((method, route), counted) in routes.iter() {
            for (status, count) in &counted.statuses {
                let labels = format!("method=\"{method}\",route=\"{route}\",status=\"{status}\"");
                line(&mut text, "sheaf_http_requests_total", &labels, count.load(Ordering::Relaxed));
            }
        }
        let name = "sheaf_http_request_duration_seconds";
        head(&mut text, name, "histogram", "How long answers took, from the request's head to the answer's.");
        for ((method, route), counted) in routes.iter() {
            counted.write(&mut text, name, &format!("method=\"{method}\",route=\"{route}\""));
        }
        let gauges = [
            ("sheaf_http_in_flight", "Calls at work.", &self.in_flight),
            ("sheaf_http_connections", "Open connections.", &self.connections),
            ("sheaf_http_streams", "Open live streams.", &self.streams),
        ];
        for (name, help, value) in gauges {
            head(&mut text, name, "gauge", help);
            let _ = writeln!(text, "{name} {}", value.load(Ordering::Relaxed));
        }
        let counters = [
            ("sheaf_http_replays_total", "Answers given again for an Idempotency-Key.", &self.replays),
            ("sheaf_http_rate_limited_total", "Calls refused by their caller's rate.", &self.rate_limited),
            ("sheaf_http_overloaded_total", "Calls refused since too many were at work.", &self.overloaded),
            ("sheaf_http_panics_total", "Handlers that panicked.", &self.panics),
        ];
        for (name, help, value) in counters {
            head(&mut text, name, "counter", help);
            let _ = writeln!(text, "{name} {}", value.load(Ordering::Relaxed));
        }
        text
    }
}

impl Route {
    fn time(&self, took: Duration) {
        let us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        for (bound, bucket) in BOUNDS_US.iter().zip(&self.buckets) {
            if us <= *bound {
                bucket.fetch_add(1, Ordering::Relaxed);
            }
        }
        self.count.fetch_add(1, Ordering::Relaxed);
        self.sum_us.fetch_add(us, Ordering::Relaxed);
    }

    fn write(&self, text: &mut String, name: &str, labels: &str) {
        for (bound, bucket) in BOUNDS_US.iter().zip(&self.buckets) {
            let seconds = *bound as f64 / 1e6;
            let labels = format!("{labels},le=\"{seconds}\"");
            line(text, &format!("{name}_bucket"), &labels, bucket.load(Ordering::Relaxed));
        }
        let count = self.count.load(Ordering::Relaxed);
        line(text, &format!("{name}_bucket"), &format!("{labels},le=\"+Inf\""), count);
        let sum = self.sum_us.load(Ordering::Relaxed) as f64 / 1e6;
        let _ = writeln!(text, "{name}_sum{{{labels}}} {sum}");
        line(text, &format!("{name}_count"), labels, count);
    }
}

fn head(text: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

fn line(text: &mut String, name: &str, labels: &str, value: u64) {
    let _ = writeln!(text, "{name}{{{labels}}} {value}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_cumulative_and_end_with_all() {
        let metrics = Metrics::default();
        metrics.answered("GET", "/v1/orders", 200, Duration::from_micros(700));
        metrics.answered("GET", "/v1/orders", 404, Duration::from_secs(60));
        let text = metrics.text();
        for expected in [
            "sheaf_http_requests_total{method=\"GET\",route=\"/v1/orders\",status=\"200\"} 1",
            "sheaf_http_request_duration_seconds_bucket{method=\"GET\",route=\"/v1/orders\",le=\"0.0005\"} 0",
            "sheaf_http_request_duration_seconds_bucket{method=\"GET\",route=\"/v1/orders\",le=\"0.001\"} 1",
            "sheaf_http_request_duration_seconds_bucket{method=\"GET\",route=\"/v1/orders\",le=\"5\"} 1",
            "sheaf_http_request_duration_seconds_bucket{method=\"GET\",route=\"/v1/orders\",le=\"+Inf\"} 2",
            "sheaf_http_request_duration_seconds_count{method=\"GET\",route=\"/v1/orders\"} 2",
        ] {
            assert!(text.contains(expected), "{expected} is not in\n{text}");
        }
    }
}
