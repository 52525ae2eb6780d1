//! A network on a deployment with `sheaf keep` beside it: both account for the same documents, and nothing is counted twice.

#![allow(clippy::unwrap_used, reason = "a test may end at what it did not expect")]

mod common;

use bson::doc;
use common::{deployment, post, settle, users};
use model::audit::Auditor;
use model::keep::Keeper;
use model::keep::deployment::Deployment;
use model::problem::Sources;
use social::{Blog, By, Keeping, MODEL, Network, NewArticle, ProfileChange, Settings};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use store::Store;

fn parsed(files: &[(&str, &str)]) -> model::Model {
    let mut sources = Sources::default();
    for (name, text) in files {
        sources.push((*name).to_owned(), (*text).to_owned());
    }
    model::parse(sources).unwrap_or_else(|problems| panic!("{problems}")).model
}

/// A keeper that works until it is told to stop; then it catches up.
fn keeper(
    store: &Store,
    database: &'static str,
    model: &model::Model,
    stop: &Arc<AtomicBool>,
) -> tokio::task::JoinHandle<u64> {
    let (store, stop, planner) = (store.clone(), stop.clone(), Keeper::new(model).unwrap());
    tokio::spawn(async move {
        let mut deployment = Deployment::start(&store, database, planner, "beside").await.unwrap().expect("the lease");
        let mut quiet = 0;
        while quiet < 3 {
            let done = deployment.step().await.unwrap();
            quiet = if done == 0 && stop.load(Ordering::Acquire) { quiet + 1 } else { 0 };
        }
        deployment.progress().events
    })
}

async fn audited(store: &Store, database: &str, model: &model::Model) {
    let mut auditor = Auditor::new(store, database, model).unwrap();
    let findings = auditor.run().await.unwrap();
    for finding in &findings {
        assert_eq!(finding.drifted, 0, "{finding:?}");
    }
    assert!(findings.iter().map(|finding| finding.checked).sum::<u64>() > 20, "{findings:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn follows_posts_and_comments_beside_a_keeper_are_counted_once() {
    let store = Store::connect(&deployment()).await.unwrap();
    let (model, stop) = (parsed(&MODEL), Arc::new(AtomicBool::new(false)));
    let keeping = keeper(&store, "beside", &model, &stop);
    let network = Network::with_settings(store.clone(), "beside", Settings::new(Keeping::Service));
    network.ensure_indexes().await.unwrap();
    let [ada, bob, cyd, dan] = users(&network, ["ada", "bob", "cyd", "dan"]).await;
    for follower in [bob, cyd, dan] {
        network.follow(follower, ada).await.unwrap();
    }
    network.unfollow(dan, ada).await.unwrap();
    for from in [bob, cyd] {
        network.ask_friend(from, ada).await.unwrap();
        network.accept_friend(ada, from).await.unwrap();
    }
    let mut posts = Vec::new();
    for number in 0..6 {
        let id = post(&network, ada, &format!("post {number}")).await;
        for user in [bob, cyd, dan] {
            network.like(user, id).await.unwrap();
            network.comment(user, id, "well said", None).await.unwrap();
        }
        network.unlike(dan, id).await.unwrap();
        posts.push(id);
    }
    network.delete_post(ada, posts[0]).await.unwrap();
    network.block(cyd, ada).await.unwrap();
    let change = ProfileChange { username: Some("ada lovelace".to_owned()), ..ProfileChange::default() };
    network.change_profile(ada, &change).await.unwrap();
    settle(&network).await;
    // Somebody who knows nothing of the model writes, too.
    store.collection("beside", "likes").delete_one(doc! { "userId": bob, "postId": posts[1] }, None).await.unwrap();
    stop.store(true, Ordering::Release);
    assert!(keeping.await.unwrap() > 40, "the keeper saw the events");

    let found = store.collection("beside", "users").find_one(doc! { "_id": ada }, None).await.unwrap().unwrap();
    let count = |name: &str| found.get_i64(name).unwrap();
    assert_eq!((count("followerCount"), count("friendCount"), count("postCount")), (1, 1, 5));
    let found = store.collection("beside", "posts").find_one(doc! { "_id": posts[1] }, None).await.unwrap().unwrap();
    assert_eq!((found.get_i64("likeCount").unwrap(), found.get_i64("commentCount").unwrap()), (1, 3));
    audited(&store, "beside", &model).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_blog_beside_a_keeper_is_counted_once() {
    let store = Store::connect(&deployment()).await.unwrap();
    let (model, stop) = (parsed(&social::BLOG_MODEL), Arc::new(AtomicBool::new(false)));
    let keeping = keeper(&store, "blogBeside", &model, &stop);
    let blog = Blog::new(store.clone(), "blogBeside", Keeping::Service);
    blog.ensure_indexes().await.unwrap();
    let author = blog.add_author("Ada", "ada@example.org").await.unwrap();
    for number in 0..4 {
        let new =
            NewArticle { title: "t".into(), slug: format!("s{number}"), body: "b".into(), ..NewArticle::default() };
        let article = blog.write(author, &new).await.unwrap();
        blog.publish(author, article).await.unwrap();
        let first = blog.comment(article, "Bob", "first").await.unwrap();
        blog.comment(article, "Cyd", "second").await.unwrap();
        blog.hide_comment(By::Moderator, first).await.unwrap();
    }
    blog.rename_author(author, "Ada Lovelace").await.unwrap();
    // At once, before the keeper has seen anything.
    let found = blog.article("s1").await.unwrap().unwrap();
    assert_eq!((found.author_name.as_str(), found.comment_count), ("Ada Lovelace", 1));
    assert_eq!(blog.author(author).await.unwrap().article_count, 4);
    stop.store(true, Ordering::Release);
    assert!(keeping.await.unwrap() > 10, "the keeper saw the events");
    assert_eq!(blog.author(author).await.unwrap().article_count, 4);
    audited(&store, "blogBeside", &model).await;
}
