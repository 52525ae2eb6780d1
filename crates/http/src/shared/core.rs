//! What all routes and layers share at run time.

use crate::config::{Config, Limits};
use crate::shared::metrics::Metrics;
use crate::shared::rate::RateLimit;
use crate::shared::record::Records;
use crate::shared::token::Tokens;
use bytes::Bytes;
use std::sync::{Arc, OnceLock};
use store::Store;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// The shared state.
pub(crate) struct Core {
    /// The API's description, once its routes are known.
    pub(crate) description: OnceLock<Bytes>,
    pub(crate) tokens: Tokens,
    pub(crate) records: Records,
    pub(crate) limits: Limits,
    pub(crate) rate: RateLimit,
    pub(crate) metrics: Metrics,
    /// Permits of the calls at work.
    pub(crate) calls: Arc<Semaphore>,
    /// Permits of the open streams.
    pub(crate) streams: Arc<Semaphore>,
    /// Unsafe calls: they go on when their caller has gone away, and the server waits for them when it stops.
    pub(crate) work: TaskTracker,
    /// Ends streams and readiness once the server stops.
    pub(crate) stopping: CancellationToken,
}

impl Core {
    pub(crate) fn new(store: &Store, config: &Config) -> Core {
        let limits = config.limits.clone();
        Core {
            tokens: Tokens::new(store, &config.database),
            records: Records::new(store, &config.database, limits.idempotency_kept),
            rate: RateLimit::new(limits.rate_per_second, limits.rate_burst),
            metrics: Metrics::default(),
            calls: Arc::new(Semaphore::new(limits.calls)),
            streams: Arc::new(Semaphore::new(limits.streams)),
            work: TaskTracker::new(),
            stopping: CancellationToken::new(),
            description: OnceLock::new(),
            limits,
        }
    }
}
