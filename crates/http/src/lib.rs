//! The HTTP API of Sheaf's backends: commerce and social on one shared layer.
//!
//! ```text
//!   socket -> server      connections: how many, how slow, how they end
//!             observe     request id, metrics, security headers, panics, conditional answers
//!             guard       the route's policy: who may call it, how often, for how long
//!             idempotent  unsafe calls: once for each key, whatever the client repeats
//!             handler     commerce/, social/, tokens: from JSON to the domain and back
//! ```
//!
//! What a route needs (roles, errors, preconditions) is said once, in its `#[utoipa::path]`; [`Api`] reads it from there,
//! enforces it and publishes it at `/openapi.json`. Every refusal is a [`Problem`] of RFC 9457.
//!
//! This layer knows no BSON beyond its own two collections (tokens and idempotency records) and no domain rule.

mod api;
mod commerce;
mod config;
mod health;
mod shared;
mod social;
mod tokens;

pub use api::Api;
pub use config::{Config, DEFAULT_DATABASE, Limits};
pub use shared::auth::{Caller, Role};
pub use shared::problem::{KINDS, Kind, Problem};
pub use shared::server::{BindError, Server};
pub use shared::token::{Issued, NewToken, Token, TokenError, Tokens};
