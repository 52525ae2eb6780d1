//! Everything once more on a deployment, through the official driver: our own server, which knows nothing of the model.
//!
//! `common::network` sees that it is compiled here and connects by URL.

#![allow(clippy::duplicate_mod, reason = "each test is a program of its own elsewhere, with its own `common`")]

#[path = "chat.rs"]
mod chat;
#[path = "departures.rs"]
mod departures;
#[path = "feeds.rs"]
mod feeds;
#[path = "files.rs"]
mod files;
#[path = "once.rs"]
mod once;
#[path = "reactions.rs"]
mod reactions;
#[path = "relations.rs"]
mod relations;
#[path = "updates.rs"]
mod updates;
