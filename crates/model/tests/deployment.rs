//! `keep` beside a deployment: writers that know nothing of the model, keepers that die, tokens that are lost.

use bson::{Bson, Document, doc};
use model::keep::Keeper;
use model::keep::deployment::{Deployment, KEEPERS};
use std::collections::BTreeMap;
use std::future::pending;
use std::time::Duration;
use store::{Find, Store, Update, WriteModel};
use wire::{Address, Config, Listen, Server};

const MODEL: &str = r#"
entity author collection=authors id=int {
  field name string required
  count posts of=post by=authorId { where status visible }
  sum likes of=post by=authorId field=likes
  latest newest of=post by=authorId order=at { fields title at }
}
entity post collection=posts id=int {
  ref authorId to=author on-delete=cascade { expect typical=10 max=1_000 }
  live author via=authorId max-lag="1m" { fields name }
  field title string
  field likes int
  field at int
  enum status visible hidden
}
"#;

async fn cluster() -> Store {
    let listen = vec![Listen::Tcp { host: "127.0.0.1".to_owned(), port: 0 }];
    let engine = engine::Engine::in_memory(engine::Options::system()).expect("opens");
    let server = Server::bind(Config { listen, ..Config::default() }, engine).await.expect("binds");
    let Some(Address::Tcp(address)) = server.addresses().into_iter().next() else { panic!("a TCP address") };
    tokio::spawn(server.serve(pending()));
    Store::connect(&format!("mongodb://{address}/?replicaSet=sheaf")).await.expect("connects")
}

fn keeper() -> Keeper {
    Keeper::new(&model::parse(model::problem::Sources::single("test.sheaf.kdl", MODEL)).expect("a model").model)
        .expect("a keeper")
}

async fn start(store: &Store, owner: &str) -> Deployment {
    loop {
        if let Some(deployment) = Deployment::start(store, "blog", keeper(), owner).await.expect("starts") {
            return deployment;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn caught_up(deployment: &mut Deployment) {
    let mut quiet = 0;
    while quiet < 2 {
        quiet = if deployment.step().await.expect("steps") == 0 { quiet + 1 } else { 0 };
    }
}

/// A dead keeper's lease is over at once.
async fn expire_lease(store: &Store) {
    let past = doc! { "$set": { "until": bson::DateTime::from_millis(0) } };
    store.collection("blog", KEEPERS).update_one(doc! {}, past, Update::default(), None).await.expect("expires");
}

async fn all(store: &Store, name: &str) -> Vec<Document> {
    let sorted = Find { sort: Some(doc! { "_id": 1 }), ..Find::default() };
    store.collection("blog", name).find(doc! {}, sorted, None).await.expect("finds")
}

fn number(document: &Document, field: &str) -> i64 {
    match document.get(field) {
        Some(Bson::Int32(number)) => i64::from(*number),
        Some(Bson::Int64(number)) => *number,
        None => 0,
        other => panic!("{field}: {other:?}"),
    }
}

/// Counts everything again and compares.
async fn recount(store: &Store) {
    let posts = all(store, "posts").await;
    let authors = all(store, "authors").await;
    let names: BTreeMap<i64, &str> =
        authors.iter().map(|author| (number(author, "_id"), author.get_str("name").expect("a name"))).collect();
    for author in &authors {
        let id = number(author, "_id");
        let own: Vec<&Document> = posts.iter().filter(|post| number(post, "authorId") == id).collect();
        let visible = own.iter().filter(|post| post.get_str("status").ok() == Some("visible")).count() as i64;
        assert_eq!(number(author, "posts"), visible, "posts of {author}");
        assert_eq!(
            number(author, "likes"),
            own.iter().map(|post| number(post, "likes")).sum::<i64>(),
            "likes of {author}"
        );
        let newest = own.iter().max_by_key(|post| (number(post, "at"), number(post, "_id")));
        let kept = author.get_document("newest").ok().map(|kept| number(kept, "_id"));
        assert_eq!(kept, newest.map(|post| number(post, "_id")), "newest of {author}");
    }
    for post in &posts {
        let Some(name) = names.get(&number(post, "authorId")) else { continue };
        let copy = post.get_document("author").ok().and_then(|author| author.get_str("name").ok());
        assert_eq!(copy, Some(*name), "{post}");
    }
}

/// A small source of randomness that is the same in each run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: u64) -> i32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % below) as i32
    }
}

fn write(dice: &mut Dice) -> (&'static str, WriteModel) {
    let post = dice.roll(60);
    let author = dice.roll(8);
    let status = if dice.roll(3) == 0 { "hidden" } else { "visible" };
    let fresh = doc! {
        "authorId": author, "title": format!("title {}", dice.roll(1_000)), "likes": dice.roll(9), "at": dice.roll(50), "status": status,
    };
    match dice.roll(10) {
        0..=2 => ("posts", WriteModel::Replace { filter: doc! { "_id": post }, replacement: fresh, upsert: true }),
        3 => ("posts", WriteModel::update_many(doc! { "authorId": author }, doc! { "$inc": { "likes": 1 } })),
        4 => ("posts", WriteModel::update_one(doc! { "_id": post }, doc! { "$set": { "authorId": author } })),
        5 => ("posts", WriteModel::update_one(doc! { "_id": post }, doc! { "$set": { "status": status } })),
        6 => ("posts", WriteModel::delete_one(doc! { "_id": post })),
        7 => (
            "authors",
            WriteModel::upsert_one(
                doc! { "_id": author },
                doc! { "$set": { "name": format!("name {}", dice.roll(99)) } },
            ),
        ),
        8 => ("authors", WriteModel::upsert_one(doc! { "_id": author }, doc! { "$setOnInsert": { "name": "new" } })),
        _ if dice.roll(6) == 0 => ("authors", WriteModel::delete_one(doc! { "_id": author })),
        _ => ("posts", WriteModel::delete_many(doc! { "authorId": author, "likes": 3 })),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_others_write_is_kept() {
    let store = cluster().await;
    let mut deployment = start(&store, "one").await;
    let (authors, posts) = (store.collection("blog", "authors"), store.collection("blog", "posts"));
    // The children come first, then their parent.
    let post = |id: i32, likes: i32| doc! { "_id": id, "authorId": 1, "likes": likes, "at": id, "title": "t", "status": "visible" };
    posts.insert_many(vec![post(1, 3), post(2, 4)], None).await.expect("inserts");
    caught_up(&mut deployment).await;
    authors.insert_one(doc! { "_id": 1, "name": "Ann" }, None).await.expect("inserts");
    caught_up(&mut deployment).await;
    let ann = all(&store, "authors").await.remove(0);
    assert_eq!((number(&ann, "posts"), number(&ann, "likes")), (2, 7));
    recount_without_names(&store).await;
    authors
        .update_one(doc! { "_id": 1 }, doc! { "$set": { "name": "Anne" } }, Update::default(), None)
        .await
        .expect("updates");
    posts
        .update_one(doc! { "_id": 1 }, doc! { "$set": { "status": "hidden" } }, Update::default(), None)
        .await
        .expect("updates");
    caught_up(&mut deployment).await;
    recount(&store).await;
    // Cascade: posts go with their author.
    authors.delete_one(doc! { "_id": 1 }, None).await.expect("deletes");
    caught_up(&mut deployment).await;
    assert!(all(&store, "posts").await.is_empty());
}

/// Copies of an author that came after its posts are taken when its own insert is seen.
async fn recount_without_names(store: &Store) {
    for post in all(store, "posts").await {
        assert_eq!(post.get_document("author").expect("a copy").get_str("name").ok(), Some("Ann"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn keepers_that_die_and_tokens_that_are_lost_do_no_harm() {
    let store = cluster().await;
    let mut dice = Dice(0x5eed);
    // More with SHEAF_KEEP_ROUNDS: three kills and 75 writes a round.
    let rounds = std::env::var("SHEAF_KEEP_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(20);
    for round in 0..rounds {
        let mut deployment = start(&store, &format!("keeper {round}")).await;
        for _ in 0..3 {
            for _ in 0..25 {
                let (name, model) = write(&mut dice);
                let done =
                    store.collection("blog", name).bulk_write(vec![model], store::BulkWrite::default(), None).await;
                done.expect("writes");
            }
            // Killed at any point of a step.
            let most = Duration::from_millis(dice.roll(400) as u64);
            let _ = tokio::time::timeout(most, deployment.step()).await;
        }
        drop(deployment);
        expire_lease(&store).await;
        if round % 5 == 4 {
            let lost = doc! { "$unset": { "token": 1 } };
            store.collection("blog", KEEPERS).update_one(doc! {}, lost, Update::default(), None).await.expect("loses");
        }
    }
    let mut deployment = start(&store, "last").await;
    caught_up(&mut deployment).await;
    recount(&store).await;
    deployment.pass().await.expect("passes");
    recount(&store).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_keeper_waits_and_a_fenced_one_stops() {
    let store = cluster().await;
    let mut first = start(&store, "first").await;
    assert!(Deployment::start(&store, "blog", keeper(), "second").await.expect("asks").is_none());
    expire_lease(&store).await;
    let mut second = start(&store, "second").await;
    store.collection("blog", "authors").insert_one(doc! { "_id": 1, "name": "Ann" }, None).await.expect("inserts");
    assert_eq!(first.step().await.expect_err("is fenced off").code, Some(64));
    caught_up(&mut second).await;
    recount(&store).await;
    second.stop().await.expect("stops");
    assert!(Deployment::start(&store, "blog", keeper(), "third").await.expect("starts").is_some());
}
