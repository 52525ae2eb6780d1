//! What the network's tests share.

#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    reason = "not every test uses all of it; a test may end at what it did not expect"
)]

use social::{Assignment, Id, Keeping, Network, NewPost, PageRequest, Settings};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use store::Store;
use wire::{Address, Config, Listen, Server};

/// Whether this is the test that plays all of this on a deployment.
const ON_DEPLOYMENT: bool = matches!(env!("CARGO_CRATE_NAME").as_bytes(), b"deployment");

/// The ways of keeping counts and copies: both, where the store lets the model layer do it.
pub const KEEPINGS: &[Keeping] = if ON_DEPLOYMENT { &[Keeping::Service] } else { &[Keeping::Model, Keeping::Service] };

/// A network in memory, or one on a deployment.
pub async fn network(settings: Settings) -> Network {
    static NETWORKS: AtomicUsize = AtomicUsize::new(0);
    let (store, database) = if ON_DEPLOYMENT {
        let database = format!("social{}", NETWORKS.fetch_add(1, Ordering::Relaxed));
        (Store::connect(&deployment()).await.unwrap(), database)
    } else {
        (Store::in_memory().unwrap(), "social".to_owned())
    };
    if settings.keeping == Keeping::Model {
        Network::keep_model(&store, &database).unwrap();
    }
    let network = Network::with_settings(store, &database, settings);
    network.ensure_indexes().await.unwrap();
    network
}

/// The engine behind the deployment of this process.
static SERVED: OnceLock<engine::Engine> = OnceLock::new();

/// The same network as another process sees it: nothing in common but the store.
pub fn beside(network: &Network) -> Network {
    Network::with_settings(network.store().clone(), network.database(), network.settings().clone())
}

/// The deployment of this process: an engine in memory, which knows nothing of the model. Gives the URL for the driver.
pub fn deployment() -> String {
    static URL: OnceLock<String> = OnceLock::new();
    let url = URL.get_or_init(|| {
        let engine = SERVED.get_or_init(|| engine::Engine::in_memory(engine::Options::system()).unwrap());
        serve(engine.clone(), 0)
    });
    url.clone()
}

/// Serves an engine as `sheaf serve` does, in a thread of its own; gives the URL for the driver.
pub fn serve(engine: engine::Engine, port: u16) -> String {
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        tokio::runtime::Runtime::new().unwrap().block_on(async {
            let listen = vec![Listen::Tcp { host: "127.0.0.1".to_owned(), port }];
            let server = Server::bind(Config { listen, ..Config::default() }, engine).await.unwrap();
            let Some(Address::Tcp(address)) = server.addresses().into_iter().next() else { panic!("a TCP address") };
            sender.send(format!("mongodb://{address}/?replicaSet=sheaf")).unwrap();
            server.serve(std::future::pending()).await;
        });
    });
    receiver.recv().unwrap()
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

/// The next change that a listener is told.
pub async fn next_change(updates: &mut social::Updates) -> social::Change {
    let change = async {
        loop {
            if let Some(change) = updates.next().await.change {
                return change;
            }
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(10), change).await.expect("a change is told in time")
}

pub async fn settle(network: &Network) {
    network.work(u64::MAX).await.unwrap();
}

/// Has what is past its end deleted, as the store does it once a minute.
pub fn expire(network: &Network) {
    network.store().engine().unwrap_or_else(|| SERVED.get().unwrap()).delete_expired().unwrap();
}
