//! Users who leave for good, and what moderators take down.

#![allow(clippy::unwrap_used, reason = "a test may end at what it did not expect")]

mod common;

use common::{KEEPINGS, feed, network, post, settle, small, users};
use social::{Access, Assignment, Error, NewFile, PageRequest, Settings};
use std::time::Duration;

#[tokio::test]
async fn a_user_who_leaves_leaves_nothing_and_no_count_errs() {
    for &keeping in KEEPINGS {
        let settings = Settings { departure_settles: Duration::ZERO, ..small(keeping, Assignment::PushAll) };
        let network = network(settings).await;
        let [ada, bob, eve, fay] = users(&network, ["ada", "bob", "eve", "fay"]).await;
        for (follower, followee) in [(ada, bob), (bob, ada), (eve, ada), (eve, bob)] {
            network.follow(follower, followee).await.unwrap();
        }
        network.ask_friend(ada, eve).await.unwrap();
        network.accept_friend(eve, ada).await.unwrap();
        network.ask_friend(ada, bob).await.unwrap();
        network.block(fay, ada).await.unwrap();
        network.mute(bob, ada).await.unwrap();
        for number in 0..4 {
            post(&network, ada, &format!("a{number}")).await;
        }
        let on = post(&network, bob, "b").await;
        network.like(ada, on).await.unwrap();
        let root = network.comment(ada, on, "root", None).await.unwrap();
        network.comment(eve, on, "reply", Some(root.id)).await.unwrap();
        network.comment(ada, on, "alone", None).await.unwrap();
        let talk = network.talk_to(ada, eve).await.unwrap();
        network.send(ada, talk, "bye").await.unwrap();
        let group = network.begin_group(ada, "us", &[bob, eve]).await.unwrap();
        let new = NewFile {
            name: "a".into(),
            content_type: "text/plain".into(),
            length: 2,
            sha256: None,
            access: Access::Public,
        };
        let upload = network.begin_upload(ada, &new).await.unwrap();
        network.append_upload(ada, upload.id, 0, b"hi").await.unwrap();
        let file = network.finish_upload(ada, upload.id).await.unwrap();
        network.log_operation(ada, "login", "").await.unwrap();
        settle(&network).await;
        assert_eq!(feed(&network, eve).await, ["b", "a3", "a2", "a1", "a0"]);

        network.leave_network(ada).await.unwrap();
        assert!(matches!(network.leave_network(ada).await, Err(Error::UnknownUser(_))));
        assert!(matches!(network.profile(ada).await, Err(Error::UnknownUser(_))));
        assert!(matches!(network.follow(bob, ada).await, Err(Error::UnknownUser(_))));
        assert!(matches!(network.like(ada, on).await, Err(Error::UnknownUser(_))));
        assert_eq!(network.user_by_name("ada").await.unwrap(), None);
        network.add_user("ada").await.unwrap();
        // One step at a time, as if each were interrupted after the last.
        while network.work(1).await.unwrap().steps > 0 {}

        let all = PageRequest::first(100);
        assert_eq!(feed(&network, eve).await, ["b"]);
        for (user, counts) in [(bob, (0, 1, 0, 1)), (eve, (1, 0, 0, 0)), (fay, (0, 0, 0, 0))] {
            let page = network.profile(user).await.unwrap();
            let found = (page.following_count, page.follower_count, page.friend_count, page.post_count);
            assert_eq!(found, counts);
        }
        assert_eq!(network.incoming_requests(bob, &all).await.unwrap().items, []);
        assert_eq!(network.blocks(fay, &all).await.unwrap().items, []);
        assert_eq!(network.mutes(bob, &all).await.unwrap().items, []);
        let shown = network.read_post(bob, on).await.unwrap();
        assert_eq!((shown.like_count, shown.comment_count), (0, 2));
        let said: Vec<_> = network.latest_comments(bob, on).await.unwrap();
        let said: Vec<_> = said.iter().map(|comment| (comment.text.as_str(), comment.author.id)).collect();
        assert_eq!(said, [("reply", eve), ("", ada)]);
        assert!(network.latest_comments(bob, on).await.unwrap()[1].author.username.starts_with("left "));
        assert_eq!(network.posts_of(eve, ada, &all).await.unwrap().items, []);
        assert!(network.file(bob, file.id).await.is_err());
        assert_eq!(network.operations(ada, &all).await.unwrap().items, []);
        assert_eq!(network.notifications(ada, &all).await.unwrap().items, []);
        assert_eq!(network.conversation(bob, group).await.unwrap().members.len(), 2);
        // What was said to others stays with them.
        assert_eq!(network.messages(eve, talk, &all).await.unwrap().items[0].text, "bye");
    }
}

#[tokio::test]
async fn what_a_moderator_hides_is_gone_for_everybody_and_comes_back_as_it_was() {
    for &keeping in KEEPINGS {
        let network = network(Settings::new(keeping)).await;
        let [ada, bob] = users(&network, ["ada", "bob"]).await;
        network.follow(bob, ada).await.unwrap();
        let (kept, rude) = (post(&network, ada, "kept").await, post(&network, ada, "rude").await);
        network.like(bob, rude).await.unwrap();
        settle(&network).await;
        assert!(network.hide_post("mod", rude, "rude").await.unwrap());
        assert!(!network.hide_post("mod", rude, "rude").await.unwrap(), "once is enough");
        assert_eq!(feed(&network, bob).await, ["kept"]);
        for reader in [ada, bob] {
            assert!(matches!(network.read_post(reader, rude).await, Err(Error::UnknownPost(_))));
        }
        assert_eq!(network.profile(ada).await.unwrap().post_count, 1);
        assert!(network.restore_post("mod", rude).await.unwrap());
        assert_eq!(feed(&network, bob).await, ["rude", "kept"]);
        assert_eq!(network.profile(ada).await.unwrap().post_count, 2);
        assert_eq!(network.read_post(bob, rude).await.unwrap().like_count, 1);
        let comment = network.comment(bob, kept, "rude too", None).await.unwrap();
        network.comment(ada, kept, "tut", Some(comment.id)).await.unwrap();
        assert_eq!(network.remove_comment("mod", comment.id, "rude").await.unwrap(), 2);
        assert_eq!(network.read_post(bob, kept).await.unwrap().comment_count, 0);
        network.delete_post(ada, rude).await.unwrap();
        assert!(matches!(network.restore_post("mod", rude).await, Err(Error::UnknownPost(_))));
        let told = network.operations(ada, &PageRequest::default()).await.unwrap().items;
        let told: Vec<_> = told.iter().map(|one| one.action.as_str()).collect();
        assert_eq!(told, ["postRestored", "postHidden"]);
        let told = network.operations(bob, &PageRequest::default()).await.unwrap().items;
        assert!(told[0].detail.ends_with("by mod: rude"), "{}", told[0].detail);
    }
}
