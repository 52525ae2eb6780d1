//! What a post and a page of the feed cost by followers and followees, and what each assignment makes of a small network.

use crate::reads::post as written;
use crate::{Outcome, edge, fill, network, percentiles, settings, settled, user};
use bson::oid::ObjectId;
use social::{Assignment, Id, Network, NewPost, PageRequest, Settings};
use std::path::Path;
use std::time::{Duration, Instant};

/// A small network: everybody follows every star, and so many of the others.
const READERS: usize = 500;
const STARS: usize = 10;
const OTHERS: usize = 250;
const OTHERS_FOLLOWED: usize = 90;

pub(crate) async fn run(folder: &Path) -> Outcome<()> {
    posts(&folder.join("posts")).await?;
    pages(&folder.join("pages")).await?;
    println!(
        "\n{READERS} readers follow each of {STARS} stars and {OTHERS_FOLLOWED} of {OTHERS} others ({} followers each)\n",
        READERS * OTHERS_FOLLOWED / OTHERS
    );
    println!(
        "| processor time | a star's post | another's post | a page | 1 page a post | 10 | 1,000 | 10,000 |\n|---|---|---|---|---|---|---|---|"
    );
    let assignments = [Assignment::PushAll, Assignment::PullAll, Assignment::PullAbove, Assignment::PullBelow];
    for assignment in assignments {
        whole(&folder.join(format!("{assignment:?}")), assignment).await?;
    }
    Ok(())
}

/// A post by followers: pushed, and pulled.
async fn posts(folder: &Path) -> Outcome<()> {
    println!(
        "| followers | a post, pushed | an entry | a post, pulled | pushed, processor | an entry | pulled |\n|---|---|---|---|---|---|---|"
    );
    let pushed = network(&folder.join("push"), Settings { assignment: Assignment::PushAll, ..settings() }).await?;
    let pulled = network(&folder.join("pull"), Settings { assignment: Assignment::PullAll, ..settings() }).await?;
    for followers in [10, 100, 1_000, 10_000, 100_000] {
        let mut took = Vec::new();
        for ((store, network), delivery) in [(&pushed, "push"), (&pulled, "pull")] {
            let author = network.add_user(&format!("author {followers}")).await?;
            fill(store, "follows", (0..followers).map(|_| edge(ObjectId::new(), author.into(), delivery))).await?;
            let times = if followers > 1_000 { 3 } else { 20 };
            took.push(post(network, &[author], times).await?);
        }
        let [(push, push_cpu), (pull, pull_cpu)] = took[..] else { return Err("two ways".into()) };
        println!(
            "| {followers} | {push:.1?} | {:.1?} | {pull:.1?} | {push_cpu:.1?} | {:.1?} | {pull_cpu:.1?} |",
            push / followers as u32,
            push_cpu / followers as u32
        );
    }
    Ok(())
}

/// How long a post takes until it has reached everybody, and its processor time: means.
async fn post(network: &Network, authors: &[Id], times: u32) -> Outcome<(Duration, Duration)> {
    let (begun, cpu) = (Instant::now(), sheafdb_bench::cpu_fine());
    for at in 0..times {
        let author = authors[at as usize % authors.len()];
        network.post(author, &NewPost::text("a post of a usual length, which says this and that")).await?;
        network.work(u64::MAX).await?;
    }
    Ok((begun.elapsed() / times, sheafdb_bench::cpu_fine().saturating_sub(cpu) / times))
}

/// A page by pulled authors.
async fn pages(folder: &Path) -> Outcome<()> {
    println!("\n| pulled authors | a page of 20, p50 | p99 | processor |\n|---|---|---|---|");
    let pull = Settings { assignment: Assignment::PullAll, ..settings() };
    let (store, network) = network(folder, pull).await?;
    let authors: Vec<_> = (0..1_000).map(|_| ObjectId::new()).collect();
    fill(&store, "users", authors.iter().enumerate().map(|(at, id)| user(*id, &format!("author {at}")))).await?;
    fill(&store, "posts", (0..20_000).map(|at| written(ObjectId::new(), authors[at % authors.len()]))).await?;
    for pulled in [1, 10, 100, 1_000] {
        let reader = network.add_user(&format!("reader {pulled}")).await?;
        fill(&store, "follows", authors[..pulled].iter().map(|author| edge(reader.into(), *author, "pull"))).await?;
        let taken = percentiles(20, 300, async |_| {
            network.feed(reader, &PageRequest::first(20)).await?;
            Ok(())
        })
        .await?;
        println!("| {pulled} | {taken} |");
    }
    Ok(())
}

/// The small network with an assignment.
async fn whole(folder: &Path, assignment: Assignment) -> Outcome<()> {
    let settings = Settings { assignment, threshold: READERS as u64 / 2, ..settings() };
    let (store, network) = network(folder, settings).await?;
    let ids = |count: usize| (0..count).map(|_| ObjectId::new()).collect::<Vec<_>>();
    let (stars, others, readers) = (ids(STARS), ids(OTHERS), ids(READERS));
    for (kind, ids) in [("star", &stars), ("other", &others), ("reader", &readers)] {
        fill(&store, "users", ids.iter().enumerate().map(|(at, id)| user(*id, &format!("{kind} {at}")))).await?;
    }
    for (at, reader) in readers.iter().enumerate() {
        let followed = (0..OTHERS_FOLLOWED).map(|other| others[(at * 7 + other) % OTHERS]);
        let followed = followed.chain(stars.iter().copied());
        fill(&store, "follows", followed.map(|author| edge(*reader, author, "pull"))).await?;
    }
    let all: Vec<_> = stars.iter().chain(&others).copied().collect();
    fill(&store, "posts", (0..all.len() * 10).map(|at| written(ObjectId::new(), all[at % all.len()]))).await?;
    let (store, network) = settled(folder, (store, network)).await?;
    let of = |ids: &[ObjectId]| ids.iter().map(|id| Id::from(*id)).collect::<Vec<_>>();
    let (stars, others, readers) = (of(&stars), of(&others), of(&readers));
    // Everybody looks once, so that the inbox has whom it is to have, with the posts that are there.
    for reader in &readers {
        network.feed(*reader, &PageRequest::first(20)).await?;
    }
    let (star, other) = (post(&network, &stars, 20).await?, post(&network, &others, 100).await?);
    let cpu = sheafdb_bench::cpu_fine();
    for reader in &readers {
        network.feed(*reader, &PageRequest::first(20)).await?;
    }
    // Processor time: the flushes of a post's few writes would hide the rest.
    let (star, other) = (star.1, other.1);
    let page = sheafdb_bench::cpu_fine().saturating_sub(cpu) / READERS as u32;
    // Stars and others post alike, so that a post is a star's in one of so many cases.
    let mean = (star * STARS as u32 + other * OTHERS as u32) / (STARS + OTHERS) as u32;
    let totals: Vec<_> = [1, 10, 1_000, 10_000].iter().map(|pages| format!("{:.1?}", mean + page * *pages)).collect();
    println!("| {assignment:?} | {star:.1?} | {other:.1?} | {page:.1?} | {} |", totals.join(" | "));
    store.engine().ok_or("an embedded store")?.clone().close()?;
    Ok(())
}
