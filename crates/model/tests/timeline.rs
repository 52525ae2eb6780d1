//! Inboxes: what is in them follows from edges and items, whatever was written in which order.

use bson::{Bson, Document, doc};
use engine::Options;
use model::audit::Auditor;
use model::keep::active::{self, Models};
use model::keep::service::Service;
use model::problem::Sources;
use model::{Model, apply};
use std::sync::Arc;
use std::time::Duration;
use store::{Find, Store, Update};

const MODEL: &str = r#"
entity user collection=users id=int { field name string }
entity post collection=posts id=int {
  ref authorId to=user on-delete=cascade
  field text string
  field at int
}
edge follows from=user to=user directed collection=follows from-field=readerId to-field=authorId count-to=followerCount {
  enum status active muted
  where status active
}
timeline home along=follows of=post by=authorId order="-at" cap=4 mode=hybrid threshold=3 collection=inboxes { fields text }
"#;

fn parsed(text: &str) -> Model {
    model::parse(Sources::single("model.sheaf.kdl", text)).unwrap_or_else(|problems| panic!("{problems}")).model
}

async fn applied(store: &Store, model: &Model) {
    let actions = apply::plan(store, "net", model, false).await.expect("a plan");
    apply::run(store, "net", model, &actions.list, &mut |_| {}).await.expect("is applied");
}

async fn network(model: &Model) -> (Store, Arc<Models>) {
    let store = Store::in_memory().expect("a store");
    let models = Models::new();
    store.engine().expect("embedded").add_hook(models.clone());
    applied(&store, model).await;
    (store, models)
}

async fn insert(store: &Store, collection: &str, document: Document) {
    store.collection("net", collection).insert_one(document, None).await.expect("inserted");
}

async fn follow(store: &Store, reader: i32, author: i32) {
    let id = reader * 1_000 + author;
    insert(store, "follows", doc! { "_id": id, "readerId": reader, "authorId": author, "status": "active" }).await;
}

async fn post(store: &Store, id: i32, author: i32, at: i32) {
    insert(store, "posts", doc! { "_id": id, "authorId": author, "text": format!("post {id}"), "at": at }).await;
}

async fn set(store: &Store, collection: &str, id: i32, change: Document) {
    let options = Update::default();
    store.collection("net", collection).update_one(doc! { "_id": id }, change, options, None).await.expect("updated");
}

async fn delete(store: &Store, collection: &str, id: i32) {
    store.collection("net", collection).delete_one(doc! { "_id": id }, None).await.expect("deleted");
}

/// What a reader finds, the newest first.
async fn inbox(store: &Store, reader: i32) -> Vec<i32> {
    let newest = Find { sort: Some(doc! { "at": -1, "_id": -1 }), ..Find::default() };
    let rows = store.collection("net", "inboxes").find(doc! { "ownerId": reader }, newest, None).await.expect("read");
    rows.iter().map(|row| row.get_i32("itemId").expect("an item")).collect()
}

async fn drifted(store: &Store, model: &Model, repair: bool) -> Vec<(String, u64)> {
    let mut auditor = Auditor::new(store, "net", model).expect("an audit");
    auditor.options.repair = repair;
    let found = auditor.run().await.expect("is audited");
    assert!(found.iter().all(|one| one.skipped.is_none() && one.lagging == 0), "{found:?}");
    found.into_iter().filter(|one| one.drifted > 0).map(|one| (one.declaration, one.drifted)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_inbox_follows_edges_and_items() {
    let model = parsed(MODEL);
    let (store, models) = network(&model).await;
    let engine = store.engine().expect("embedded").clone();
    for user in 1..=6 {
        insert(&store, "users", doc! { "_id": user, "name": format!("user {user}") }).await;
    }
    post(&store, 1, 1, 10).await;
    follow(&store, 5, 1).await;
    follow(&store, 5, 2).await;
    post(&store, 2, 2, 20).await;
    post(&store, 3, 1, 15).await;
    assert_eq!(inbox(&store, 5).await, [2, 3, 1], "in their order, also what was there before");
    set(&store, "posts", 1, doc! { "$set": { "at": 25, "text": "new" } }).await;
    assert_eq!(inbox(&store, 5).await, [1, 2, 3]);
    let row =
        store.collection("net", "inboxes").find_one(doc! { "itemId": 1 }, None).await.expect("read").expect("a row");
    let expected = doc! {
        "_id": { "owner": 5, "item": 1 }, "ownerId": 5, "itemId": 1, "authorId": 1, "text": "new", "at": 25,
    };
    assert_eq!(row, expected);

    // Full: the oldest falls off, and what is older still never comes.
    post(&store, 4, 1, 30).await;
    post(&store, 5, 2, 40).await;
    assert_eq!(inbox(&store, 5).await, [5, 4, 1, 2]);
    post(&store, 6, 2, 12).await;
    delete(&store, "posts", 4).await;
    assert_eq!(inbox(&store, 5).await, [5, 1, 2], "what fell off doesn't come back");

    set(&store, "follows", 5_001, doc! { "$set": { "status": "muted" } }).await;
    assert_eq!(inbox(&store, 5).await, [5, 2]);
    set(&store, "follows", 5_001, doc! { "$set": { "status": "active" } }).await;
    set(&store, "posts", 5, doc! { "$set": { "authorId": 3 } }).await;
    assert_eq!(inbox(&store, 5).await, [1, 2], "its new author is not followed");
    assert_eq!(drifted(&store, &model, false).await, []);

    // An author with more followers than the threshold is read, not pushed; with fewer again, what was written comes.
    for reader in [2, 3, 4] {
        follow(&store, reader, 1).await;
    }
    post(&store, 7, 1, 50).await;
    assert_eq!(inbox(&store, 5).await, [1, 2]);
    assert_eq!(drifted(&store, &model, false).await, []);
    let service = Service::start(&engine, &models).expect("starts");
    delete(&store, "follows", 2_001).await;
    assert!(service.settle(&engine, &models, Duration::from_secs(60)).expect("settles"), "{:?}", service.status());
    assert_eq!(inbox(&store, 5).await, [7, 1, 2]);
    assert_eq!(inbox(&store, 2).await, [0; 0]);
    delete(&store, "users", 1).await;
    assert!(service.settle(&engine, &models, Duration::from_secs(60)).expect("settles"), "{:?}", service.status());
    assert_eq!(inbox(&store, 5).await, [2], "posts go with their author, rows with their post");
    assert_eq!(drifted(&store, &model, false).await, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_item_with_many_followers_comes_in_batches() {
    let model = parsed(&MODEL.replace("threshold=3", "threshold=100_000"));
    let (store, models) = network(&model).await;
    let engine = store.engine().expect("embedded").clone();
    let edge = |reader: i32| doc! { "_id": reader, "readerId": reader, "authorId": 1, "status": "active" };
    store.collection("net", "follows").insert_many((10..700).map(edge).collect(), None).await.expect("inserted");
    post(&store, 1, 1, 1).await;
    let count = || async { store.collection("net", "inboxes").count(doc! {}, None).await.expect("counts") };
    assert_eq!(count().await, 0, "it is noted");
    let service = Service::start(&engine, &models).expect("starts");
    assert!(service.settle(&engine, &models, Duration::from_secs(60)).expect("settles"), "{:?}", service.status());
    assert_eq!(count().await, 690);
    set(&store, "posts", 1, doc! { "$set": { "text": "new" } }).await;
    assert!(service.settle(&engine, &models, Duration::from_secs(60)).expect("settles"), "{:?}", service.status());
    assert_eq!(store.collection("net", "inboxes").count(doc! { "text": "new" }, None).await.expect("counts"), 690);
    delete(&store, "posts", 1).await;
    assert!(service.settle(&engine, &models, Duration::from_secs(60)).expect("settles"), "{:?}", service.status());
    assert_eq!(count().await, 0);
    assert_eq!(drifted(&store, &model, false).await, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn inboxes_are_filled_from_what_was_there_and_repaired() {
    let folder = tempfile::tempdir().expect("a folder");
    let model = parsed(MODEL);
    let open = || Store::embedded(active::open(folder.path(), Options::system()).expect("opens").0);
    let close = |store: Store| store.engine().expect("embedded").clone().close().expect("closes");
    let store = open();
    for (id, at) in [(1, 10), (2, 30), (3, 20), (4, 40), (5, 5)] {
        post(&store, id, 1, at).await;
    }
    follow(&store, 5, 1).await;
    follow(&store, 6, 1).await;
    applied(&store, &model).await;
    assert_eq!(inbox(&store, 5).await, [4, 2, 3, 1], "the newest of what was there");
    assert_eq!(drifted(&store, &model, false).await, []);
    close(store);

    let store = Store::embedded(active::open_around(folder.path(), Options::system()).expect("opens"));
    let row = |owner: i32, item: i32| -> Document {
        doc! { "owner": owner, "item": item }
    };
    let inboxes = store.collection("net", "inboxes");
    inboxes.delete_one(doc! { "_id": row(5, 4) }, None).await.expect("deleted");
    let wrong = doc! { "$set": { "text": "wrong" } };
    inboxes.update_one(doc! { "_id": row(6, 2) }, wrong, Update::default(), None).await.expect("updated");
    insert(&store, "inboxes", doc! { "_id": row(9, 2), "ownerId": 9, "itemId": 2, "authorId": 1, "at": 30 }).await;
    drop(inboxes);
    close(store);

    let store = open();
    let found = drifted(&store, &model, true).await;
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].0 == "home" && found[0].1 >= 3, "{found:?}");
    drifted(&store, &model, true).await;
    assert_eq!(drifted(&store, &model, false).await, [], "a second run finds nothing");
    assert_eq!(inbox(&store, 5).await, [4, 2, 3, 1]);
    assert_eq!(inbox(&store, 9).await, [0; 0]);
    let text: Bson = "post 2".into();
    let right = store.collection("net", "inboxes").find_one(doc! { "_id": row(6, 2) }, None).await.expect("read");
    assert_eq!(right.and_then(|row| row.get("text").cloned()), Some(text));
    close(store);
}
