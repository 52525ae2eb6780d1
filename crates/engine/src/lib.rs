//! Sheaf's engine: documents, indexes, queries, updates, aggregation, transactions and the change log, on a storage of
//! ordered bytes. It knows no async runtime, no socket and no model; clock and randomness come in from outside.

pub mod error;
pub mod storage;

pub use error::{Code, Error, Result};
