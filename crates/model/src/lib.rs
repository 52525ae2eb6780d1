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
pub mod apply;
pub mod audit;
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
pub mod schema;
pub mod shape;
pub mod show;
pub mod size;
pub mod value;

use std::path::Path;

pub use error::{Error, Result};
pub use language::{Checked, load, parse};
pub use model::Model;

/// A store by where it is: a deployment's URL, or a folder, together with the models that are active in it.
///
/// # Errors
/// As [`store::Store::at`].
pub async fn store_at(place: &str) -> store::Result<store::Store> {
    if store::is_url(place) {
        return store::Store::connect(place).await;
    }
    let (engine, _) = keep::active::open(Path::new(place), engine::Options::system())?;
    Ok(store::Store::embedded(engine))
}

/// Today's date in the system's time zone, from which forecasts count.
pub fn today() -> jiff::civil::Date {
    jiff::ZonedDateTime::now().date()
}
