//! A call that is repeated with its key does its thing once, whatever happens at the same time.

#![allow(clippy::unwrap_used, reason = "a test may end at what it did not expect")]

mod common;

use common::{KEEPINGS, feed, network, post, settle, users};
use social::{CHUNK_ITEMS, Error, Keeping, NewPost, PageRequest, Settings};
use std::collections::HashSet;
use tokio::task::JoinSet;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_several_calls_with_one_key_one_posts_comments_and_begins() {
    for &keeping in KEEPINGS {
        let network = network(Settings::new(keeping)).await;
        let [ada, bob] = users(&network, ["ada", "bob"]).await;
        network.follow(bob, ada).await.unwrap();
        let on = post(&network, ada, "first").await;
        let mut calls = JoinSet::new();
        for _ in 0..6 {
            let network = network.clone();
            calls.spawn(async move {
                let post = network.post_once(ada, &NewPost::text("second"), "key").await.unwrap();
                let comment = network.comment_once(ada, on, "hi", None, "key2").await.unwrap();
                let group = network.begin_group_once(ada, "us", &[bob], "key3").await.unwrap();
                [post, comment.id, group]
            });
        }
        let made: HashSet<_> = calls.join_all().await.into_iter().collect();
        assert_eq!(made.len(), 1, "{made:?}");
        settle(&network).await;
        assert_eq!(feed(&network, bob).await, ["second", "first"]);
        assert_eq!(network.read_post(bob, on).await.unwrap().comment_count, 1);
        assert_eq!(network.conversations(bob, &PageRequest::default()).await.unwrap().items.len(), 1);
        // The key of one user is not that of another.
        network.post_once(bob, &NewPost::text("third"), "key").await.unwrap();
        assert_eq!(network.profile(bob).await.unwrap().post_count, 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn messages_that_are_sent_again_at_once_and_later_are_there_once() {
    let network = network(Settings::new(Keeping::Service)).await;
    let [ada, bob] = users(&network, ["ada", "bob"]).await;
    let talk = network.talk_to(ada, bob).await.unwrap();
    let mut calls = JoinSet::new();
    // Three senders send the same seventy messages: chunks fill up and follow while a message is on its way twice.
    for sender in 0..3 {
        let network = network.clone();
        calls.spawn(async move {
            let mut numbers = Vec::new();
            for message in 0..70 {
                let message = if sender == 1 { 69 - message } else { message };
                numbers.push((message, network.send_once(ada, talk, "hi", &format!("m{message}")).await.unwrap()));
            }
            numbers
        });
    }
    let numbers: HashSet<(i32, i64)> = calls.join_all().await.into_iter().flatten().collect();
    assert_eq!(numbers.len(), 70, "each key has one number");
    assert_eq!(numbers.iter().map(|(_, number)| *number).collect::<HashSet<_>>(), (1..=70).collect());
    assert_eq!(network.conversation(bob, talk).await.unwrap().unread, 70);
    assert_eq!(network.send_once(bob, talk, "hi", "m0").await.unwrap(), 71, "the key of another is another");
    assert!(matches!(network.send_once(ada, talk, "hi", "").await, Err(Error::Invalid(_))));
}

#[tokio::test]
async fn old_messages_end_and_numbers_go_on() {
    let keep = Some(std::time::Duration::ZERO);
    let network = network(Settings { keep_messages: keep, ..Settings::new(Keeping::Service) }).await;
    let [ada, bob] = users(&network, ["ada", "bob"]).await;
    let talk = network.talk_to(ada, bob).await.unwrap();
    let last = CHUNK_ITEMS * 2 + 3;
    for _ in 0..last {
        network.send(ada, talk, "hi").await.unwrap();
    }
    common::expire(&network);
    let left = network.messages(bob, talk, &PageRequest::first(100)).await.unwrap();
    let numbers: Vec<_> = left.items.iter().map(|message| message.number).collect();
    assert_eq!(numbers, (CHUNK_ITEMS * 2 + 1..=last).rev().collect::<Vec<_>>(), "what was full and is old is gone");
    assert_eq!(left.next, None);
    assert!(matches!(network.edit_message(ada, talk, 1, "?").await, Err(Error::UnknownMessage(1))));
    assert_eq!(network.send(bob, talk, "hi").await.unwrap(), last + 1);
    assert_eq!(network.conversation(ada, talk).await.unwrap().unread, 1);
}
