//! The models say what the network writes: every document of every collection is one of its entity, with declared fields
//! of the declared types, and every collection is declared.

#![allow(clippy::unwrap_used, reason = "a test may end at what it did not expect")]

mod common;

use bson::doc;
use common::{KEEPINGS, post, settle, users};
use model::Model;
use social::{
    Access, ArticleChange, Assignment, BLOG_MODEL, Blog, By, Error, Id, Keeping, Level, LogLine, MAX_WINDOWS, MODEL,
    Metrics, Network, NewArticle, NewFile, NewPost, Of, PageRequest, PostChange, ProfileChange, Reading, Server,
    Settings, Time, Unit,
};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use store::{Find, Store};

fn model(files: &[(&str, &str)]) -> Model {
    let mut sources = model::problem::Sources::default();
    for (name, text) in files {
        sources.push((*name).to_owned(), (*text).to_owned());
    }
    model::parse(sources).unwrap_or_else(|problems| panic!("{problems}")).model
}

/// The fields that a collection's documents may have.
fn declared(model: &Model) -> BTreeMap<String, BTreeSet<String>> {
    let mut all: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for entity in model.all_entities() {
        let fields = all.entry(entity.collection.clone()).or_default();
        fields.insert("_id".into());
        fields.extend(entity.body.fields.iter().map(|field| field.name.clone()));
        fields.extend(entity.body.embeds.iter().map(|embed| embed.name.clone()));
        fields.extend(entity.body.refs.iter().map(|reference| reference.name.clone()));
        for live in &entity.body.lives {
            fields.extend(live.fields.iter().map(|copied| live.name.clone().unwrap_or_else(|| copied.name.clone())));
        }
        fields.extend(entity.parts.derived.iter().map(|derived| derived.name.clone()));
        fields.extend(entity.parts.recents.iter().map(|recent| recent.name.clone()));
    }
    for edge in &model.edges {
        for (end, count) in [(&edge.from, &edge.count_from), (&edge.to, &edge.count_to)] {
            if let (Some(count), Some(entity)) = (count, model.entity(end)) {
                all.get_mut(&entity.collection).unwrap().insert(count.clone());
            }
        }
    }
    for files in &model.files {
        let fields = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let file = ["_id", "length", "chunkSize", "uploadDate", "filename", "metadata"];
        all.insert(format!("{}.files", files.name), fields(&file));
        all.insert(format!("{}.chunks", files.name), fields(&["_id", "files_id", "n", "data"]));
    }
    all
}

/// A store whose collections check every write against the model's types.
async fn checked(model: &Model, keeping: Keeping) -> Store {
    let store = Store::in_memory().unwrap();
    for entity in model.all_entities() {
        if let Some(validator) = model::schema::validator(&entity) {
            let mut options = doc! { "validator": validator };
            if entity.collection == "inboxes" {
                options.insert("clusteredIndex", doc! { "key": { "_id": 1 }, "unique": true });
            }
            store.collection("social", &entity.collection).create(options).await.unwrap();
        }
    }
    if keeping == Keeping::Model {
        Network::keep_model(&store, "social").unwrap();
    }
    store
}

#[tokio::test]
async fn a_blog_keeps_what_its_model_declares() {
    let model = model(&BLOG_MODEL);
    for &keeping in KEEPINGS {
        let store = checked(&model, Keeping::Service).await;
        if keeping == Keeping::Model {
            Blog::keep_model(&store, "social").unwrap();
        }
        let blog = Blog::new(store.clone(), "social", keeping);
        blog.ensure_indexes().await.unwrap();
        let ann = blog.add_author("Ann", "ann@example.org").await.unwrap();
        assert!(matches!(blog.add_author("Bo", "ann@example.org").await, Err(Error::NameTaken(_))));
        let mut ids = Vec::new();
        for slug in ["one", "two", "three"] {
            let tags = vec!["all".to_owned(), slug.to_owned()];
            let new = NewArticle { title: slug.into(), slug: slug.into(), body: "text".into(), tags };
            ids.push(blog.write_once(ann, &new, slug).await.unwrap());
            assert_eq!(blog.write_once(ann, &new, slug).await.unwrap(), ids[ids.len() - 1]);
            assert!(matches!(blog.write(ann, &new).await, Err(Error::NameTaken(_))));
            assert!(matches!(blog.write_once(ann, &new, "other").await, Err(Error::NameTaken(_))));
        }
        assert_eq!(blog.article("one").await.unwrap(), None, "a draft is nobody's to read");
        assert!(matches!(blog.comment(ids[0], "bo", "hi").await, Err(Error::UnknownPost(_))));
        let bo = blog.add_author("Bo", "bo@example.org").await.unwrap();
        assert!(matches!(blog.publish(bo, ids[0]).await, Err(Error::UnknownPost(_))));
        for id in &ids[..2] {
            assert!(blog.publish(ann, *id).await.unwrap());
            assert!(!blog.publish(ann, *id).await.unwrap());
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        let drafts = blog.drafts(ann, &PageRequest::default()).await.unwrap().items;
        assert_eq!(drafts.iter().map(|draft| draft.id).collect::<Vec<_>>(), ids[2..]);
        let mut comments = Vec::new();
        for number in 0..12 {
            let number = number.to_string();
            comments.push(blog.comment_once(ids[0], "bo", &number, &number).await.unwrap());
            assert_eq!(blog.comment_once(ids[0], "bo", &number, &number).await.unwrap(), comments[comments.len() - 1]);
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        assert!(matches!(blog.hide_comment(By::Author(bo), comments[11]).await, Err(Error::NotAllowed(_))));
        assert!(blog.hide_comment(By::Author(ann), comments[11]).await.unwrap());
        assert!(!blog.hide_comment(By::Moderator, comments[11]).await.unwrap());
        blog.rename_author(ann, "Anna").await.unwrap();
        let change = ArticleChange { body: Some("other text".into()), version: Some(1), ..ArticleChange::default() };
        assert!(matches!(blog.edit(bo, ids[0], &change).await, Err(Error::NotAllowed(_))));
        assert_eq!(blog.edit(ann, ids[0], &change).await.unwrap().version, 2);
        assert!(matches!(blog.edit(ann, ids[0], &change).await, Err(Error::Changed)));
        let one = blog.article("one").await.unwrap().unwrap();
        assert_eq!((one.author_name.as_str(), one.body.as_str(), one.comment_count), ("Anna", "other text", 11));
        let said: Vec<_> = one.latest_comments.iter().map(|remark| remark.text.as_str()).collect();
        assert_eq!(said, ["10", "9", "8", "7", "6", "5", "4", "3", "2", "1"]);
        let author = blog.author(ann).await.unwrap();
        assert_eq!((author.article_count, author.last_published), (2, blog_published(&blog, "two").await));
        for (of, slugs) in [
            (Of::All, vec!["two", "one"]),
            (Of::Tag("two".into()), vec!["two"]),
            (Of::Tag("three".into()), vec![]),
            (Of::Author(ann), vec!["two", "one"]),
        ] {
            let (mut found, mut page) = (Vec::new(), PageRequest::first(1));
            loop {
                let articles = blog.newest(&of, &page).await.unwrap();
                found.extend(articles.items.into_iter().map(|article| article.slug));
                match articles.next {
                    Some(next) => page.after = Some(next),
                    None => break,
                }
            }
            assert_eq!(found, slugs, "{of:?}");
        }
        assert_eq!(blog.comments(ids[0], &PageRequest::first(50)).await.unwrap().items.len(), 11);
        let declared = declared(&model);
        assert_eq!(compare(&store, &declared).await, declared.keys().cloned().collect());
    }
}

async fn blog_published(blog: &Blog, slug: &str) -> Option<Time> {
    blog.article(slug).await.unwrap().unwrap().published_at
}

/// Something of everything.
async fn live(network: &Network) {
    let [ada, bob, eve] = users(network, ["ada", "bob", "eve"]).await;
    for (follower, followee) in [(bob, ada), (eve, ada), (ada, eve)] {
        network.follow(follower, followee).await.unwrap();
    }
    network.ask_friend(ada, bob).await.unwrap();
    network.accept_friend(bob, ada).await.unwrap();
    network.ask_friend(eve, bob).await.unwrap();
    network.mute(bob, eve).await.unwrap();
    network.block(eve, bob).await.unwrap();
    let first = network.post_once(ada, &NewPost::text("hello"), "key").await.unwrap();
    network.join(bob).await.unwrap();
    for number in 0..12 {
        let comment = network.comment(bob, first, &number.to_string(), None).await.unwrap();
        network.comment(ada, first, "reply", Some(comment.id)).await.unwrap();
    }
    network.like(bob, first).await.unwrap();
    let change = PostChange { content: Some("hello again".into()), ..PostChange::default() };
    network.edit_post(ada, first, &change).await.unwrap();
    let second = post(network, ada, "gone").await;
    network.delete_post(ada, second).await.unwrap();
    let third = post(network, ada, "rude").await;
    network.hide_post("mod", third, "rude").await.unwrap();
    network.feed(bob, &PageRequest::default()).await.unwrap();
    let change = ProfileChange { username: Some("ada l".into()), bio: Some("b".into()), ..ProfileChange::default() };
    network.change_profile(ada, &change).await.unwrap();
    let talk = network.talk_to(ada, bob).await.unwrap();
    for number in 0..35 {
        network.send_once(ada, talk, "hi", &number.to_string()).await.unwrap();
    }
    network.edit_message(ada, talk, 2, "ho").await.unwrap();
    network.recall_message(ada, talk, 3).await.unwrap();
    let group = network.begin_group(ada, "us", &[bob]).await.unwrap();
    upload(network, ada, Access::Conversation(group)).await;
    upload(network, ada, Access::Public).await;
    network.log_operation(ada, "login", "").await.unwrap();
    network.leave_network(eve).await.unwrap();
}

async fn upload(network: &Network, owner: Id, access: Access) {
    let content_type = "text/plain".to_owned();
    let new = NewFile { name: "a.txt".into(), content_type, length: 2, sha256: None, access };
    let upload = network.begin_upload(owner, &new).await.unwrap();
    network.append_upload(owner, upload.id, 0, b"hi").await.unwrap();
    network.finish_upload(owner, upload.id).await.unwrap();
}

/// Compares every document with what is declared; gives the collections that have any.
async fn compare(store: &Store, declared: &BTreeMap<String, BTreeSet<String>>) -> BTreeSet<String> {
    let mut seen = BTreeSet::new();
    for (collection, fields) in declared {
        let documents = store.collection("social", collection).find(doc! {}, Find::default(), None).await.unwrap();
        for document in &documents {
            seen.insert(collection.clone());
            // The model layer marks what it wrote itself by fields that begin with an underscore.
            let unknown = document.keys().filter(|field| !field.starts_with('_') && !fields.contains(*field));
            let unknown: Vec<_> = unknown.collect();
            assert_eq!(unknown, Vec::<&String>::new(), "{collection}: {document}");
        }
    }
    for found in store.list_collections("social").await.unwrap() {
        let internal = found.name.starts_with("sheaf.") || found.name.starts_with("system.");
        assert!(internal || declared.contains_key(&found.name), "{} is not declared", found.name);
    }
    seen
}

#[tokio::test]
async fn what_the_network_writes_is_what_its_models_declare() {
    let model = model(&MODEL);
    let declared = declared(&model);
    for &keeping in KEEPINGS {
        let store = checked(&model, keeping).await;
        let settings = Settings {
            join_above: 0,
            inbox_cap: 8,
            assignment: Assignment::PushAll,
            keep_messages: Some(Duration::from_secs(3600)),
            ..Settings::new(keeping)
        };
        let network = Network::with_settings(store.clone(), "social", settings);
        network.ensure_indexes().await.unwrap();
        live(&network).await;
        let seen = compare(&store, &declared).await;
        // The model layer has its own notes of names that are behind.
        let unseen: Vec<_> = declared.keys().filter(|name| !seen.contains(*name) && *name != "renames").collect();
        assert!(unseen.is_empty(), "nothing was written to {unseen:?}");
        settle(&network).await;
        compare(&store, &declared).await;
    }
}

#[tokio::test]
async fn readings_and_logs_are_what_their_model_declares() {
    let model = model(&[("metrics.sheaf.kdl", include_str!("../../../models/metrics/metrics.sheaf.kdl"))]);
    let store = Store::in_memory().unwrap();
    let metrics = Metrics::new(&store, "social");
    metrics.ensure(Duration::from_secs(30 * 24 * 3600)).await.unwrap();
    let at = Time::now();
    let server = |id: &str, host: &str| Server { id: id.into(), host: host.into(), region: "north".into() };
    for (id, host) in [("a", "one"), ("a", "two"), ("b", "one")] {
        metrics.put_server(&server(id, host)).await.unwrap();
    }
    assert!(matches!(metrics.put_server(&server("c", "two")).await, Err(Error::NameTaken(_))));
    assert_eq!(metrics.server_by_host("two").await.unwrap(), Some(server("a", "two")));
    let all = metrics.servers("north", &PageRequest::first(1)).await.unwrap();
    assert_eq!(all.items, [server("a", "two")]);
    let rest = metrics.servers("north", &PageRequest { after: all.next, limit: 5 }).await.unwrap();
    assert_eq!((rest.items, rest.next), (vec![server("b", "one")], None));
    let stray = Reading { server: "c".into(), at, cpu: 0.5, memory: 0.5, disk_free: 7 };
    assert!(matches!(metrics.record(&[stray]).await, Err(Error::UnknownServer(_))));
    metrics.record(&[Reading { server: "a".into(), at, cpu: 0.5, memory: 0.5, disk_free: 7 }]).await.unwrap();
    metrics.log(&[LogLine { server: "a".into(), at, level: Level::Error, message: "no".into() }]).await.unwrap();
    let declared = declared(&model);
    assert_eq!(compare(&store, &declared).await, declared.keys().cloned().collect());
    for (entity, granularity) in [("reading", "minutes"), ("logLine", "seconds")] {
        let entity = model.declared(entity).unwrap();
        let series = entity.parts.series.as_ref().unwrap();
        let there = store.list_collections("social").await.unwrap();
        let there = there.into_iter().find(|found| found.name == entity.collection).unwrap();
        let made = there.options.get_document("timeseries").unwrap();
        assert_eq!(made.get_str("timeField").unwrap(), series.time);
        assert_eq!(made.get_str("metaField").ok(), series.meta.as_deref());
        assert_eq!(made.get_str("granularity").unwrap(), granularity);
        let keep = there.options.get("expireAfterSeconds").and_then(bson::Bson::as_i64);
        assert_eq!(keep, series.expire_after.map(|time| i64::try_from(time.ms / 1_000).unwrap()));
    }
}

#[tokio::test]
async fn windows_say_what_readings_and_logs_come_to() {
    let store = Store::in_memory().unwrap();
    let metrics = Metrics::new(&store, "social");
    metrics.ensure(Duration::from_secs(30 * 24 * 3600)).await.unwrap();
    for id in ["a", "b"] {
        metrics.put_server(&Server { id: id.into(), host: id.into(), region: "north".into() }).await.unwrap();
    }
    let day = Time::now().timestamp_ms() / 86_400_000 * 86_400_000 - 86_400_000;
    let at = |minute: i64| Time::from_timestamp_ms(day + minute * 60_000);
    let reading = |minute: i64| Reading {
        server: if minute % 5 == 4 { "b" } else { "a" }.into(),
        at: at(minute),
        cpu: minute as f64 / 100.0,
        memory: 0.5,
        disk_free: 1_000 - minute,
    };
    metrics.record(&(0..100).map(reading).collect::<Vec<_>>()).await.unwrap();
    let hours = metrics.windows("a", at(0), at(100), Unit::Hour).await.unwrap();
    let found: Vec<_> = hours.iter().map(|hour| (hour.at, hour.readings, hour.least_disk_free)).collect();
    assert_eq!(found, [(at(0), 48, 942), (at(60), 32, 902)]);
    assert!((hours[0].highest_cpu - 0.58).abs() < 1e-9);
    assert_eq!(metrics.windows("b", at(0), at(30), Unit::Minute).await.unwrap().len(), 6);
    let line = |minute: i64| LogLine {
        server: "a".into(),
        at: at(minute),
        level: if minute % 10 == 0 { Level::Error } else { Level::Info },
        message: format!("line {minute}"),
    };
    metrics.log(&(0..100).map(line).collect::<Vec<_>>()).await.unwrap();
    let newest = metrics.lines("a", at(0), at(50), &PageRequest::first(2)).await.unwrap();
    assert_eq!(newest.items, [line(49), line(48)]);
    let rest = metrics.lines("a", at(0), at(50), &PageRequest { after: newest.next, limit: 100 }).await.unwrap();
    assert_eq!((rest.items, rest.next), ((0..48).rev().map(line).collect(), None));
    let counts = metrics.log_windows("a", at(0), at(100), Unit::Hour).await.unwrap();
    let counts: Vec<_> = counts.iter().map(|window| (window.at, window.level, window.lines)).collect();
    let expected =
        [(at(0), Level::Error, 6), (at(0), Level::Info, 54), (at(60), Level::Error, 4), (at(60), Level::Info, 36)];
    assert_eq!(counts, expected);
    let long = metrics.windows("a", at(0), at(MAX_WINDOWS + 1), Unit::Minute).await;
    assert!(matches!(long, Err(Error::Invalid(_))));
    assert!(matches!(metrics.windows("c", at(0), at(1), Unit::Minute).await, Err(Error::UnknownServer(_))));
}
