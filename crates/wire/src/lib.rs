//! MongoDB's wire protocol over the engine: any driver, mongosh or Mongoose works against it.
//!
//! ```text
//! server      listens, accepts, stops            config      what it may be told
//! connection  one peer: frames in, replies out   state       what all connections share
//! frame       header, limits, compression        message     OP_MSG and OP_QUERY
//! auth        SCRAM, users, roles, rights        session     logical sessions
//! profiler    slow operations                   usage       what each collection is used for
//! reports     what runs and who is there
//! readings    counters, for whoever shows them
//! command     the table of commands and one file per command
//! ```
//!
//! This layer knows commands, their fields and their replies. It must not know what any operator means: filters, updates and
//! pipelines pass through it as raw BSON.

mod auth;
mod bson;
pub mod command;
mod config;
mod connection;
mod fail_points;
pub mod frame;
mod message;
mod operation;
mod profiler;
mod readings;
mod reports;
mod server;
mod session;
mod state;
mod stream;
mod usage;

pub use config::{Config, ConfigError, Listen, Tls};
pub use message::check_frame;
pub use readings::{Counters, Readings};
pub use server::{Address, Server};
