//! Pages of feeds by the number of followees and of those who are pulled, at few and at many posts; and the same page of an
//! inbox that Redis holds, with the posts in Redis too.

use crate::redis::{Redis, command};
use crate::{Outcome, edge, fill, network, percentiles, settings, settled, user};
use bson::{Bson, Document, doc, oid::ObjectId};
use social::{Assignment, Network, PageRequest, Settings};
use std::collections::HashSet;
use std::path::Path;
use store::Store;

const AUTHORS: usize = 5_000;
/// The posts of a page.
const PAGE: u32 = 20;
const CAP: usize = crate::CAP as usize;
const TIMES: usize = 2_000;

pub(crate) async fn run(folder: &Path, posts: usize) -> Outcome<()> {
    println!("| a page of {PAGE}, in process | p50 | p99 | processor |\n|---|---|---|---|");
    for posts in [10_000, posts] {
        feeds(&folder.join(format!("posts-{posts}")), posts).await?;
    }
    redis(&folder.join("redis"))
}

/// A post of a usual length.
pub(crate) fn post(id: ObjectId, author: ObjectId) -> Document {
    doc! {
        "_id": id, "authorId": author, "author": { "username": "an author", "avatar": "" }, "postedAs": "an author",
        "content": text(), "images": [], "visibility": "public", "status": "published", "version": 1_i64,
        "createdAt": bson::DateTime::now(),
    }
}

fn text() -> String {
    "a post of a usual length, which says this and that ".repeat(3)
}

async fn feeds(folder: &Path, posts: usize) -> Outcome<()> {
    // Nothing is joined by looking, so that what is pulled stays so.
    let settings = Settings { assignment: Assignment::PushAll, join_above: 1_000_000, ..settings() };
    let (store, network) = network(folder, settings).await?;
    let authors: Vec<_> = (0..AUTHORS).map(|_| ObjectId::new()).collect();
    fill(&store, "users", authors.iter().enumerate().map(|(at, id)| user(*id, &format!("author {at}")))).await?;
    let written: Vec<_> = (0..posts).map(|at| (ObjectId::new(), authors[at % AUTHORS])).collect();
    fill(&store, "posts", written.iter().map(|(id, author)| post(*id, *author))).await?;
    let (store, network) = settled(folder, (store, network)).await?;
    for followees in [10, 1_000, 5_000] {
        for pulled in [0, 5, 50] {
            if pulled <= followees {
                one(&store, &network, &authors, &written, followees, pulled).await?;
            }
        }
    }
    store.engine().ok_or("an embedded store")?.clone().close()?;
    Ok(())
}

/// A reader of so many authors, whose inbox is as it would be, and how long the first page takes.
async fn one(
    store: &Store,
    network: &Network,
    authors: &[ObjectId],
    written: &[(ObjectId, ObjectId)],
    followees: usize,
    pulled: usize,
) -> Outcome<()> {
    let reader = network.add_user(&format!("reader {followees} {pulled}")).await?;
    // Spread, so that followees are not all among the first authors.
    let followed: Vec<_> = (0..followees).map(|at| authors[at * (AUTHORS / followees)]).collect();
    let edges = followed.iter().enumerate();
    let edges = edges.map(|(at, author)| edge(reader.into(), *author, if at < pulled { "pull" } else { "push" }));
    fill(store, "follows", edges).await?;
    let pushed: HashSet<_> = followed[pulled..].iter().copied().collect();
    let entries: Vec<_> = written.iter().rev().filter(|(_, author)| pushed.contains(author)).take(CAP).collect();
    if entries.len() == CAP {
        let floor = doc! { "_id": Bson::from(reader), "floor": entries[CAP - 1].0 };
        store.collection("social", "inboxStates").insert_one(floor, None).await?;
    }
    let entry = |(post, author): &&(ObjectId, ObjectId)| {
        doc! { "_id": { "u": Bson::from(reader), "p": *post }, "authorId": *author }
    };
    fill(store, "inboxes", entries.iter().map(entry)).await?;
    let taken = percentiles(200, TIMES, async |_| {
        let page = network.feed(reader, &PageRequest::first(PAGE)).await?;
        if page.items.len() == PAGE as usize { Ok(()) } else { Err("a page is not full".into()) }
    })
    .await?;
    println!("| {} posts, {followees} followees, {pulled} of them pulled | {taken} |", written.len());
    Ok(())
}

/// The newest ids of an inbox, then their posts: two round trips, as feed systems do it.
fn redis(folder: &Path) -> Outcome<()> {
    let Some(mut redis) = Redis::start(folder, "everysec")? else { return Ok(()) };
    let (mut batch, mut sent) = (Vec::new(), 0);
    for post in 0..10_000 {
        command(&mut batch, &["SET", &format!("post:{post}"), &text().repeat(2)]);
        sent += 1;
        if post >= 9_500 {
            command(&mut batch, &["ZADD", "inbox:reader", &post.to_string(), &format!("post:{post}")]);
            sent += 1;
        }
        if batch.len() > 100_000 || post == 9_999 {
            redis.call(&std::mem::take(&mut batch), std::mem::take(&mut sent))?;
        }
    }
    let mut times = Vec::new();
    for _ in 0..TIMES {
        let begun = std::time::Instant::now();
        let mut ask = Vec::new();
        command(&mut ask, &["ZREVRANGE", "inbox:reader", "0", &(PAGE - 1).to_string()]);
        let ids = redis.call(&ask, 1)?;
        let words: Vec<&str> = std::iter::once("MGET").chain(ids.iter().map(String::as_str)).collect();
        let mut ask = Vec::new();
        command(&mut ask, &words);
        if redis.call(&ask, 1)?.len() != PAGE as usize {
            return Err("a page is not full".into());
        }
        times.push(begun.elapsed());
    }
    times.sort_unstable();
    let (p50, p99) = (times[TIMES / 2], times[TIMES * 99 / 100]);
    println!("| Redis: ids, then posts; nothing checked, over loopback | {p50:.1?} | {p99:.1?} | |");
    Ok(())
}
