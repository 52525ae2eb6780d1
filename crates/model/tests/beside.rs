//! `keep` beside a deployment: writers that know nothing of the model, keepers that die, tokens that are lost.

use bson::{Bson, Document, doc};
use model::audit::Auditor;
use model::keep::deployment::{Deployment, KEEPERS, account};
use model::keep::{Keeper, active};
use model::{Model, apply};
use std::collections::BTreeMap;
use std::time::Duration;
use store::{Find, Store, Update, WriteModel};
use wire::{Address, Config, Listen, Server};

const MODEL: &str = r#"
entity author collection=authors id=int {
  field name string required
  count posts of=post by=authorId { where status visible }
  sum likes of=post by=authorId field=likes
  latest newest of=post by=authorId order=at { fields title at }
  bucket pages of=post by=authorId order=at items=4 bytes=2_000 collection=pages { fields title }
  field about string
  split rest collection=authorRests { fields about }
}
entity post collection=posts id=int {
  ref authorId to=author on-delete=cascade { expect typical=10 max=1_000 }
  live author via=authorId max-lag="1m" { fields name }
  field title string
  field likes int
  field at int
  enum status visible hidden
  field body string
  compress body above=100 with=gzip
}
edge follows from=reader to=author directed collection=follows count-to=followerCount { enum kind loud silent; where kind loud }
timeline home along=follows of=post by=authorId order="-at" cap=5 mode=hybrid threshold=3 collection=inboxes { fields title }
entity reader collection=readers id=int { field name string }
rollup byStatus of=post collection=byStatus {
  by status; count posts; sum likes field=likes; min fewest field=likes; max last field=at
}
"#;

async fn cluster() -> Store {
    let (store, server) = served(engine::Engine::in_memory(engine::Options::system()).expect("opens")).await;
    // It serves until the test is over.
    std::mem::forget(server.0);
    store
}

/// What stops a server, and its end.
type Served = (tokio::sync::oneshot::Sender<()>, tokio::task::JoinHandle<()>);

/// A server of our own, through the official driver.
async fn served(engine: engine::Engine) -> (Store, Served) {
    let listen = vec![Listen::Tcp { host: "127.0.0.1".to_owned(), port: 0 }];
    let server = Server::bind(Config { listen, ..Config::default() }, engine).await.expect("binds");
    let Some(Address::Tcp(address)) = server.addresses().into_iter().next() else { panic!("a TCP address") };
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let end = tokio::spawn(server.serve(async { drop(stopped.await) }));
    (Store::connect(&format!("mongodb://{address}/?replicaSet=sheaf")).await.expect("connects"), (stop, end))
}

async fn stopped(engine: engine::Engine, (stop, end): Served) {
    stop.send(()).expect("it runs");
    end.await.expect("it ends well");
    engine.close().expect("closes");
}

fn parsed() -> Model {
    model::parse(model::problem::Sources::single("test.sheaf.kdl", MODEL)).expect("a model").model
}

fn keeper() -> Keeper {
    Keeper::new(&parsed()).expect("a keeper")
}

async fn audited(store: &Store, repair: bool) -> Vec<(String, u64)> {
    let mut auditor = Auditor::new(store, "blog", &parsed()).expect("an audit");
    auditor.options.repair = repair;
    let found = auditor.run().await.expect("is audited");
    assert!(found.iter().all(|one| one.skipped.is_none()), "{found:?}");
    found.into_iter().filter(|one| one.drifted > 0).map(|one| (one.declaration, one.drifted)).collect()
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
    for author in &authors {
        let by = doc! { "to": number(author, "_id") as i32, "kind": "loud" };
        let loud = store.collection("blog", "follows").count(by, None).await.expect("counts");
        assert_eq!(number(author, "followerCount"), loud as i64, "followers of {author}");
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
        "body": "a long story ".repeat(20), "authorId": author, "title": format!("title {}", dice.roll(1_000)), "likes": dice.roll(9), "at": dice.roll(50), "status": status,
    };
    let reader = dice.roll(6);
    let follow = doc! { "_id": reader * 100 + author };
    match dice.roll(14) {
        10 | 11 => {
            let kind = if dice.roll(3) == 0 { "silent" } else { "loud" };
            let replacement = doc! { "from": reader, "to": author, "kind": kind };
            ("follows", WriteModel::Replace { filter: follow, replacement, upsert: true })
        }
        12 => ("follows", WriteModel::delete_one(follow)),
        13 if dice.roll(8) == 0 => ("readers", WriteModel::delete_one(doc! { "_id": reader })),
        13 => ("readers", WriteModel::upsert_one(doc! { "_id": reader }, doc! { "$set": { "name": "r" } })),
        0..=2 => ("posts", WriteModel::Replace { filter: doc! { "_id": post }, replacement: fresh, upsert: true }),
        3 => ("posts", WriteModel::update_many(doc! { "authorId": author }, doc! { "$inc": { "likes": 1 } })),
        4 => ("posts", WriteModel::update_one(doc! { "_id": post }, doc! { "$set": { "authorId": author } })),
        5 => ("posts", WriteModel::update_one(doc! { "_id": post }, doc! { "$set": { "status": status } })),
        6 => ("posts", WriteModel::delete_one(doc! { "_id": post })),
        7 => (
            "authors",
            WriteModel::upsert_one(
                doc! { "_id": author },
                doc! { "$set": { "name": format!("name {}", dice.roll(99)), "about": "much" } },
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
    // Three kills a round; more of them with SHEAF_KEEP_ROUNDS, and more writes before each with SHEAF_KEEP_WRITES.
    let set =
        |name: &str, default: u64| std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default);
    let (rounds, writes) = (set("SHEAF_KEEP_ROUNDS", 20), set("SHEAF_KEEP_WRITES", 25));
    let (begun, mut kills) = (std::time::Instant::now(), 0_u64);
    // How long a keeper takes to catch up, in milliseconds: as it was when last one was let.
    let mut pace = 16 * writes;
    for round in 0..rounds {
        let mut deployment = start(&store, &format!("keeper {round}")).await;
        for _ in 0..3 {
            let mut left = writes;
            while left > 0 {
                let bulk = (0..left.min(25)).map(|_| write(&mut dice));
                let bulk = bulk.map(|(name, model)| (store.collection("blog", name), model)).collect();
                store.bulk_write(bulk, store::BulkWrite::default(), None).await.expect("writes").ok().expect("each");
                left -= left.min(25);
            }
            // Killed at any point, perhaps when it has just caught up.
            let (most, started) = (Duration::from_millis(dice.roll(pace + 1) as u64), std::time::Instant::now());
            let work = async { while deployment.step().await.expect("steps") > 0 {} };
            if tokio::time::timeout(most, work).await.is_err() {
                kills += 1;
                // A dead keeper's transaction holds what it wrote for a minute; here it is let go at once.
                store.run_command("admin", doc! { "killAllSessions": [] }).await.expect("lets go");
            } else {
                pace = (started.elapsed().as_millis() as u64).max(10);
            }
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
    eprintln!("{} writes, killed {kills} times, in {:?}", rounds * 3 * writes, begun.elapsed());
    assert!(kills > rounds / 2, "killed {kills} times");
    recount(&store).await;
    assert_eq!(audited(&store, false).await, []);
    deployment.pass().await.expect("passes");
    recount(&store).await;
    assert_eq!(audited(&store, false).await, []);
    let packed = store.collection("blog", "posts").count(doc! { "body": { "$type": "string" } }, None).await;
    assert_eq!(packed.expect("counts"), 0);
    let apart = store.collection("blog", "authors").count(doc! { "about": { "$exists": true } }, None).await;
    assert_eq!(apart.expect("counts"), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_that_is_given_up_loses_nothing() {
    let store = cluster().await;
    let mut dice = Dice(0xace);
    let mut deployment = start(&store, "patient").await;
    let mut given_up = 0;
    for _ in 0..60 {
        let bulk = (0..5).map(|_| write(&mut dice));
        let bulk = bulk.map(|(name, model)| (store.collection("blog", name), model)).collect();
        store.bulk_write(bulk, store::BulkWrite::default(), None).await.expect("writes").ok().expect("each");
        let most = Duration::from_millis(dice.roll(60) as u64);
        if tokio::time::timeout(most, deployment.step()).await.is_err() {
            given_up += 1;
            // Its transaction is let go, and the cursor that it may be waiting for is killed.
            store.run_command("admin", doc! { "killAllSessions": [] }).await.expect("lets go");
            if given_up % 3 == 0 {
                expire_lease(&store).await;
                deployment = start(&store, &format!("heir {given_up}")).await;
                assert_eq!(deployment.progress().passes, 0, "it goes on at the token");
            }
        }
    }
    assert!(given_up > 5, "{given_up} steps were given up");
    let passes = deployment.progress().passes;
    caught_up(&mut deployment).await;
    assert_eq!(deployment.progress().passes, passes, "nothing was found by looking at everything");
    recount(&store).await;
    assert_eq!(audited(&store, false).await, []);
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

async fn insert(store: &Store, collection: &str, documents: Vec<Document>) {
    store.collection("blog", collection).insert_many(documents, None).await.expect("inserted");
}

async fn set(store: &Store, collection: &str, id: impl Into<Bson>, change: Document) {
    let filter = doc! { "_id": id.into() };
    let done = store.collection("blog", collection).update_one(filter, change, Update::default(), None).await;
    assert_eq!(done.expect("updated").modified, 1);
}

fn post(id: i32, author: i32) -> Document {
    doc! { "_id": id, "authorId": author, "title": "t", "likes": 1, "at": id, "status": "visible" }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cascade_of_many_goes_in_fenced_pages() {
    let store = cluster().await;
    let mut deployment = start(&store, "one").await;
    insert(&store, "authors", vec![doc! { "_id": 1, "name": "Ann" }, doc! { "_id": 2, "name": "Bo" }]).await;
    insert(&store, "posts", (0..750).map(|id| post(id, 1 + i32::from(id % 10 == 0))).collect()).await;
    caught_up(&mut deployment).await;
    store.collection("blog", "authors").delete_one(doc! { "_id": 1 }, None).await.expect("deleted");
    // Another keeper takes over before the cascade: the first one may not delete any more.
    expire_lease(&store).await;
    let mut second = start(&store, "two").await;
    assert_eq!(deployment.step().await.expect_err("is fenced off").code, Some(64));
    caught_up(&mut second).await;
    assert_eq!(all(&store, "posts").await.len(), 75);
    recount(&store).await;
    assert_eq!(audited(&store, false).await, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_service_accounts_for_is_not_counted_again_by_the_keeper() {
    let store = cluster().await;
    let mut deployment = start(&store, "one").await;
    insert(&store, "authors", vec![doc! { "_id": 1, "name": "Ann" }, doc! { "_id": 2, "name": "Bo" }]).await;
    caught_up(&mut deployment).await;
    let keeper = keeper();
    for id in 0..12 {
        let mut session = store.start_session().await.expect("a session");
        session.start_transaction().await.expect("starts");
        let posts = store.collection("blog", "posts");
        posts.insert_one(post(id, 1 + id % 2), Some(&mut session)).await.expect("inserted");
        let mut written = vec![("posts".to_owned(), Bson::Int32(id))];
        if id > 4 {
            posts.delete_one(doc! { "_id": id - 5 }, Some(&mut session)).await.expect("deleted");
            written.push(("posts".to_owned(), Bson::Int32(id - 5)));
        }
        account(&store, "blog", &keeper, &written, &mut session).await.expect("accounted for");
        session.commit_transaction().await.expect("commits");
        // True at once, before the keeper has seen anything.
        let author = all(&store, "authors").await.remove((id % 2) as usize);
        let count = posts.count(doc! { "authorId": 1 + id % 2 }, None).await.expect("counts");
        assert_eq!(number(&author, "posts"), count as i64);
        // Somebody else writes beside it.
        if id % 3 == 0 {
            set(&store, "posts", id, doc! { "$inc": { "likes": 2 } }).await;
            set(&store, "authors", 1, doc! { "$set": { "name": format!("Ann {id}") } }).await;
        }
    }
    caught_up(&mut deployment).await;
    recount(&store).await;
    assert_eq!(audited(&store, false).await, []);
}

/// A service's transaction that has inserted and accounted for a document, before its commit.
async fn accounted(store: &Store, collection: &str, document: Document) -> store::Result<store::Session> {
    let mut session = store.start_session().await?;
    session.start_transaction().await?;
    let key = (collection.to_owned(), document.get("_id").expect("an _id").clone());
    store.collection("blog", collection).insert_one(document, Some(&mut session)).await?;
    account(store, "blog", &keeper(), &[key], &mut session).await?;
    Ok(session)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_parent_and_a_child_that_come_in_the_same_moment_conflict() {
    let store = cluster().await;
    let ann = || doc! { "_id": 1, "name": "Ann" };
    for is_child_first in [true, false] {
        let (first, second) = match is_child_first {
            true => (("posts", post(1, 1)), ("authors", ann())),
            false => (("authors", ann()), ("posts", post(1, 1))),
        };
        let mut one = accounted(&store, first.0, first.1).await.expect("the first is accounted for");
        // Neither sees the other: one of the two must fail, and see it when it is tried again.
        let error = match accounted(&store, second.0, second.1.clone()).await {
            Err(error) => error,
            Ok(mut two) => {
                one.commit_transaction().await.expect("commits");
                two.commit_transaction().await.expect_err("conflicts")
            }
        };
        assert!(error.has_label("TransientTransactionError"), "{error:?}");
        let _ = one.commit_transaction().await; // if it was not yet
        accounted(&store, second.0, second.1).await.expect("sees it").commit_transaction().await.expect("commits");
        recount(&store).await;
        assert_eq!(audited(&store, false).await, []);
        for collection in ["posts", "authors"] {
            let gone = store.collection("blog", collection);
            gone.delete_many(doc! {}, None).await.expect("deleted");
        }
        caught_up(&mut start(&store, "sweeper").await).await;
        expire_lease(&store).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_child_that_a_parent_shows_before_it_is_accounted_for_does_not_stay_there() {
    let store = cluster().await;
    let mut deployment = start(&store, "one").await;
    insert(&store, "authors", vec![doc! { "_id": 1, "name": "Ann" }, doc! { "_id": 2, "name": "Bo" }]).await;
    insert(&store, "posts", vec![post(50, 2)]).await;
    caught_up(&mut deployment).await;
    // It moves to another author; before the keeper sees that, a service looks for this author's newest, and then it goes.
    set(&store, "posts", 50, doc! { "$set": { "authorId": 1 } }).await;
    accounted(&store, "posts", post(9, 1)).await.expect("accounted for").commit_transaction().await.expect("commits");
    let shown = all(&store, "authors").await.remove(0);
    assert_eq!(number(shown.get_document("newest").expect("kept"), "_id"), 50);
    store.collection("blog", "posts").delete_one(doc! { "_id": 50 }, None).await.expect("deleted");
    caught_up(&mut deployment).await;
    recount(&store).await;
    assert_eq!(audited(&store, false).await, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_record_of_a_document_that_never_came_goes_with_a_pass() {
    let store = cluster().await;
    accounted(&store, "posts", post(1, 9)).await.expect("accounted for").commit_transaction().await.expect("commits");
    let awaited = doc! { "awaited": { "$exists": true } };
    let records = store.collection("blog", "sheaf.records");
    assert_eq!(records.count(awaited.clone(), None).await.expect("counts"), 1);
    let mut deployment = start(&store, "one").await;
    // Nobody refers to it any longer.
    store.collection("blog", "posts").delete_one(doc! { "_id": 1 }, None).await.expect("deleted");
    caught_up(&mut deployment).await;
    deployment.pass().await.expect("passes");
    assert_eq!(records.count(awaited, None).await.expect("counts"), 0);
    recount(&store).await;
}

/// What an audit by URL has to find.
async fn damaged(store: &Store) {
    set(store, "authors", 1, doc! { "$inc": { "posts": 3_i64 }, "$set": { "about": "here" } }).await;
    set(store, "authors", 2, doc! { "$unset": { "newest": 1 } }).await;
    set(store, "posts", 3, doc! { "$set": { "author.name": "nobody", "body": "long ".repeat(50) } }).await;
    let page = doc! { "by": 1, "n": 0_i64 };
    set(store, "pages", page, doc! { "$pull": { "items": { "_id": 1 } } }).await;
}

const DAMAGE: [&str; 6] = ["author.newest", "author.pages", "author.posts", "author.rest", "post.author", "post.body"];

#[tokio::test(flavor = "multi_thread")]
async fn a_deployment_is_audited_and_repaired_by_url() {
    let store = cluster().await;
    let mut deployment = start(&store, "one").await;
    insert(&store, "authors", vec![doc! { "_id": 1, "name": "Ann" }, doc! { "_id": 2, "name": "Bo" }]).await;
    insert(&store, "posts", (0..20).map(|id| post(id, 1 + i32::from(id % 4 == 0))).collect()).await;
    caught_up(&mut deployment).await;
    assert_eq!(audited(&store, false).await, []);
    damaged(&store).await;
    let names = |found: Vec<(String, u64)>| found.into_iter().map(|(name, _)| name).collect::<Vec<_>>();
    assert_eq!(names(audited(&store, false).await), DAMAGE);
    audited(&store, true).await;
    assert_eq!(audited(&store, false).await, [], "a second run finds nothing");
    recount(&store).await;
    caught_up(&mut deployment).await;
    assert_eq!(audited(&store, false).await, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_keeps_the_model_is_applied_audited_and_repaired_by_url() {
    let folder = tempfile::tempdir().expect("a folder");
    let open = || active::open(folder.path(), engine::Options::system()).expect("opens").0;
    let (first, model) = (open(), parsed());
    let (store, server) = served(first.clone()).await;
    let actions = apply::plan(&store, "blog", &model, false).await.expect("a plan");
    apply::run(&store, "blog", &model, &actions.list, &mut |_| {}).await.expect("is applied");
    assert_eq!(apply::plan(&store, "blog", &model, false).await.expect("a plan").list, []);
    insert(&store, "authors", vec![doc! { "_id": 1, "name": "Ann" }, doc! { "_id": 2, "name": "Bo" }]).await;
    insert(&store, "posts", (0..20).map(|id| post(id, 1 + i32::from(id % 4 == 0))).collect()).await;
    recount(&store).await;
    assert_eq!(audited(&store, false).await, []);
    let refused = Deployment::start(&store, "blog", keeper(), "one").await.err().expect("it keeps itself");
    assert!(refused.message.contains("keeps the model itself"), "{refused}");
    drop(store);
    stopped(first, server).await;

    let around = active::open_around(folder.path(), engine::Options::system()).expect("opens");
    damaged(&Store::embedded(around.clone())).await;
    around.close().expect("closes");
    let second = open();
    let (store, server) = served(second.clone()).await;
    let names = |found: Vec<(String, u64)>| found.into_iter().map(|(name, _)| name).collect::<Vec<_>>();
    assert_eq!(names(audited(&store, false).await), DAMAGE);
    audited(&store, true).await;
    assert_eq!(audited(&store, false).await, [], "a second run finds nothing");
    recount(&store).await;
    drop(store);
    stopped(second, server).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sharding_is_asked_of_a_server_that_can_and_refused_by_name_by_one_that_cannot() {
    let store = cluster().await;
    let key = doc! { "authorId": 1 };
    let action = apply::Action::Shard { collection: "posts".to_owned(), key };
    assert_eq!(action.to_string(), "shard posts by { \"authorId\": 1 }");
    let refused = apply::define(&store, "blog", &parsed(), &[action], &mut |_| {}).await.expect_err("one folder");
    assert!(refused.to_string().contains("shardCollection"), "{refused}");
}
