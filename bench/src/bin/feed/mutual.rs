//! Common follows of two users, and how many one has in common with each of a page of users.

use crate::{Outcome, edge, fill, network, percentiles, settings, settled};
use bson::oid::ObjectId;
use social::{Circle, Id};
use std::path::Path;

const FEW: usize = 5_000;
/// The users of a page.
const PAGE: usize = 20;

pub(crate) async fn run(folder: &Path, many: usize) -> Outcome<()> {
    let (store, network) = network(folder, settings()).await?;
    let authors: Vec<_> = (0..many * 2).map(|_| ObjectId::new()).collect();
    // A user of so many follows, from a place on: two have in common what overlaps.
    let mut users = Vec::new();
    for (name, from, follows) in
        [("few", 0, FEW), ("few too", FEW / 2, FEW), ("many", 0, many), ("many too", many / 2, many)]
    {
        let id = network.add_user(name).await?;
        fill(&store, "follows", authors[from..from + follows].iter().map(|author| edge(id.into(), *author, "pull")))
            .await?;
        users.push(id);
    }
    let mut page: Vec<Id> = Vec::new();
    for at in 0..PAGE {
        let id = network.add_user(&format!("on the page {at}")).await?;
        let from = at * FEW / PAGE;
        fill(&store, "follows", authors[from..from + FEW].iter().map(|author| edge(id.into(), *author, "pull")))
            .await?;
        page.push(id);
    }
    let (store, network) = settled(folder, (store, network)).await?;
    println!("| common follows | found | p50 | p99 | processor |\n|---|---|---|---|---|");
    let [few, few_too, many_one, many_too] = users[..] else { return Err("four users".into()) };
    let pairs = [(few, few_too, FEW, FEW), (few, many_one, FEW, many), (many_one, many_too, many, many)];
    for index in ["", ", without the index that holds all of it"] {
        if !index.is_empty() {
            store.collection("social", "follows").drop_index("followerId_1_status_1_followeeId_1").await?;
        }
        for (one, other, own, theirs) in pairs {
            let mut found = 0;
            let taken = percentiles(1, 11, async |_| {
                found = network.mutual(Circle::Following, one, other).await?.len();
                Ok(())
            })
            .await?;
            println!("| {own} and {theirs}{index} | {found} | {taken} |");
        }
        for (user, follows) in [(few, FEW), (many_one, many)] {
            let mut found = 0;
            let taken = percentiles(1, 11, async |_| {
                found = network.mutual_counts(Circle::Following, user, &page).await?.values().sum();
                Ok(())
            })
            .await?;
            println!("| {follows}, with each of {PAGE} of {FEW}{index} | {found} | {taken} |");
        }
    }
    Ok(())
}
