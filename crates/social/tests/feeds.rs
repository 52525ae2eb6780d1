//! Feeds as text tables: a line is something that happens, or what a reader's whole feed says then.

#![allow(clippy::unwrap_used, reason = "a test may end at what it did not expect")]

mod common;

use common::{KEEPINGS, feed, network, post, settle, small};
use social::{Assignment, AuthorNames, Id, Network, NewPost, PostChange, ProfileChange, Settings, Visibility};
use std::collections::HashMap;

const ASSIGNMENTS: [Assignment; 4] =
    [Assignment::PushAll, Assignment::PullAll, Assignment::PullAbove, Assignment::PullBelow];

/// Plays a table: `who verb what`. `who: a b c` is the feed, newest first; `work` lets the background work; `join who`
/// looks at the feed so that the inbox is built.
async fn play(network: &Network, table: &str) {
    let mut users: HashMap<String, Id> = HashMap::new();
    let mut posts: HashMap<String, (Id, Id)> = HashMap::new();
    for line in table.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        if let Some(reader) = words[0].strip_suffix(':') {
            let reader = users[reader];
            assert_eq!(feed(network, reader).await, words[1..], "{:?}: {line}", network.settings());
            continue;
        }
        if words[0] == "work" {
            settle(network).await;
            continue;
        }
        for name in [words[0], words.get(2).copied().unwrap_or_default()] {
            if !name.is_empty() && name.chars().all(char::is_lowercase) && !users.contains_key(name) {
                users.insert(name.to_owned(), network.add_user(name).await.unwrap());
            }
        }
        let (who, what) = (users[words[0]], words.get(2).copied().unwrap_or_default());
        match words[1] {
            "follows" => drop(network.follow(who, users[what]).await.unwrap()),
            "unfollows" => drop(network.unfollow(who, users[what]).await.unwrap()),
            "blocks" => drop(network.block(who, users[what]).await.unwrap()),
            "unblocks" => drop(network.unblock(who, users[what]).await.unwrap()),
            "mutes" => drop(network.mute(who, users[what]).await.unwrap()),
            "unmutes" => drop(network.unmute(who, users[what]).await.unwrap()),
            "befriends" => {
                network.ask_friend(who, users[what]).await.unwrap();
                network.accept_friend(users[what], who).await.unwrap();
            }
            "joins" => drop(network.join(who).await.unwrap()),
            "posts" => drop(posts.insert(what.into(), (post(network, who, what).await, who))),
            "whispers" => {
                let quiet = NewPost { visibility: Visibility::Friends, ..NewPost::text(what) };
                posts.insert(what.into(), (network.post(who, &quiet).await.unwrap(), who));
            }
            "notes" => {
                let quiet = NewPost { visibility: Visibility::Private, ..NewPost::text(what) };
                posts.insert(what.into(), (network.post(who, &quiet).await.unwrap(), who));
            }
            "deletes" => network.delete_post(who, posts[what].0).await.unwrap(),
            "edits" => {
                let change = PostChange { content: Some(words[3].into()), ..PostChange::default() };
                network.edit_post(who, posts[what].0, &change).await.unwrap();
            }
            other => panic!("{other} is no verb of these tables"),
        }
    }
}

/// Plays a table with every way of keeping and of delivering.
async fn everywhere(table: &str) {
    for &keeping in KEEPINGS {
        for assignment in ASSIGNMENTS {
            let network = network(small(keeping, assignment)).await;
            play(&network, table).await;
        }
    }
}

#[tokio::test]
async fn old_posts_appear_at_their_own_time() {
    everywhere(
        "ada posts A1
         bob posts B1
         ada posts A2
         eve follows bob
         eve: B1
         eve follows ada
         eve: A2 B1 A1
         work
         eve joins
         bob posts B2
         work
         eve: B2 A2 B1 A1
         eve unfollows bob
         eve: A2 A1
         bob posts B3
         work
         eve follows bob
         eve: B3 B2 A2 B1 A1
         eve joins
         eve: B3 B2 A2 B1 A1",
    )
    .await;
}

#[tokio::test]
async fn a_full_inbox_goes_on_with_the_authors_posts() {
    let mut table = String::from("eve follows ada\neve follows bob\neve joins\n");
    let mut expected = Vec::new();
    for number in 0..30 {
        let author = if number % 3 == 0 { "ada" } else { "bob" };
        table += &format!("{author} posts P{number}\n");
        expected.insert(0, format!("P{number}"));
        if number % 4 == 0 {
            table += "work\n";
        }
    }
    table += &format!("work\neve: {}\n", expected.join(" "));
    table += "eve unfollows ada\neve follows ada\neve joins\n";
    table += &format!("eve: {}\n", expected.join(" "));
    everywhere(&table).await;
}

#[tokio::test]
async fn crossing_the_threshold_changes_no_feed() {
    let mut table = String::from("eve follows ada\neve joins\nada posts A1\nwork\neve: A1\n");
    for fan in ["f", "g", "h", "i", "k"] {
        table += &format!("{fan} follows ada\n{fan} joins\n");
    }
    table += "ada posts A2\nwork\neve: A2 A1\nf: A2 A1\nada posts A3\nwork\neve: A3 A2 A1\n";
    for fan in ["f", "g", "h", "i", "k"] {
        table += &format!("{fan} unfollows ada\n");
    }
    table += "ada posts A4\nwork\neve joins\nada posts A5\nwork\neve: A5 A4 A3 A2 A1\n";
    everywhere(&table).await;
}

#[tokio::test]
async fn blocks_mutes_deletes_and_edits_show_at_once() {
    everywhere(
        "eve follows ada
         eve follows bob
         eve joins
         ada posts A1
         bob posts B1
         ada posts A2
         work
         eve: A2 B1 A1
         eve mutes ada
         eve: B1
         eve unmutes ada
         ada edits A1 A1b
         eve: A2 B1 A1b
         ada deletes A2
         eve: B1 A1b
         bob blocks eve
         eve: A1b
         bob unblocks eve
         eve: A1b
         eve follows bob
         eve: B1 A1b",
    )
    .await;
}

#[tokio::test]
async fn a_late_fan_out_does_not_revive_a_deleted_post() {
    everywhere(
        "eve follows ada
         eve joins
         ada posts A1
         ada posts A2
         ada deletes A1
         work
         eve: A2",
    )
    .await;
}

#[tokio::test]
async fn friends_see_what_is_for_friends_and_nobody_what_is_private() {
    everywhere(
        "eve follows ada
         bob follows ada
         bob befriends ada
         eve joins
         bob joins
         ada whispers W1
         ada notes N1
         ada posts A1
         work
         eve: A1
         bob: A1 W1
         eve befriends ada
         eve: A1 W1",
    )
    .await;
}

#[tokio::test]
async fn a_new_name_shows_in_the_feed_unless_the_old_one_shall() {
    for &keeping in KEEPINGS {
        for (names, expected) in [(AuthorNames::Live, "lady ada"), (AuthorNames::AsPosted, "ada")] {
            let settings = Settings { author_names: names, ..small(keeping, Assignment::PushAll) };
            let network = network(settings).await;
            let [ada, eve] = common::users(&network, ["ada", "eve"]).await;
            network.follow(eve, ada).await.unwrap();
            for number in 0..250 {
                post(&network, ada, &format!("P{number}")).await;
            }
            settle(&network).await;
            let change = ProfileChange { username: Some("lady ada".into()), ..ProfileChange::default() };
            network.change_profile(ada, &change).await.unwrap();
            settle(&network).await;
            let mut page = social::PageRequest::first(100);
            loop {
                let found = network.feed(eve, &page).await.unwrap();
                assert!(found.items.iter().all(|post| post.author.username == expected), "{keeping:?} {names:?}");
                match found.next {
                    Some(next) => page.after = Some(next),
                    None => break,
                }
            }
        }
    }
}

#[tokio::test]
async fn an_idle_reader_is_skipped_and_finds_everything_on_coming_back() {
    for &keeping in KEEPINGS {
        let settings =
            Settings { idle_after: std::time::Duration::from_millis(20), ..small(keeping, Assignment::PushAll) };
        let network = network(settings).await;
        play(
            &network,
            "eve follows ada
             eve follows bob
             ada posts A1
             eve joins
             eve: A1
             bob posts B1
             work
             eve: B1 A1",
        )
        .await;
        tokio::time::sleep(std::time::Duration::from_millis(40)).await;
        assert_eq!(network.sweep_idle(10).await.unwrap(), 1);
        let ada = network.user_by_name("ada").await.unwrap().unwrap().id;
        let eve = network.user_by_name("eve").await.unwrap().unwrap().id;
        post(&network, ada, "A2").await;
        assert_eq!(network.work(u64::MAX).await.unwrap().pushed, 0, "nobody is left to push to");
        assert_eq!(feed(&network, eve).await, ["A2", "B1", "A1"]);
        post(&network, ada, "A3").await;
        assert_eq!(network.work(u64::MAX).await.unwrap().pushed, 1, "the inbox is built again");
        assert_eq!(feed(&network, eve).await, ["A3", "A2", "B1", "A1"]);
    }
}

#[tokio::test]
async fn pages_stay_while_posts_arrive() {
    for &keeping in KEEPINGS {
        let network = network(small(keeping, Assignment::PullAbove)).await;
        let [ada, eve] = common::users(&network, ["ada", "eve"]).await;
        network.follow(eve, ada).await.unwrap();
        network.join(eve).await.unwrap();
        for number in 0..9 {
            post(&network, ada, &format!("P{number}")).await;
        }
        settle(&network).await;
        let (mut said, mut page) = (Vec::new(), social::PageRequest::first(2));
        loop {
            let found = network.feed(eve, &page).await.unwrap();
            said.extend(found.items.into_iter().map(|post| post.content));
            post(&network, ada, "later").await;
            settle(&network).await;
            match found.next {
                Some(next) => page.after = Some(next),
                None => break,
            }
        }
        assert_eq!(said, ["P8", "P7", "P6", "P5", "P4", "P3", "P2", "P1", "P0"]);
    }
}

#[tokio::test]
async fn a_post_for_many_does_not_delay_one_for_few() {
    for &keeping in KEEPINGS {
        let network = network(small(keeping, Assignment::PushAll)).await;
        let [star, ada, eve] = common::users(&network, ["star", "ada", "eve"]).await;
        for fan in 0..12 {
            let fan = network.add_user(&format!("fan {fan}")).await.unwrap();
            network.follow(fan, star).await.unwrap();
            network.join(fan).await.unwrap();
        }
        network.follow(eve, ada).await.unwrap();
        network.join(eve).await.unwrap();
        let large = post(&network, star, "for many").await;
        let little = post(&network, ada, "for few").await;
        // The first begins, and after one step of two readers it is the second's turn.
        assert_eq!(network.work(2).await.unwrap().pushed, 3);
        let under_way = network.fan_outs(10).await.unwrap();
        assert!(under_way.iter().all(|one| one.post != little), "{under_way:?}");
        assert_eq!((under_way[0].post, under_way[0].pushed), (large, 2), "how far it is can be seen");
        network.work(u64::MAX).await.unwrap();
        assert_eq!(network.fan_outs(10).await.unwrap(), []);
    }
}
