//! What the API serves and what it allows.

use ::commerce::{Provider, Shop};
use ::social::{Blog, Metrics, Network};
use std::sync::Arc;
use std::time::Duration;

/// The database of the API's own collections.
pub const DEFAULT_DATABASE: &str = "sheaf_http";

/// What the API serves, and how.
#[derive(Clone)]
pub struct Config {
    /// The shop, if the commerce routes are served.
    pub commerce: Option<Shop>,
    /// Who moves the shop's money; without one, only the provider's callbacks come here.
    pub provider: Option<Arc<dyn Provider>>,
    /// The Redis in front of flash sales (`redis://host:port`); without one there are none with a stock cache.
    pub redis: Option<String>,
    /// The network, if the social routes are served.
    pub social: Option<Network>,
    /// The blog, if its routes are served.
    pub blog: Option<Blog>,
    /// The readings and logs of machines, if their routes are served.
    pub metrics: Option<Metrics>,
    /// The database of tokens and idempotency records.
    pub database: String,
    /// Web origins whose scripts may call the API; none by default.
    pub cors_origins: Vec<String>,
    /// What is allowed.
    pub limits: Limits,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            commerce: None,
            provider: None,
            redis: None,
            social: None,
            blog: None,
            metrics: None,
            database: DEFAULT_DATABASE.to_owned(),
            cors_origins: Vec::new(),
            limits: Limits::default(),
        }
    }
}

/// Bounds.
#[derive(Clone, Debug)]
pub struct Limits {
    /// The most connections at once.
    pub connections: usize,
    /// The most calls at work at once; one more is refused with 503.
    pub calls: usize,
    /// The most live streams at once.
    pub streams: usize,
    /// The largest head of a request.
    pub head_size_bytes: usize,
    /// The most header fields of a request.
    pub header_fields: usize,
    /// The largest body, where the route says nothing else.
    pub body_size_bytes: usize,
    /// How long a request's head may take; also how long a connection may idle.
    pub head_timeout: Duration,
    /// How long a request's body may take.
    pub body_timeout: Duration,
    /// How long a call may take before the caller gets 503.
    pub call_timeout: Duration,
    /// How long calls may go on after the server was told to stop.
    pub stop_timeout: Duration,
    /// Calls a second of one caller, in the long run; zero for no limit.
    pub rate_per_second: u32,
    /// Calls of one caller at once, after a pause.
    pub rate_burst: u32,
    /// For how long the answer to an `Idempotency-Key` is kept.
    pub idempotency_kept: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            connections: 20_000,
            calls: 4_096,
            streams: 2_048,
            head_size_bytes: 32 << 10,
            header_fields: 64,
            body_size_bytes: 1 << 20,
            head_timeout: Duration::from_secs(30),
            body_timeout: Duration::from_secs(30),
            call_timeout: Duration::from_secs(30),
            stop_timeout: Duration::from_secs(10),
            rate_per_second: 200,
            rate_burst: 400,
            idempotency_kept: Duration::from_secs(24 * 60 * 60),
        }
    }
}
