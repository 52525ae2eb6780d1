//! Sheaf's model layer: declare a data model, check it, plan and advise from it, and keep it true.
//!
//! A model is written in KDL ([`language`]), read into a typed [`Model`] and printed as canonical JSON. Everything else
//! works from the typed model: [`plan`] chooses indexes and shard keys, [`advise`] compares designs by their cost,
//! [`diff`] says what a change of the model means for a live database, [`observe`] looks at one,
//! [`lint`] judges it and [`infer`] writes a model of it, [`keep`] turns a change of a document into the
//! effects that keep copies and counters exact.
//!
//! This crate must not know bytes on disk, sockets, or any domain.

pub mod advise;
pub mod check;
pub mod diff;
pub mod error;
pub mod infer;
pub mod keep;
pub mod language;
pub mod lint;
pub mod model;
pub mod observe;
pub mod plan;
pub mod problem;
pub mod shape;
pub mod show;
pub mod size;
pub mod value;

pub use error::{Error, Result};
pub use language::{Checked, load, parse};
pub use model::Model;

/// Today's date in the system's time zone, from which forecasts count.
pub fn today() -> jiff::civil::Date {
    jiff::ZonedDateTime::now().date()
}
