//! What a running server counts, for whoever shows it elsewhere than in `serverStatus`.

use crate::state::Shared;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A handle on a server's counters. Clones are the same.
#[derive(Clone)]
pub struct Counters {
    pub(crate) shared: Arc<Shared>,
}

/// The counters at a moment.
#[derive(Clone, Debug, Default)]
pub struct Readings {
    /// How long the server runs.
    pub uptime: Duration,
    /// Open connections.
    pub connections: u64,
    /// Those that run an operation.
    pub connections_active: u64,
    /// Connections since the start.
    pub connections_created: u64,
    /// Connections that were turned away.
    pub connections_rejected: u64,
    /// Bytes received.
    pub bytes_in: u64,
    /// Bytes sent.
    pub bytes_out: u64,
    /// Requests.
    pub requests: u64,
    /// Operations by kind, as `opcounters` has them.
    pub operations: Vec<(&'static str, u64)>,
    /// Failed operations.
    pub errors: u64,
    /// Logical sessions.
    pub sessions: u64,
}

impl Counters {
    /// The counters now.
    pub fn read(&self) -> Readings {
        let metrics = &self.shared.metrics;
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let connections = self.shared.connections();
        let active = connections.iter().filter(|info| info.operation.lock().is_some()).count();
        Readings {
            uptime: self.shared.started.elapsed(),
            connections: connections.len() as u64,
            connections_active: active as u64,
            connections_created: get(&metrics.connections_created),
            connections_rejected: get(&metrics.connections_rejected),
            bytes_in: get(&metrics.bytes_in),
            bytes_out: get(&metrics.bytes_out),
            requests: get(&metrics.requests),
            operations: vec![
                ("insert", get(&metrics.insert)),
                ("query", get(&metrics.query)),
                ("update", get(&metrics.update)),
                ("delete", get(&metrics.delete)),
                ("getmore", get(&metrics.getmore)),
                ("command", get(&metrics.command)),
            ],
            errors: get(&metrics.asserts_user),
            sessions: self.shared.sessions.count() as u64,
        }
    }
}
