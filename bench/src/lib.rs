//! What the measurements share.

mod common;
pub mod load;
pub mod message;
pub mod server;

pub use common::*;
