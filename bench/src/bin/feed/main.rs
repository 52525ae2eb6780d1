//! The social backend's measurements: fan-out and feed reads beside Redis, what push, pull and hybrid cost, common follows,
//! and conversations of many messages.
//!
//! `cargo run --release --bin feed -- WHAT FOLDER [SIZE …]`, where WHAT is
//! - `fanout [FOLLOWERS] [POSTS]`: a post to many followers as inbox documents and as capped arrays, beside Redis sorted sets;
//! - `reads [POSTS]`: pages of feeds by followees and pulled authors, and pages of inboxes that Redis holds;
//! - `curves`: what a post and a page of the feed cost with each assignment;
//! - `mutual [FOLLOWS]`: common follows of two users, and counts for a page of users;
//! - `chat [MESSAGES]`: sending and reading in stores of more and more messages.
//!
//! Redis is measured if `redis-server` is on the path: what feed systems do there, `ZADD` and a trim for each reader, pipelined.

mod chat;
mod curves;
mod fanout;
mod mutual;
mod reads;
mod redis;

use bson::{Document, doc, oid::ObjectId};
use social::{Keeping, Network, Settings};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use store::Store;

/// The same as the server's.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// What goes over the wire, or into the store, at once.
const BATCH: usize = 500;
/// The entries of an inbox.
const CAP: i64 = 500;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [what, folder, sizes @ ..] = arguments.as_slice() else {
        return Err("say what to measure, and a folder".into());
    };
    let folder = PathBuf::from(folder);
    let size = |at: usize, default: usize| sizes.get(at).and_then(|text| text.parse().ok()).unwrap_or(default);
    match what.as_str() {
        "fanout" => fanout::run(&folder, size(0, 100_000), size(1, 10)).await,
        "reads" => reads::run(&folder, size(0, 1_000_000)).await,
        "curves" => curves::run(&folder).await,
        "mutual" => mutual::run(&folder, size(0, 100_000)).await,
        "chat" => chat::run(&folder, size(0, 10_000_000)).await,
        other => Err(format!("{other} is none of fanout, reads, curves, mutual, chat").into()),
    }
}

/// What a folder takes on the disk.
fn size(folder: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    let each = entries.flatten().map(|entry| match entry.metadata() {
        Ok(found) if found.is_dir() => size(&entry.path()),
        Ok(found) => std::os::unix::fs::MetadataExt::blocks(&found) * 512,
        Err(_) => 0,
    });
    each.sum()
}

/// This process's resident memory in bytes.
fn resident() -> u64 {
    sheafdb_bench::memory_mb("self").0 << 20
}

async fn network(folder: &Path, settings: Settings) -> Outcome<(Store, Network)> {
    std::fs::create_dir_all(folder)?;
    let store = Store::open(folder)?;
    Network::keep_model(&store, "social")?;
    let network = Network::with_settings(store.clone(), "social", settings);
    network.ensure_indexes().await?;
    Ok((store, network))
}

/// Closed and opened again, so that all that was filled in is folded before anything is measured.
async fn settled(folder: &Path, (store, network): (Store, Network)) -> Outcome<(Store, Network)> {
    let settings = network.settings().clone();
    store.engine().ok_or("an embedded store")?.clone().close()?;
    drop((store, network));
    self::network(folder, settings).await
}

fn settings() -> Settings {
    Settings::new(Keeping::Model)
}

fn edge(follower: ObjectId, followee: ObjectId, delivery: &str) -> Document {
    doc! {
        "_id": ObjectId::new(), "followerId": follower, "followeeId": followee, "status": "active",
        "delivery": delivery, "followedAt": bson::DateTime::now(),
    }
}

fn user(id: ObjectId, name: &str) -> Document {
    doc! { "_id": id, "username": name, "avatar": "", "bio": "", "createdAt": bson::DateTime::now() }
}

/// Inserts documents, some hundreds at once.
async fn fill(store: &Store, collection: &str, documents: impl Iterator<Item = Document>) -> Outcome<()> {
    let (collection, mut batch) = (store.collection("social", collection), Vec::new());
    for document in documents {
        batch.push(document);
        if batch.len() == BATCH {
            collection.insert_many(std::mem::take(&mut batch), None).await?;
        }
    }
    Ok(collection.insert_many(batch, None).await?)
}

/// What a call took.
struct Taken {
    /// The middle one.
    p50: Duration,
    /// The one of a hundred that is the slowest.
    p99: Duration,
    /// This process's processor time, a mean: what is left on a busy machine to compare by.
    cpu: Duration,
}

impl std::fmt::Display for Taken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.2?} | {:.2?} | {:.2?}", self.p50, self.p99, self.cpu)
    }
}

/// Times calls.
async fn percentiles(warm: usize, times: usize, mut call: impl AsyncFnMut(usize) -> Outcome<()>) -> Outcome<Taken> {
    let (mut taken, mut cpu) = (Vec::new(), sheafdb_bench::cpu_fine());
    for turn in 0..warm + times {
        if turn == warm {
            cpu = sheafdb_bench::cpu_fine();
        }
        let begun = Instant::now();
        call(turn).await?;
        if turn >= warm {
            taken.push(begun.elapsed());
        }
    }
    let cpu = sheafdb_bench::cpu_fine().saturating_sub(cpu) / times as u32;
    taken.sort_unstable();
    Ok(Taken { p50: taken[times / 2], p99: taken[times * 99 / 100], cpu })
}
