//! What every route shares; it knows no domain.

pub(crate) mod auth;
pub(crate) mod core;
pub(crate) mod cursor;
pub(crate) mod etag;
pub(crate) mod extract;
pub(crate) mod guard;
pub(crate) mod idempotency;
pub(crate) mod metrics;
pub(crate) mod observe;
pub(crate) mod openapi;
pub(crate) mod problem;
pub(crate) mod rate;
pub(crate) mod record;
pub(crate) mod server;
pub(crate) mod sse;
pub(crate) mod time;
pub(crate) mod token;
