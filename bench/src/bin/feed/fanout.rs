//! A post to many followers: inbox entries a second, durable, and what an entry takes in the log, on the disk and in memory.

use crate::redis::{Redis, command};
use crate::{BATCH, CAP, Outcome, edge, fill, network, resident, settings, size};
use bson::{Document, doc, oid::ObjectId};
use social::{Assignment, NewPost, Settings};
use std::path::Path;
use std::time::{Duration, Instant};
use store::{BulkWrite, InsertMany, Store, WriteModel};

pub(crate) async fn run(folder: &Path, followers: usize, posts: usize) -> Outcome<()> {
    println!("{followers} followers, {posts} posts, each entry durable before the next {BATCH} but for everysec\n");
    println!("| | entries/s | log bytes an entry | bytes on disk an entry | memory an entry |\n|---|---|---|---|---|");
    for workers in [1, 2] {
        whole(&folder.join(format!("whole-{workers}")), followers, posts, workers).await?;
    }
    entries(&folder.join("entries"), followers, posts).await?;
    arrays(&folder.join("arrays"), followers, posts).await?;
    for policy in ["everysec", "always"] {
        redis(&folder.join(format!("redis-{policy}")), policy, followers, posts)?;
    }
    Ok(())
}

/// What there is before the entries, to be taken off.
struct Before {
    log: u64,
    disk: u64,
    memory: u64,
    begun: Instant,
}

fn log_bytes(store: &Store) -> u64 {
    store.engine().map_or(0, |engine| engine.storage().statistics().log_written_bytes)
}

impl Before {
    fn new(store: &Store, folder: &Path) -> Before {
        Before { log: log_bytes(store), disk: size(folder), memory: resident(), begun: Instant::now() }
    }

    fn row(&self, what: &str, store: &Store, folder: &Path, entries: usize) -> Outcome<()> {
        let took = self.begun.elapsed();
        let (log, memory) = (log_bytes(store) - self.log, resident().saturating_sub(self.memory));
        store.engine().ok_or("an embedded store")?.clone().close()?;
        row(what, entries, took, Some(log), size(folder).saturating_sub(self.disk), memory);
        Ok(())
    }
}

fn row(what: &str, entries: usize, took: Duration, log: Option<u64>, disk: u64, memory: u64) {
    let each = |bytes: u64| bytes as f64 / entries as f64;
    let log = log.map_or("(is the disk)".to_owned(), |log| format!("{:.0}", each(log)));
    let rate = entries as f64 / took.as_secs_f64();
    println!("| {what} | {rate:.0} | {log} | {:.0} | {:.0} |", each(disk), each(memory));
}

/// The whole way: a post, its place in the queue, the followers read in batches, an entry for each, the trimming.
async fn whole(folder: &Path, followers: usize, posts: usize, workers: usize) -> Outcome<()> {
    let settings = Settings { assignment: Assignment::PushAll, ..settings() };
    let (store, network) = network(folder, settings).await?;
    let mut authors = Vec::new();
    for author in 0..workers {
        let id = network.add_user(&format!("author {author}")).await?;
        let edges = (0..followers / workers).map(|_| edge(ObjectId::new(), id.into(), "push"));
        fill(&store, "follows", edges).await?;
        authors.push(id);
    }
    let (store, network) = crate::settled(folder, (store, network)).await?;
    let before = Before::new(&store, folder);
    let mut pushed = 0;
    for post in 0..posts {
        for author in &authors {
            network.post(*author, &NewPost::text(format!("post {post}"))).await?;
        }
        let mut working = tokio::task::JoinSet::new();
        for _ in 0..workers {
            let network = network.clone();
            working.spawn(async move { network.work(u64::MAX).await });
        }
        for worked in working.join_all().await {
            pushed += worked?.pushed as usize;
        }
    }
    let what = format!("documents: post, queue, edges read, entries, trim; {workers} at work");
    before.row(&what, &store, folder, pushed)
}

/// The entries alone, as Redis gets them too: whoever calls knows the readers.
async fn entries(folder: &Path, followers: usize, posts: usize) -> Outcome<()> {
    let (store, _) = network(folder, settings()).await?;
    let inboxes = store.collection("social", "inboxes");
    let (owners, author) = ((0..followers).map(|_| ObjectId::new()).collect::<Vec<_>>(), ObjectId::new());
    let before = Before::new(&store, folder);
    for _ in 0..posts {
        let post = ObjectId::new();
        for owners in owners.chunks(BATCH) {
            let entry = |owner: &ObjectId| doc! { "_id": { "u": *owner, "p": post }, "authorId": author };
            let unordered = InsertMany { ordered: false, ..InsertMany::default() };
            let entries: Vec<Document> = owners.iter().map(entry).collect();
            inboxes.insert_many_with(entries, unordered, None).await?;
        }
    }
    before.row("documents: entries alone", &store, folder, followers * posts)
}

async fn arrays(folder: &Path, followers: usize, posts: usize) -> Outcome<()> {
    std::fs::create_dir_all(folder)?;
    let store = Store::open(folder)?;
    let inboxes = store.collection("social", "arrays");
    let owners: Vec<_> = (0..followers).map(|_| ObjectId::new()).collect();
    let before = Before::new(&store, folder);
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
    before.row("capped arrays, one document a reader", &store, folder, followers * posts)
}

fn redis(folder: &Path, policy: &str, followers: usize, posts: usize) -> Outcome<()> {
    let Some(mut redis) = Redis::start(folder, policy)? else { return Ok(()) };
    let owners: Vec<_> = (0..followers).map(|_| ObjectId::new().to_hex()).collect();
    let (memory, begun) = (redis.resident(), Instant::now());
    for post in 0..posts {
        let id = ObjectId::new().to_hex();
        for owners in owners.chunks(BATCH) {
            let mut batch = Vec::new();
            for owner in owners {
                let key = format!("inbox:{owner}");
                command(&mut batch, &["ZADD", &key, &(1_700_000_000_000_u64 + post as u64).to_string(), &id]);
                command(&mut batch, &["ZREMRANGEBYRANK", &key, "0", &(-CAP - 1).to_string()]);
            }
            redis.call(&batch, owners.len() * 2)?;
        }
    }
    let (took, memory) = (begun.elapsed(), redis.resident() - memory);
    let what = format!("Redis sorted sets, appendfsync {policy}");
    row(&what, followers * posts, took, None, size(folder), memory);
    Ok(())
}
