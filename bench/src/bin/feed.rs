//! Fan-out and feed reads: a post to many followers as inbox documents and as capped arrays, beside Redis sorted sets, and
//! how long a page of a feed takes by followees and pulled authors.
//!
//! `cargo run --release --bin feed -- FOLDER [FOLLOWERS] [POSTS]`. Redis is measured if `redis-server` is on the path; what
//! feed systems do there: `ZADD` and a trim for each reader, pipelined.

use bson::{Document, doc, oid::ObjectId};
use social::{Assignment, Keeping, Network, NewPost, PageRequest, Settings};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use store::{BulkWrite, Store, WriteModel};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

const BATCH: usize = 500;
const CAP: i64 = 500;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let folder = PathBuf::from(arguments.first().ok_or("name a folder")?);
    let number = |at: usize, default: usize| arguments.get(at).and_then(|text| text.parse().ok()).unwrap_or(default);
    let (followers, posts) = (number(1, 100_000), number(2, 5));
    println!("| {followers} followers, {posts} posts | entries/s | bytes on disk an entry | memory |\n|---|---|---|---|");
    documents(&folder.join("documents"), followers, posts).await?;
    arrays(&folder.join("arrays"), followers, posts).await?;
    for policy in ["everysec", "always"] {
        redis(&folder.join(format!("redis-{policy}")), policy, followers, posts)?;
    }
    println!("\n| feed of 20, in process | p50 | p99 |\n|---|---|---|");
    for posts in [10_000, number(3, 100_000)] {
        reads(&folder.join(format!("reads-{posts}")), posts).await?;
    }
    Ok(())
}

fn row(what: &str, entries: usize, took: Duration, bytes: u64, memory: String) {
    let rate = entries as f64 / took.as_secs_f64();
    println!("| {what} | {rate:.0} | {:.0} | {memory} |", bytes as f64 / entries as f64);
}

/// What a folder holds.
fn size(folder: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    let each = entries.flatten().map(|entry| match entry.metadata() {
        Ok(found) if found.is_dir() => size(&entry.path()),
        Ok(found) => std::os::unix::fs::MetadataExt::blocks(&found) * 512,
        Err(_) => 0,
    });
    each.sum()
}

/// This process's resident memory in MiB.
fn resident() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").ok();
    let pages = pages.and_then(|text| text.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()));
    pages.unwrap_or_default() * 4 / 1024
}

fn settings() -> Settings {
    Settings { assignment: Assignment::PushAll, join_above: 1_000_000, ..Settings::new(Keeping::Model) }
}

async fn network(folder: &Path, settings: Settings) -> Outcome<(Store, Network)> {
    std::fs::create_dir_all(folder)?;
    let store = Store::open(folder)?;
    Network::keep_model(&store, "social")?;
    let network = Network::with_settings(store.clone(), "social", settings);
    network.ensure_indexes().await?;
    Ok((store, network))
}

fn edge(follower: ObjectId, followee: ObjectId, delivery: &str) -> Document {
    doc! {
        "_id": ObjectId::new(), "followerId": follower, "followeeId": followee, "status": "active",
        "delivery": delivery, "followedAt": bson::DateTime::now(),
    }
}

/// The whole way: a post, its place in the queue, the followers read in batches, an entry for each, the trimming.
async fn documents(folder: &Path, followers: usize, posts: usize) -> Outcome<()> {
    let (store, network) = network(folder, settings()).await?;
    let author = network.add_user("author").await?;
    let follows = store.collection("social", "follows");
    for _ in 0..followers.div_ceil(BATCH) {
        let edges = (0..BATCH).map(|_| edge(ObjectId::new(), author.into(), "push")).collect();
        follows.insert_many(edges, None).await?;
    }
    let (before, memory, begun) = (size(folder), resident(), Instant::now());
    let mut pushed = 0;
    for post in 0..posts {
        network.post(author, &NewPost::text(format!("post {post}"))).await?;
        pushed += network.work(u64::MAX).await?.pushed as usize;
    }
    let took = begun.elapsed();
    let memory = format!("{} MiB, {} before", resident(), memory);
    row("documents, one for each entry, durable", pushed, took, size(folder).saturating_sub(before), memory);
    Ok(())
}

async fn arrays(folder: &Path, followers: usize, posts: usize) -> Outcome<()> {
    std::fs::create_dir_all(folder)?;
    let store = Store::open(folder)?;
    let inboxes = store.collection("social", "arrays");
    let owners: Vec<_> = (0..followers).map(|_| ObjectId::new()).collect();
    let (before, memory, begun) = (size(folder), resident(), Instant::now());
    for _ in 0..posts {
        let post = ObjectId::new();
        for owners in owners.chunks(BATCH) {
            let push = |owner: &ObjectId| {
                let entry = doc! { "$push": { "posts": { "$each": [post], "$slice": -CAP } } };
                WriteModel::upsert_one(doc! { "_id": owner }, entry)
            };
            let unordered = BulkWrite { ordered: false, ..BulkWrite::default() };
            inboxes.bulk_write(owners.iter().map(push).collect(), unordered, None).await?.ok()?;
        }
    }
    let memory_after = format!("{} MiB, {memory} before", resident());
    let entries = followers * posts;
    row("capped arrays, one document a reader, durable", entries, begun.elapsed(), size(folder) - before, memory_after);
    Ok(())
}

struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn redis(folder: &Path, policy: &str, followers: usize, posts: usize) -> Outcome<()> {
    const PORT: &str = "16399";
    std::fs::create_dir_all(folder)?;
    let place = folder.to_str().ok_or("the folder's name is no text")?;
    let started = Command::new("redis-server")
        .args(["--port", PORT, "--dir", place, "--appendonly", "yes", "--appendfsync", policy, "--save", ""])
        .stdout(Stdio::null())
        .spawn();
    let Ok(child) = started else {
        println!("| Redis, {policy}: no redis-server here | | | |");
        return Ok(());
    };
    let _server = Server(child);
    let mut stream = loop {
        match TcpStream::connect(format!("127.0.0.1:{PORT}")) {
            Ok(stream) => break stream,
            Err(_) => std::thread::sleep(Duration::from_millis(50)),
        }
    };
    stream.set_nodelay(true)?;
    let owners: Vec<_> = (0..followers).map(|_| ObjectId::new().to_hex()).collect();
    let begun = Instant::now();
    for post in 0..posts {
        let id = ObjectId::new().to_hex();
        for owners in owners.chunks(BATCH) {
            let mut batch = Vec::new();
            for owner in owners {
                let key = format!("inbox:{owner}");
                command(&mut batch, &["ZADD", &key, &(1_700_000_000_000_u64 + post as u64).to_string(), &id]);
                command(&mut batch, &["ZREMRANGEBYRANK", &key, "0", &(-CAP - 1).to_string()]);
            }
            stream.write_all(&batch)?;
            replies(&mut stream, owners.len() * 2)?;
        }
    }
    let took = begun.elapsed();
    let mut info = Vec::new();
    command(&mut info, &["INFO", "memory"]);
    stream.write_all(&info)?;
    let mut text = vec![0; 65_536];
    let length = stream.read(&mut text)?;
    let text = String::from_utf8_lossy(&text[..length]).into_owned();
    let used = text.lines().find_map(|line| line.strip_prefix("used_memory_rss_human:")).unwrap_or("?").trim().to_owned();
    row(&format!("Redis sorted sets, appendfsync {policy}"), followers * posts, took, size(folder), used);
    Ok(())
}

fn command(batch: &mut Vec<u8>, words: &[&str]) {
    batch.extend_from_slice(format!("*{}\r\n", words.len()).as_bytes());
    for word in words {
        batch.extend_from_slice(format!("${}\r\n{word}\r\n", word.len()).as_bytes());
    }
}

/// Reads so many one-line replies.
fn replies(stream: &mut TcpStream, mut left: usize) -> Outcome<()> {
    let mut buffer = [0; 16_384];
    while left > 0 {
        let length = stream.read(&mut buffer)?;
        if length == 0 {
            return Err("Redis is gone".into());
        }
        left = left.saturating_sub(buffer[..length].iter().filter(|byte| **byte == b'\n').count());
    }
    Ok(())
}

/// Pages of feeds by the number of followees and of those who are pulled.
async fn reads(folder: &Path, posts: usize) -> Outcome<()> {
    const AUTHORS: usize = 5_000;
    let (store, network) = network(folder, settings()).await?;
    let mut authors = Vec::new();
    let mut users = Vec::new();
    for author in 0..AUTHORS {
        let id = ObjectId::new();
        authors.push(id);
        users.push(doc! { "_id": id, "username": format!("author {author}"), "avatar": "" });
    }
    store.collection("social", "users").insert_many(users, None).await?;
    let mut written = Vec::new();
    for from in (0..posts).step_by(1_000) {
        let post = |at: usize| {
            let (id, author) = (ObjectId::new(), authors[at % AUTHORS]);
            let document = doc! {
                "_id": id, "authorId": author, "author": { "username": "an author", "avatar": "" },
                "postedAs": "an author", "content": "a post of a usual length, which says this and that ".repeat(3),
                "images": [], "visibility": "public", "status": "published", "version": 1_i64,
                "createdAt": bson::DateTime::now(),
            };
            (id, author, document)
        };
        let batch: Vec<_> = (from..(from + 1_000).min(posts)).map(post).collect();
        written.extend(batch.iter().map(|(id, author, _)| (*id, *author)));
        let batch = batch.into_iter().map(|(_, _, document)| document).collect();
        store.collection("social", "posts").insert_many(batch, None).await?;
    }
    for followees in [10, 1_000, 5_000] {
        for pulled in [0, 5, 50] {
            if pulled > followees {
                continue;
            }
            let reader = network.add_user(&format!("reader {followees} {pulled}")).await?;
            // Spread, so that followees are not all among the first authors.
            let step = AUTHORS / followees;
            let followed: Vec<_> = (0..followees).map(|at| authors[at * step]).collect();
            let edges = followed.iter().enumerate().map(|(at, author)| {
                edge(reader.into(), *author, if at < pulled { "pull" } else { "push" })
            });
            store.collection("social", "follows").insert_many(edges.collect(), None).await?;
            let pushed: std::collections::HashSet<_> = followed[pulled..].iter().copied().collect();
            let entries: Vec<_> = written.iter().rev().filter(|(_, author)| pushed.contains(author)).take(500).collect();
            if entries.len() == 500 {
                let floor = doc! { "_id": bson::Bson::from(reader), "floor": entries[499].0 };
                store.collection("social", "inboxStates").insert_one(floor, None).await?;
            }
            let entry = |(post, author): &&(ObjectId, ObjectId)| {
                doc! { "_id": { "u": bson::Bson::from(reader), "p": *post }, "authorId": *author }
            };
            if !entries.is_empty() {
                let entries = entries.iter().map(entry).collect();
                store.collection("social", "inboxes").insert_many(entries, None).await?;
            }
            let mut times = Vec::new();
            for turn in 0..1_100 {
                let begun = Instant::now();
                network.feed(reader, &PageRequest::first(20)).await?;
                if turn >= 100 {
                    times.push(begun.elapsed());
                }
            }
            times.sort_unstable();
            let (p50, p99) = (times[times.len() / 2], times[times.len() * 99 / 100]);
            println!("| {posts} posts, {followees} followees, {pulled} of them pulled | {p50:.2?} | {p99:.2?} |");
        }
    }
    Ok(())
}
