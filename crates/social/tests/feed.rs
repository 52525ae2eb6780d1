//! From a post to its readers.

#![allow(clippy::unwrap_used, reason = "a test may end at what it did not expect")]

use social::Network;
use store::Store;

#[tokio::test(flavor = "multi_thread")]
async fn a_post_reaches_every_follower_once_however_often_it_is_pushed() {
    let network = Network::new(Store::in_memory().unwrap(), "social");
    network.ensure_indexes().await.unwrap();
    let author = network.add_user("ada").await.unwrap();
    let mut readers = Vec::new();
    for number in 0..700 {
        let reader = network.add_user(&format!("reader {number}")).await.unwrap();
        network.follow(reader, author).await.unwrap();
        network.follow(reader, author).await.unwrap();
        readers.push(reader);
    }
    let first = network.post(author, "first").await.unwrap();
    assert_eq!(first.readers, 700);
    assert_eq!(network.push(first.id).await.unwrap(), 700);
    network.post(author, "second").await.unwrap();
    for reader in [readers[0], readers[499], readers[500], readers[699]] {
        let feed = network.feed(reader, 20).await.unwrap();
        assert_eq!(feed.iter().map(|item| item.content.as_str()).collect::<Vec<_>>(), ["second", "first"]);
        assert_eq!(feed[0].author, "ada");
    }
    assert!(network.feed(author, 20).await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_is_taken_once() {
    let network = Network::new(Store::in_memory().unwrap(), "social");
    network.ensure_indexes().await.unwrap();
    network.add_user("ada").await.unwrap();
    assert!(network.add_user("ada").await.unwrap_err().is_duplicate_key());
}
