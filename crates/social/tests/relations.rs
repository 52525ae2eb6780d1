//! Relations under races: one edge, one request, one friendship for each pair, and counts that agree with the lists.

#![allow(clippy::unwrap_used, reason = "a test may end at what it did not expect")]

mod common;

use common::{KEEPINGS, network, users};
use social::{Circle, Error, Id, Network, PageRequest, Settings};
use std::time::Duration;
use tokio::task::JoinSet;

/// Lists and counts of a user, which must agree.
async fn agree(network: &Network, user: Id) -> (i64, i64, i64) {
    let all = PageRequest::first(200);
    let profile = network.profile(user).await.unwrap();
    assert_eq!(network.followers(user, &all).await.unwrap().items.len() as i64, profile.follower_count);
    assert_eq!(network.following(user, &all).await.unwrap().items.len() as i64, profile.following_count);
    assert_eq!(network.friends(user, &all).await.unwrap().items.len() as i64, profile.friend_count);
    (profile.follower_count, profile.following_count, profile.friend_count)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn following_twice_at_once_is_one_follow() {
    for &keeping in KEEPINGS {
        let network = network(Settings::new(keeping)).await;
        let [ada, bob] = users(&network, ["ada", "bob"]).await;
        let mut follows = JoinSet::new();
        for _ in 0..16 {
            let network = network.clone();
            follows.spawn(async move { network.follow(bob, ada).await.unwrap() });
        }
        let new = follows.join_all().await.into_iter().filter(|new| *new).count();
        assert_eq!(new, 1, "{keeping:?}");
        assert_eq!(agree(&network, ada).await, (1, 0, 0));
        assert_eq!(agree(&network, bob).await, (0, 1, 0));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn counts_agree_after_follows_unfollows_and_blocks_at_once() {
    for &keeping in KEEPINGS {
        let network = network(Settings::new(keeping)).await;
        let ids = users(&network, ["a", "b", "c", "d"]).await;
        let mut work = JoinSet::new();
        for number in 0..8_usize {
            let network = network.clone();
            work.spawn(async move {
                for step in 0..12_usize {
                    let (one, other) = (ids[(number + step) % 4], ids[(number + step * 3 + 1) % 4]);
                    if one == other {
                        continue;
                    }
                    let done = match (number * 5 + step) % 6 {
                        0 | 1 => network.follow(one, other).await.map(|_| ()),
                        2 => network.unfollow(one, other).await.map(|_| ()),
                        3 => network.block(one, other).await.map(|_| ()),
                        4 => network.unblock(one, other).await.map(|_| ()),
                        _ => match network.ask_friend(one, other).await {
                            Ok(()) => network.accept_friend(other, one).await,
                            refused => refused,
                        },
                    };
                    match done {
                        Ok(())
                        | Err(Error::Blocked | Error::RequestPending { .. } | Error::AlreadyFriends)
                        | Err(Error::NoPendingRequest) => {}
                        Err(other) => panic!("{keeping:?}: {other}"),
                    }
                }
            });
        }
        while let Some(done) = work.join_next().await {
            done.unwrap();
        }
        for id in ids {
            agree(&network, id).await;
            for other in ids.into_iter().filter(|other| *other != id) {
                let standing = network.standings(id, &[other]).await.unwrap()[&other];
                if standing.blocked {
                    assert!(!standing.follows && !standing.followed_by && !standing.friends, "{standing:?}");
                    assert!(matches!(network.follow(id, other).await, Err(Error::Blocked)));
                    assert!(matches!(network.ask_friend(id, other).await, Err(Error::Blocked)));
                }
                let back = network.standings(other, &[id]).await.unwrap()[&id];
                assert_eq!(standing.friends, back.friends, "a friendship is seen from both sides");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_who_ask_each_other_at_once_leave_one_request() {
    for &keeping in KEEPINGS {
        let network = network(Settings::new(keeping)).await;
        let [ada, bob] = users(&network, ["ada", "bob"]).await;
        let mut asks = JoinSet::new();
        for number in 0..16 {
            let network = network.clone();
            let (from, to) = if number % 2 == 0 { (ada, bob) } else { (bob, ada) };
            asks.spawn(async move { network.ask_friend(from, to).await });
        }
        let outcomes = asks.join_all().await;
        assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 1);
        let refused = outcomes.into_iter().filter_map(Result::err);
        assert!(refused.into_iter().all(|error| matches!(error, Error::RequestPending { .. })));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_accept_decline_and_withdraw_at_once_one_wins() {
    for &keeping in KEEPINGS {
        let network = network(Settings::new(keeping)).await;
        let [ada, bob] = users(&network, ["ada", "bob"]).await;
        for round in 0..8 {
            network.ask_friend(ada, bob).await.unwrap();
            let (one, two, three) = (network.clone(), network.clone(), network.clone());
            let accept = tokio::spawn(async move { one.accept_friend(bob, ada).await });
            let decline = tokio::spawn(async move { two.decline_friend(bob, ada).await });
            let withdraw = tokio::spawn(async move { three.withdraw_friend(ada, bob).await });
            let done = [accept.await.unwrap(), decline.await.unwrap(), withdraw.await.unwrap()];
            assert_eq!(done.iter().filter(|done| done.is_ok()).count(), 1, "round {round}: {done:?}");
            let friends = i64::from(done[0].is_ok());
            assert_eq!(agree(&network, ada).await.2, friends);
            assert_eq!(agree(&network, bob).await.2, friends);
            assert_eq!(network.unfriend(bob, ada).await.unwrap(), friends == 1);
            assert_eq!(agree(&network, ada).await.2, 0);
        }
    }
}

#[tokio::test]
async fn an_expired_request_is_void_and_may_be_asked_again() {
    for &keeping in KEEPINGS {
        let settings = Settings { request_expires_after: Duration::from_millis(700), ..Settings::new(keeping) };
        let network = network(settings).await;
        let [ada, bob] = users(&network, ["ada", "bob"]).await;
        network.ask_friend(ada, bob).await.unwrap();
        tokio::time::sleep(Duration::from_millis(900)).await;
        assert!(matches!(network.accept_friend(bob, ada).await, Err(Error::NoPendingRequest)));
        assert!(network.incoming_requests(bob, &PageRequest::default()).await.unwrap().items.is_empty());
        network.ask_friend(bob, ada).await.unwrap();
        assert_eq!(network.incoming_requests(ada, &PageRequest::default()).await.unwrap().items.len(), 1);
        tokio::time::sleep(Duration::from_millis(900)).await;
        assert_eq!(network.expire_requests().await.unwrap(), 1);
    }
}

#[tokio::test]
async fn a_block_ends_everything_and_its_end_brings_nothing_back() {
    for &keeping in KEEPINGS {
        let network = network(Settings::new(keeping)).await;
        let [ada, bob] = users(&network, ["ada", "bob"]).await;
        network.follow(ada, bob).await.unwrap();
        network.follow(bob, ada).await.unwrap();
        network.ask_friend(ada, bob).await.unwrap();
        network.accept_friend(bob, ada).await.unwrap();
        assert_eq!(agree(&network, ada).await, (1, 1, 1));
        assert!(network.block(ada, bob).await.unwrap());
        assert!(!network.block(ada, bob).await.unwrap());
        assert_eq!(agree(&network, ada).await, (0, 0, 0));
        assert_eq!(agree(&network, bob).await, (0, 0, 0));
        assert!(network.block(bob, ada).await.unwrap());
        assert!(network.unblock(ada, bob).await.unwrap());
        assert!(matches!(network.follow(ada, bob).await, Err(Error::Blocked)), "the other block stands");
        assert!(network.unblock(bob, ada).await.unwrap());
        assert!(!network.unblock(bob, ada).await.unwrap());
        assert_eq!(agree(&network, ada).await, (0, 0, 0));
        assert!(network.follow(ada, bob).await.unwrap());
        network.ask_friend(bob, ada).await.unwrap();
    }
}

#[tokio::test]
async fn lists_page_by_key_and_show_todays_names() {
    for &keeping in KEEPINGS {
        let network = network(Settings::new(keeping)).await;
        let [ada] = users(&network, ["ada"]).await;
        for number in 0..7 {
            let fan = network.add_user(&format!("fan {number}")).await.unwrap();
            network.follow(fan, ada).await.unwrap();
            if number == 0 {
                let name = social::ProfileChange { username: Some("first fan".into()), ..Default::default() };
                network.change_profile(fan, &name).await.unwrap();
            }
        }
        let (mut names, mut page) = (Vec::new(), PageRequest::first(3));
        loop {
            let found = network.followers(ada, &page).await.unwrap();
            names.extend(found.items.into_iter().map(|fan| fan.user.username));
            match found.next {
                Some(next) => page.after = Some(next),
                None => break,
            }
        }
        assert_eq!(names, ["fan 6", "fan 5", "fan 4", "fan 3", "fan 2", "fan 1", "first fan"]);
    }
}

#[tokio::test]
async fn common_friends_and_friends_of_friends() {
    for &keeping in KEEPINGS {
        let network = network(Settings::new(keeping)).await;
        let [a, b, c, d, e] = users(&network, ["a", "b", "c", "d", "e"]).await;
        for (one, other) in [(a, b), (a, c), (b, d), (c, d), (c, e)] {
            network.ask_friend(one, other).await.unwrap();
            network.accept_friend(other, one).await.unwrap();
        }
        let mut common = network.mutual(Circle::Friends, a, d).await.unwrap();
        common.sort_unstable();
        assert_eq!(common, [b, c]);
        let counts = network.mutual_counts(Circle::Friends, a, &[b, d, e, Id::new()]).await.unwrap();
        assert_eq!((counts[&b], counts[&d], counts[&e], counts.len()), (0, 2, 1, 4));
        let suggested = network.friends_of_friends(a, 10).await.unwrap();
        let suggested: Vec<_> = suggested.iter().map(|one| (one.user.id, one.common)).collect();
        assert_eq!(suggested, [(d, 2), (e, 1)]);
        network.block(e, a).await.unwrap();
        assert_eq!(
            network.friends_of_friends(a, 10).await.unwrap().len(),
            1,
            "not somebody with whom there is a block"
        );
    }
}

#[tokio::test]
async fn common_follows_are_read_from_the_index_alone() {
    let network = network(Settings::new(KEEPINGS[0])).await;
    let Some(engine) = network.store().engine() else { return };
    let [a, b] = users(&network, ["a", "b"]).await;
    for number in 0..20 {
        let star = network.add_user(&format!("star {number}")).await.unwrap();
        for user in [a, b].into_iter().take(1 + number % 2) {
            network.follow(user, star).await.unwrap();
        }
    }
    assert_eq!(network.mutual(Circle::Following, a, b).await.unwrap().len(), 10);
    let ids = network.following(b, &PageRequest::default()).await.unwrap().items;
    let ids: Vec<_> = ids.into_iter().map(|one| bson::oid::ObjectId::from(one.user.id)).collect();
    let one = bson::doc! { "followerId": bson::oid::ObjectId::from(a), "status": "active" };
    let mut some = one.clone();
    some.insert("followeeId", bson::doc! { "$in": ids });
    // What is asked of one user, and of whom the other follows.
    for filter in [one, some] {
        let namespace = engine::Namespace::new(network.database(), "follows").unwrap();
        let mut find = engine::operation::Find::new(namespace);
        find.query.filter = bson::RawDocumentBuf::try_from(&filter).unwrap();
        find.projection = Some(bson::rawdoc! { "_id": 0, "followeeId": 1 });
        let explain = engine::operation::Explain::Find(Box::new(find));
        let context = engine::Context::default();
        let shown = engine.explain(&context, &explain, engine::plan::Verbosity::ExecutionStats).unwrap();
        let stats = shown.get_document("executionStats").unwrap();
        assert!(stats.get_i32("nReturned").unwrap() > 0);
        assert_eq!(stats.get_i32("totalDocsExamined").unwrap(), 0, "{filter}");
    }
}
