//! Sheaf's engine: documents, indexes, queries, updates, aggregation, transactions and the change log, on a storage of
//! ordered bytes. It knows no async runtime, no socket and no model; clock and randomness come in from outside.

pub mod accumulator;
mod alarm;
pub mod backup;
pub mod catalog;
pub mod changestream;
pub mod context;
mod counters;
pub mod cursor;
pub mod database;
pub mod document;
mod duplicate;
pub mod error;
pub mod event;
pub mod expression;
pub mod filter;
pub mod hook;
mod housekeeping;
pub mod index;
mod index_uses;
mod intent;
pub mod key;
pub mod keyspace;
mod monitor;
pub mod namespace;
pub mod operation;
pub mod plan;
pub mod projection;
pub mod series;
pub mod session;
mod snapshots;
pub mod stage;
mod statement;
pub mod storage;
pub mod update;

pub use alarm::LargeDocument;
pub use context::{Context, Reporter, SessionContext, SessionId};
pub use cursor::{Batch, CursorInfo, Tailing};
pub use database::{Engine, Options, State, Totals, Written};
pub use error::{Code, Error, Result};
pub use monitor::{Monitor, Observed, StatementObserved};
pub use namespace::Namespace;
pub use session::OpenTransaction;
pub use snapshots::SnapshotRead;
