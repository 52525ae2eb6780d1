//! Conversations: strict order, no gaps, exact unread counts, whoever writes at once.

#![allow(clippy::unwrap_used, reason = "a test may end at what it did not expect")]

mod common;

use common::{KEEPINGS, network, users};
use social::{CHUNK_ITEMS, Change, Error, Keeping, PageRequest, Settings};
use std::collections::HashSet;
use tokio::task::JoinSet;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn messages_of_many_at_once_get_numbers_without_gaps_in_one_order() {
    let network = network(Settings::new(Keeping::Service)).await;
    let ids = users(&network, ["a", "b", "c", "d"]).await;
    let group = network.begin_group(ids[0], "all", &ids).await.unwrap();
    let mut sending = JoinSet::new();
    for (sender, id) in ids.into_iter().enumerate() {
        let network = network.clone();
        sending.spawn(async move {
            let mut numbers = Vec::new();
            for message in 0..40 {
                // Some are long, so that chunks are full by bytes too.
                let text = format!("{sender} {message} {}", "x".repeat(if message % 7 == 0 { 3_900 } else { 5 }));
                numbers.push(network.send(id, group, &text).await.unwrap());
            }
            numbers
        });
    }
    let mut numbers = HashSet::new();
    for own in sending.join_all().await {
        assert!(own.is_sorted(), "a sender's messages keep their order");
        numbers.extend(own);
    }
    assert_eq!(numbers, (1..=160).collect());
    let (mut seen, mut page) = (Vec::new(), PageRequest::first(17));
    loop {
        let found = network.messages(ids[1], group, &page).await.unwrap();
        seen.extend(found.items.iter().map(|message| message.number));
        match found.next {
            Some(next) => page.after = Some(next),
            None => break,
        }
    }
    assert_eq!(seen, (1..=160).rev().collect::<Vec<_>>());
}

#[tokio::test]
async fn unread_counts_are_exact() {
    for &keeping in KEEPINGS {
        let network = network(Settings::new(keeping)).await;
        let [ada, bob, eve] = users(&network, ["ada", "bob", "eve"]).await;
        let talk = network.talk_to(ada, bob).await.unwrap();
        assert_eq!(network.talk_to(bob, ada).await.unwrap(), talk, "one conversation for each pair");
        let unread = async |user| network.conversation(user, talk).await.unwrap().unread;
        for number in 1..=CHUNK_ITEMS + 5 {
            assert_eq!(network.send(ada, talk, "hi").await.unwrap(), number);
        }
        assert_eq!((unread(ada).await, unread(bob).await), (0, CHUNK_ITEMS + 5));
        network.read_messages(bob, talk, 10).await.unwrap();
        network.read_messages(bob, talk, 4).await.unwrap();
        assert_eq!(unread(bob).await, CHUNK_ITEMS - 5, "what was read stays read");
        network.read_messages(bob, talk, 1_000_000).await.unwrap();
        network.send(ada, talk, "more").await.unwrap();
        assert_eq!(unread(bob).await, 1, "nobody reads what is not there yet");
        assert!(matches!(network.send(eve, talk, "?").await, Err(Error::UnknownConversation(_))));
        let page = PageRequest::default();
        assert!(matches!(network.messages(eve, talk, &page).await, Err(Error::UnknownConversation(_))));
        network.block(bob, ada).await.unwrap();
        assert!(matches!(network.send(ada, talk, "?").await, Err(Error::Blocked)));
    }
}

#[tokio::test]
async fn a_new_member_sees_what_is_said_from_then_on() {
    let network = network(Settings::new(Keeping::Service)).await;
    let [ada, bob, eve] = users(&network, ["ada", "bob", "eve"]).await;
    let group = network.begin_group(ada, "us", &[bob]).await.unwrap();
    network.send(ada, group, "before").await.unwrap();
    assert!(network.add_member(bob, group, eve).await.unwrap());
    assert!(!network.add_member(bob, group, eve).await.unwrap());
    network.send(bob, group, "after").await.unwrap();
    let seen = network.messages(eve, group, &PageRequest::default()).await.unwrap();
    assert_eq!(seen.items.iter().map(|message| message.text.as_str()).collect::<Vec<_>>(), ["after"]);
    assert_eq!(network.conversation(eve, group).await.unwrap().unread, 1);
    network.leave(eve, group).await.unwrap();
    assert!(network.messages(eve, group, &PageRequest::default()).await.is_err());
}

#[tokio::test]
async fn edited_and_recalled_messages_keep_their_place() {
    let network = network(Settings::new(Keeping::Service)).await;
    let [ada, bob] = users(&network, ["ada", "bob"]).await;
    let talk = network.talk_to(ada, bob).await.unwrap();
    let mut heard = network.updates(bob, None).await.unwrap();
    for text in ["one", "two", "three"] {
        network.send(ada, talk, text).await.unwrap();
    }
    assert_eq!(common::next_change(&mut heard).await, Change::Message { conversation: talk, number: 1 });
    network.edit_message(ada, talk, 2, "zwei").await.unwrap();
    assert!(matches!(network.edit_message(bob, talk, 2, "deux").await, Err(Error::NotAllowed(_))));
    network.recall_message(ada, talk, 3).await.unwrap();
    assert!(matches!(network.edit_message(ada, talk, 3, "drei").await, Err(Error::UnknownMessage(3))));
    assert!(matches!(network.recall_message(ada, talk, 9).await, Err(Error::UnknownMessage(9))));
    assert_eq!(network.send(bob, talk, "four").await.unwrap(), 4);
    let seen = network.messages(bob, talk, &PageRequest::default()).await.unwrap().items;
    let said: Vec<_> = seen.iter().map(|message| (message.number, message.text.as_str(), message.recalled)).collect();
    assert_eq!(said, [(4, "four", false), (3, "", true), (2, "zwei", false), (1, "one", false)]);
}

#[tokio::test]
async fn conversations_are_listed_by_their_newest_message() {
    let network = network(Settings::new(Keeping::Service)).await;
    let [ada, bob, eve, fay] = users(&network, ["ada", "bob", "eve", "fay"]).await;
    let mut talks = Vec::new();
    for other in [bob, eve, fay] {
        let talk = network.talk_to(ada, other).await.unwrap();
        network.send(ada, talk, "hi").await.unwrap();
        talks.push(talk);
        tokio::time::sleep(std::time::Duration::from_millis(3)).await;
    }
    network.send(bob, talks[0], "hello").await.unwrap();
    let first = network.conversations(ada, &PageRequest::first(2)).await.unwrap();
    assert_eq!(first.items.iter().map(|one| one.id).collect::<Vec<_>>(), [talks[0], talks[2]]);
    assert_eq!(first.items[0].unread, 1);
    let rest = PageRequest { after: first.next, limit: 2 };
    let rest = network.conversations(ada, &rest).await.unwrap();
    assert_eq!(rest.items.iter().map(|one| one.id).collect::<Vec<_>>(), [talks[1]]);
    assert_eq!(rest.next, None);
}
