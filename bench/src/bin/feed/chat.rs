//! Conversations in a store of more and more messages: sending and reading must not feel how many there are.

use crate::{Outcome, fill, network, percentiles, settings, size};
use bson::{Bson, Document, doc};
use social::{CHUNK_ITEMS, Id, Network, PageRequest};
use std::path::Path;

/// The messages of one conversation of those that fill the store.
const LONG: usize = 30_000;

pub(crate) async fn run(folder: &Path, most: usize) -> Outcome<()> {
    let (store, network) = network(folder, settings()).await?;
    let (ada, bob) = (network.add_user("ada").await?, network.add_user("bob").await?);
    println!(
        "| messages | send p50 | p99 | processor | last 50 p50 | p99 | processor | bytes on disk a message, log and all |\n|---|---|---|---|---|---|---|---|"
    );
    let mut there = 0;
    for wanted in [0, 100_000, 1_000_000, most] {
        if wanted > 0 && wanted <= there {
            continue;
        }
        let mut talks = Vec::new();
        while there < wanted || talks.is_empty() {
            let talk = network.begin_group(ada, "all", &[bob]).await?;
            talks.push(talk);
            if wanted > there {
                let length = LONG.min(wanted - there);
                there += length;
                fill(&store, "messageChunks", chunks(talk, ada, length)).await?;
            }
        }
        row(folder, &network, (ada, bob), &talks, there).await?;
    }
    Ok(())
}

/// The full chunks of a conversation of so many messages, as sending would have left them.
fn chunks(talk: Id, sender: Id, messages: usize) -> impl Iterator<Item = Document> {
    (0..messages as i64 / CHUNK_ITEMS).map(move |chunk| {
        let message = |at: i64| {
            let text = format!("message {at} of a usual length, about this and that and a third thing");
            doc! { "s": Bson::from(sender), "t": text, "k": format!("{:032x}", (chunk << 32) + at), "at": bson::DateTime::now() }
        };
        let messages: Vec<_> = (0..CHUNK_ITEMS).map(message).collect();
        doc! {
            "_id": { "c": Bson::from(talk), "f": chunk * CHUNK_ITEMS + 1 }, "count": CHUNK_ITEMS, "bytes": 4_500_i64,
            "sealed": true, "messages": messages,
        }
    })
}

async fn row(folder: &Path, network: &Network, (ada, bob): (Id, Id), talks: &[Id], there: usize) -> Outcome<()> {
    let send = percentiles(20, 1_000, async |turn| {
        let talk = talks[turn * 7 % talks.len()];
        network
            .send_once(ada, talk, "a message of a usual length, about this and that", &format!("{there} {turn}"))
            .await?;
        Ok(())
    })
    .await?;
    let read = percentiles(20, 1_000, async |turn| {
        network.messages(bob, talks[turn * 7 % talks.len()], &PageRequest::first(50)).await?;
        Ok(())
    })
    .await?;
    let each = if there == 0 { 0 } else { size(folder) / there as u64 };
    println!("| {there} | {send} | {read} | {each} |");
    Ok(())
}
