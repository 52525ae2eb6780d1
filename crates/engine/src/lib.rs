//! Sheaf's engine: documents, indexes, queries, updates, aggregation, transactions and the change log, on a storage of
//! ordered bytes. It knows no async runtime, no socket and no model; clock and randomness come in from outside.

pub mod accumulator;
pub mod document;
pub mod error;
pub mod expression;
pub mod filter;
pub mod index;
pub mod key;
pub mod keyspace;
pub mod namespace;
pub mod stage;
pub mod storage;
pub mod update;

pub use error::{Code, Error, Result};
