//! What the network's tests share.

#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    reason = "not every test uses all of it; a test may end at what it did not expect"
)]

use social::{Assignment, Id, Keeping, Network, NewPost, PageRequest, Settings};
use store::Store;

/// Both ways of keeping counts and copies.
pub const KEEPINGS: [Keeping; 2] = [Keeping::Model, Keeping::Service];

/// A network in memory.
pub async fn network(settings: Settings) -> Network {
    let store = Store::in_memory().unwrap();
    if settings.keeping == Keeping::Model {
        Network::keep_model(&store, "social").unwrap();
    }
    let network = Network::with_settings(store, "social", settings);
    network.ensure_indexes().await.unwrap();
    network
}

/// Settings with small bounds, so that tests meet them.
pub fn small(keeping: Keeping, assignment: Assignment) -> Settings {
    Settings {
        assignment,
        threshold: 3,
        inbox_cap: 6,
        join_above: 1,
        fan_out_batch: 2,
        fan_out_lease: std::time::Duration::from_millis(200),
        ..Settings::new(keeping)
    }
}

pub async fn users<const N: usize>(network: &Network, names: [&str; N]) -> [Id; N] {
    let mut ids = Vec::new();
    for name in names {
        ids.push(network.add_user(name).await.unwrap());
    }
    ids.try_into().unwrap()
}

pub async fn post(network: &Network, author: Id, content: &str) -> Id {
    network.post(author, &NewPost::text(content)).await.unwrap()
}

/// What a reader's whole feed says, read in pages of three.
pub async fn feed(network: &Network, reader: Id) -> Vec<String> {
    let (mut said, mut page) = (Vec::new(), PageRequest::first(3));
    loop {
        let feed = network.feed(reader, &page).await.unwrap();
        assert!(feed.items.len() <= 3);
        said.extend(feed.items.into_iter().map(|post| post.content));
        match feed.next {
            Some(next) => page.after = Some(next),
            None => return said,
        }
    }
}

pub async fn settle(network: &Network) {
    network.work(u64::MAX).await.unwrap();
}
