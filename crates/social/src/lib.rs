//! Social on a store: follows as documents of their own, posts, inboxes that posts are pushed into.
//!
//! The documents are those of `models/social`. What is here so far is the way from a post to its readers: [`Network::post`]
//! pushes it into the followers' inboxes in bounded batches, and pushing it again changes nothing.

mod network;

pub use network::{FeedItem, Network, Posted};
pub use store::{Error, Result};
