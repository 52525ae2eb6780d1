//! Likes, comments, notifications and the log of operations: exact under double clicks and races.

#![allow(clippy::unwrap_used, reason = "a test may end at what it did not expect")]

mod common;

use common::{KEEPINGS, network, post, users};
use social::{Error, Event, Keeping, PageRequest, PostChange, Settings};
use tokio::task::JoinSet;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn double_clicks_like_once_and_the_count_never_errs() {
    for &keeping in KEEPINGS {
        let network = network(Settings::new(keeping)).await;
        let ids = users(&network, ["a", "b", "c", "d"]).await;
        let liked = post(&network, ids[0], "like me").await;
        let mut clicks = JoinSet::new();
        for click in 0..40_usize {
            let (network, user) = (network.clone(), ids[click % 4]);
            clicks.spawn(async move {
                match click % 5 {
                    4 => network.unlike(user, liked).await.unwrap(),
                    _ => network.like(user, liked).await.unwrap(),
                }
            });
        }
        clicks.join_all().await;
        let likers = network.likers(ids[0], liked, &PageRequest::default()).await.unwrap().items.len() as i64;
        assert_eq!(network.read_post(ids[0], liked).await.unwrap().like_count, likers, "{keeping:?}");
        for user in ids {
            network.unlike(user, liked).await.unwrap();
            network.unlike(user, liked).await.unwrap();
        }
        assert_eq!(network.read_post(ids[0], liked).await.unwrap().like_count, 0);
    }
}

#[tokio::test]
async fn the_latest_ten_comments_stand_on_the_post() {
    for &keeping in KEEPINGS {
        let network = network(Settings::new(keeping)).await;
        let [ada, bob] = users(&network, ["ada", "bob"]).await;
        let on = post(&network, ada, "say something").await;
        let mut ids = Vec::new();
        for number in 0..13 {
            ids.push(network.comment(bob, on, &format!("c{number}"), None).await.unwrap().id);
        }
        let latest = async || -> Vec<String> {
            let latest = network.latest_comments(ada, on).await.unwrap();
            latest.into_iter().map(|comment| comment.text).collect()
        };
        let expected = |from: usize| (from..13).rev().map(|number| format!("c{number}")).collect::<Vec<_>>();
        assert_eq!(latest().await, expected(3), "{keeping:?}");
        network.delete_comment(ada, ids[12]).await.unwrap();
        assert_eq!(latest().await, expected(2)[1..], "the next one takes its place");
        assert_eq!(network.read_post(ada, on).await.unwrap().comment_count, 12);
    }
}

#[tokio::test]
async fn threads_nest_five_deep_and_go_with_their_root() {
    for &keeping in KEEPINGS {
        let network = network(Settings::new(keeping)).await;
        let [ada, bob, eve] = users(&network, ["ada", "bob", "eve"]).await;
        let on = post(&network, ada, "say something").await;
        let root = network.comment(bob, on, "root", None).await.unwrap();
        let mut parent = root.id;
        for depth in 1..=5 {
            let reply = network.comment(eve, on, &format!("depth {depth}"), Some(parent)).await.unwrap();
            assert_eq!(reply.depth, depth);
            parent = reply.id;
        }
        assert!(matches!(network.comment(bob, on, "deeper", Some(parent)).await, Err(Error::TooDeep { max: 5 })));
        network.comment(eve, on, "another", Some(root.id)).await.unwrap();
        let replies = network.comments(ada, on, Some(root.id), &PageRequest::default()).await.unwrap().items;
        assert_eq!(replies.iter().map(|reply| reply.text.as_str()).collect::<Vec<_>>(), ["another", "depth 1"]);
        let roots = network.comments(ada, on, None, &PageRequest::default()).await.unwrap().items;
        assert_eq!((roots.len(), roots[0].reply_count), (1, 2));
        assert!(matches!(network.delete_comment(eve, root.id).await, Err(Error::NotAllowed(_))));
        assert_eq!(network.delete_comment(bob, root.id).await.unwrap(), 7);
        assert_eq!(network.read_post(ada, on).await.unwrap().comment_count, 0);
        assert!(matches!(network.comment(bob, on, "late", Some(root.id)).await, Err(Error::UnknownComment(_))));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn replies_and_the_deletion_of_their_thread_leave_no_orphan() {
    for &keeping in KEEPINGS {
        let network = network(Settings::new(keeping)).await;
        let [ada, bob] = users(&network, ["ada", "bob"]).await;
        let on = post(&network, ada, "say something").await;
        for _ in 0..6 {
            let root = network.comment(bob, on, "root", None).await.unwrap().id;
            let mut race = JoinSet::new();
            for _ in 0..6 {
                let network = network.clone();
                race.spawn(async move {
                    let reply = network.comment(bob, on, "reply", Some(root)).await?;
                    network.comment(ada, on, "reply to it", Some(reply.id)).await.map(|_| ())
                });
            }
            let deleting = network.clone();
            race.spawn(async move { deleting.delete_comment(ada, root).await.map(|_| ()) });
            for done in race.join_all().await {
                assert!(matches!(done, Ok(()) | Err(Error::UnknownComment(_))), "{done:?}");
            }
            assert!(network.comments(ada, on, Some(root), &PageRequest::default()).await.unwrap().items.is_empty());
            assert_eq!(network.read_post(ada, on).await.unwrap().comment_count, 0, "{keeping:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn edits_at_once_are_all_in_the_history_and_the_history_is_bounded() {
    for &keeping in KEEPINGS {
        let network = network(Settings::new(keeping)).await;
        let [ada, bob] = users(&network, ["ada", "bob"]).await;
        let edited = post(&network, ada, "v1").await;
        let mut edits = JoinSet::new();
        for number in 0..8 {
            let network = network.clone();
            edits.spawn(async move {
                let change = PostChange { content: Some(format!("edit {number}")), ..PostChange::default() };
                network.edit_post(ada, edited, &change).await.unwrap();
            });
        }
        edits.join_all().await;
        assert_eq!(network.post_history(bob, edited).await.unwrap().len(), 8);
        let change =
            |version| PostChange { content: Some("mine".into()), version: Some(version), ..PostChange::default() };
        assert!(matches!(network.edit_post(ada, edited, &change(3)).await, Err(Error::Changed)));
        assert_eq!(network.edit_post(ada, edited, &change(9)).await.unwrap().version, 10);
        assert!(matches!(network.edit_post(bob, edited, &change(10)).await, Err(Error::NotAllowed(_))));
        for version in 10..16 {
            network.edit_post(ada, edited, &change(version)).await.unwrap();
        }
        assert_eq!(network.post_history(bob, edited).await.unwrap().len(), 10);
    }
}

#[tokio::test]
async fn what_happens_to_a_user_is_noted_once_and_bounded() {
    for &keeping in KEEPINGS {
        let network = network(Settings { notifications: 20, ..Settings::new(keeping) }).await;
        let [ada, bob, eve] = users(&network, ["ada", "bob", "eve"]).await;
        let on = post(&network, ada, "hello").await;
        network.mute(ada, eve).await.unwrap();
        network.follow(bob, ada).await.unwrap();
        for _ in 0..2 {
            network.like(bob, on).await.unwrap();
            network.unlike(bob, on).await.unwrap();
        }
        network.like(ada, on).await.unwrap();
        network.like(eve, on).await.unwrap();
        let comment = network.comment(bob, on, "hi", None).await.unwrap();
        network.comment(ada, on, "hi you", Some(comment.id)).await.unwrap();
        let events = async |user| -> Vec<Event> {
            let found = network.notifications(user, &PageRequest::first(100)).await.unwrap();
            found.items.into_iter().map(|note| note.event).collect()
        };
        assert_eq!(events(ada).await, [Event::Comment, Event::Like, Event::Follow]);
        assert_eq!(events(bob).await, [Event::Reply]);
        let newest = network.notifications(ada, &PageRequest::first(1)).await.unwrap().items[0].id;
        assert_eq!(network.unread_notifications(ada).await.unwrap(), 3);
        assert_eq!(network.read_notifications(ada, newest).await.unwrap(), 3);
        assert_eq!(network.unread_notifications(ada).await.unwrap(), 0);
        for number in 0..60 {
            network.comment(bob, on, &format!("c{number}"), None).await.unwrap();
        }
        assert_eq!(events(ada).await.len(), 20, "the oldest are dropped");
    }
}

#[tokio::test]
async fn the_log_of_operations_shows_the_latest_ten() {
    let network = network(Settings::new(Keeping::Service)).await;
    let [ada, bob] = users(&network, ["ada", "bob"]).await;
    for number in 0..30 {
        network.log_operation(if number % 3 == 0 { bob } else { ada }, "login", &number.to_string()).await.unwrap();
    }
    let latest = network.operations(bob, &PageRequest::first(5)).await.unwrap();
    let details: Vec<_> = latest.items.iter().map(|one| one.detail.as_str()).collect();
    assert_eq!(details, ["27", "24", "21", "18", "15"]);
    assert!(latest.next.is_some());
}
