//! Live updates: who is told what, whoever wrote it, and what comes back to who was away.

#![allow(clippy::unwrap_used, reason = "a test may end at what it did not expect")]

mod common;

use common::{KEEPINGS, beside, network, next_change, post, settle, users};
use social::{Change, Error, Event, NewPost, Settings, Update, Updates, Visibility, WAITING_UPDATES};

/// Where a listener is.
async fn place(updates: &mut Updates) -> String {
    let Update { place, change } = updates.next().await;
    assert_eq!(change, None);
    place
}

#[tokio::test]
async fn a_listener_hears_what_another_process_writes() {
    for &keeping in KEEPINGS {
        let here = network(Settings::new(keeping)).await;
        let there = beside(&here);
        let [ada, bob, eve] = users(&here, ["ada", "bob", "eve"]).await;
        let mut heard = here.updates(ada, None).await.unwrap();
        let mut stranger = here.updates(eve, None).await.unwrap();
        place(&mut heard).await;
        there.follow(bob, ada).await.unwrap();
        let told = next_change(&mut heard).await;
        assert!(matches!(told, Change::Notification { event: Event::Follow, from, .. } if from == bob), "{told:?}");
        let mut reader = here.updates(bob, None).await.unwrap();
        let id = post(&there, ada, "hello").await;
        settle(&there).await;
        assert_eq!(next_change(&mut reader).await, Change::Post { id, author: ada });
        let talk = there.talk_to(ada, bob).await.unwrap();
        there.send(ada, talk, "hi").await.unwrap();
        assert_eq!(next_change(&mut reader).await, Change::Message { conversation: talk, number: 1 });
        // What is not theirs is told to nobody: the next that the stranger hears is her own.
        let talk = there.talk_to(ada, eve).await.unwrap();
        there.send(ada, talk, "hi").await.unwrap();
        assert_eq!(next_change(&mut stranger).await, Change::Message { conversation: talk, number: 1 });
    }
}

#[tokio::test]
async fn a_post_is_told_to_followers_who_may_see_it() {
    for &keeping in KEEPINGS {
        let network = network(Settings::new(keeping)).await;
        let [ada, bob, eve, fay, gus] = users(&network, ["ada", "bob", "eve", "fay", "gus"]).await;
        for follower in [bob, eve, fay] {
            network.follow(follower, ada).await.unwrap();
        }
        network.ask_friend(bob, ada).await.unwrap();
        network.accept_friend(ada, bob).await.unwrap();
        network.mute(fay, ada).await.unwrap();
        let mut heard = Vec::new();
        for user in [bob, eve, fay] {
            heard.push(network.updates(user, None).await.unwrap());
        }
        let mut posts = Vec::new();
        for visibility in [Visibility::Private, Visibility::Friends, Visibility::Followers] {
            let new = NewPost { visibility, ..NewPost::text("hello") };
            posts.push(network.post(ada, &new).await.unwrap());
            settle(&network).await;
        }
        // The last thing that each is told.
        for user in [bob, eve, fay] {
            network.follow(gus, user).await.unwrap();
        }
        let mut told = Vec::new();
        for heard in &mut heard {
            let mut mine = Vec::new();
            while let Change::Post { id, .. } = next_change(heard).await {
                mine.push(posts.iter().position(|post| *post == id).unwrap());
            }
            told.push(mine);
        }
        assert_eq!(told, [vec![1, 2], vec![2], vec![]]);
    }
}

#[tokio::test]
async fn who_comes_back_is_told_what_was_missed_and_nothing_twice() {
    for &keeping in KEEPINGS {
        let network = network(Settings::new(keeping)).await;
        let [ada, bob] = users(&network, ["ada", "bob"]).await;
        let talk = network.talk_to(ada, bob).await.unwrap();
        let mut heard = network.updates(bob, None).await.unwrap();
        let begun = place(&mut heard).await;
        network.send(ada, talk, "one").await.unwrap();
        let first = heard.next().await;
        assert_eq!(first.change, Some(Change::Message { conversation: talk, number: 1 }));
        assert!(first.place > begun);
        drop(heard);
        for text in ["two", "three"] {
            network.send(ada, talk, text).await.unwrap();
        }
        let mut back = network.updates(bob, Some(&first.place)).await.unwrap();
        network.send(ada, talk, "four").await.unwrap();
        for number in [2, 3, 4] {
            assert_eq!(next_change(&mut back).await, Change::Message { conversation: talk, number });
        }
        let mut all = network.updates(bob, Some(&begun)).await.unwrap();
        for number in [1, 2, 3, 4] {
            assert_eq!(next_change(&mut all).await, Change::Message { conversation: talk, number });
        }
        let wrong = network.updates(bob, Some("no place")).await;
        assert!(matches!(wrong, Err(Error::InvalidCursor(_))));
    }
}

#[tokio::test]
async fn who_missed_too_much_is_told_so() {
    for &keeping in KEEPINGS {
        let network = network(Settings::new(keeping)).await;
        let [ada, bob, eve] = users(&network, ["ada", "bob", "eve"]).await;
        let talk = network.begin_group(ada, "us", &[bob, eve]).await.unwrap();
        // Who hears each message knows that it was told to the slow one, too.
        let mut quick = network.updates(eve, None).await.unwrap();
        let mut slow = network.updates(bob, None).await.unwrap();
        let begun = place(&mut slow).await;
        for number in 1..=WAITING_UPDATES as i64 + 5 {
            network.send(ada, talk, &number.to_string()).await.unwrap();
            assert_eq!(next_change(&mut quick).await, Change::Message { conversation: talk, number });
        }
        let mut back = network.updates(bob, Some(&begun)).await.unwrap();
        assert_eq!(next_change(&mut back).await, Change::Missed);
        // A listener that does not listen loses the newest, and hears of it.
        let mut found = Vec::new();
        while !found.contains(&Change::Missed) {
            found.push(next_change(&mut slow).await);
        }
        assert!(found.len() <= WAITING_UPDATES + 1);
        network.send(ada, talk, "after").await.unwrap();
        let last = Change::Message { conversation: talk, number: WAITING_UPDATES as i64 + 6 };
        while next_change(&mut back).await != last {}
    }
}
