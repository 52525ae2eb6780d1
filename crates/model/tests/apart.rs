//! Fields split off, fields compressed, stock with its ledger and holds: kept in every write, audited, repaired.

use bson::{Bson, DateTime, Document, doc};
use engine::{Engine, Options};
use model::audit::{Auditor, Finding};
use model::keep::active;
use model::keep::compress::unpack;
use model::problem::Sources;
use model::{Model, apply};
use std::path::Path;
use store::{Store, Update};

const MODEL: &str = r#"
entity user collection=users id=int {
  field name string required
  field insurance string
  field cards string list max=5
  split profile collection=userProfiles { fields insurance cards }
}
entity article collection=articles id=int {
  field title string
  field body string
  compress body above=200 with=gzip
}
entity sku collection=skus id=string {
  field name string
  stock available kept ledger=ledger holds=holds held=held hold-for="10m"
}
"#;

fn parsed(text: &str) -> Model {
    model::parse(Sources::single("model.sheaf.kdl", text)).unwrap_or_else(|problems| panic!("{problems}")).model
}

fn open(folder: &Path) -> Store {
    Store::embedded(active::open(folder, Options::system()).expect("the folder opens").0)
}

fn close(store: Store) {
    store.engine().expect("it is embedded").clone().close().expect("closes");
}

async fn applied(store: &Store, model: &Model) {
    let actions = apply::plan(store, "shop", model, false).await.expect("a plan");
    apply::run(store, "shop", model, &actions.list, &mut |_| {}).await.expect("is applied");
}

async fn audited(store: &Store, model: &Model, repair: bool) -> Vec<Finding> {
    let mut auditor = Auditor::new(store, "shop", model).expect("an audit");
    auditor.options.repair = repair;
    auditor.run().await.expect("is audited")
}

async fn drifted(store: &Store, model: &Model) -> Vec<(String, u64)> {
    let found = audited(store, model, false).await;
    found.into_iter().filter(|one| one.drifted > 0).map(|one| (one.declaration, one.drifted)).collect()
}

async fn one(store: &Store, collection: &str, id: impl Into<Bson>) -> Option<Document> {
    store.collection("shop", collection).find_one(doc! { "_id": id.into() }, None).await.expect("is read")
}

async fn insert(store: &Store, collection: &str, document: Document) -> store::Result<()> {
    store.collection("shop", collection).insert_one(document, None).await
}

async fn set(store: &Store, collection: &str, id: impl Into<Bson>, change: Document) -> store::Result<u64> {
    let filter = doc! { "_id": id.into() };
    let done = store.collection("shop", collection).update_one(filter, change, Update::default(), None).await?;
    Ok(done.modified)
}

async fn quantities(store: &Store, sku: &str) -> (i64, i64) {
    let sku = one(store, "skus", sku).await.expect("there");
    (sku.get_i64("available").expect("kept"), sku.get_i64("held").expect("kept"))
}

#[tokio::test(flavor = "multi_thread")]
async fn split_fields_stand_in_their_own_document_whoever_writes_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = open(folder.path());
    let model = parsed(MODEL);
    let whole = |id: i32| doc! { "_id": id, "name": "Ann", "insurance": "A-1", "cards": ["visa"] };
    insert(&store, "users", whole(1)).await.expect("inserted before the model");
    applied(&store, &model).await;
    assert_eq!(one(&store, "users", 1).await, Some(doc! { "_id": 1, "name": "Ann" }));
    assert_eq!(one(&store, "userProfiles", 1).await, Some(doc! { "_id": 1, "insurance": "A-1", "cards": ["visa"] }));

    insert(&store, "users", whole(2)).await.expect("inserted");
    set(&store, "users", 2, doc! { "$set": { "insurance": "B-2", "name": "Bea" } }).await.expect("updated");
    assert_eq!(one(&store, "users", 2).await, Some(doc! { "_id": 2, "name": "Bea" }));
    let part = one(&store, "userProfiles", 2).await.expect("there");
    assert_eq!(part, doc! { "_id": 2, "insurance": "B-2", "cards": ["visa"] }, "the other field stays");

    // In a transaction, and by a replacement that says nothing of the other part.
    let mut session = store.start_session().await.expect("a session");
    session.start_transaction().await.expect("starts");
    let users = store.collection("shop", "users");
    users.insert_one(whole(3), Some(&mut session)).await.expect("inserted");
    users
        .replace_one(doc! { "_id": 1 }, doc! { "name": "Anne" }, Update::default(), Some(&mut session))
        .await
        .expect("replaced");
    session.commit_transaction().await.expect("commits");
    assert_eq!(one(&store, "users", 3).await, Some(doc! { "_id": 3, "name": "Ann" }));
    assert_eq!(one(&store, "userProfiles", 3).await.expect("there").get_str("insurance").ok(), Some("A-1"));
    assert_eq!(one(&store, "userProfiles", 1).await.expect("there").get_str("insurance").ok(), Some("A-1"));
    let refused = set(&store, "users", 3, doc! { "$set": { "insurance": 5 } }).await.expect_err("is no text");
    assert_eq!(refused.code, Some(121), "the part has the validator of its fields");

    users.delete_one(doc! { "_id": 3 }, None).await.expect("deleted");
    assert_eq!(one(&store, "userProfiles", 3).await, None, "the parts go with their document");
    assert_eq!(drifted(&store, &model).await, []);
    drop(users);
    close(store);
}

#[tokio::test(flavor = "multi_thread")]
async fn large_fields_are_compressed_in_every_write() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = open(folder.path());
    let model = parsed(MODEL);
    let body = |word: &str| format!("{word}, ").repeat(200);
    let article = |id: i32| doc! { "_id": id, "title": "t", "body": body("first") };
    insert(&store, "articles", article(1)).await.expect("inserted before the model");
    applied(&store, &model).await;
    insert(&store, "articles", article(2)).await.expect("inserted");
    insert(&store, "articles", doc! { "_id": 3, "body": "short" }).await.expect("inserted");
    set(&store, "articles", 2, doc! { "$set": { "body": body("second") } }).await.expect("updated");
    for (id, word) in [(1, "first"), (2, "second")] {
        let stored = one(&store, "articles", id).await.expect("there").get("body").expect("a body").clone();
        assert!(matches!(&stored, Bson::Binary(binary) if binary.bytes.len() < 100), "{stored}");
        assert_eq!(unpack(&stored).expect("unpacks"), Bson::String(body(word)));
    }
    let before = one(&store, "articles", 2).await.expect("there").get("body").cloned();
    set(&store, "articles", 2, doc! { "$set": { "title": "new" } }).await.expect("updated");
    assert_eq!(one(&store, "articles", 2).await.expect("there").get("body").cloned(), before, "once only");
    assert_eq!(one(&store, "articles", 3).await.expect("there").get_str("body").ok(), Some("short"));
    assert_eq!(drifted(&store, &model).await, []);
    close(store);
}

#[tokio::test(flavor = "multi_thread")]
async fn stock_is_its_ledger_less_its_holds_and_never_below_zero() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = open(folder.path());
    let model = parsed(MODEL);
    insert(&store, "skus", doc! { "_id": "old", "available": 7_i64, "held": 0_i64 }).await.expect("before the model");
    applied(&store, &model).await;
    let line = |sku: &str, quantity: i64| doc! { "item": sku, "quantity": quantity, "why": "delivery", "who": "Bo" };
    let hold = |id: i32, sku: &str, quantity: i32| doc! { "_id": id, "item": sku, "quantity": quantity, "who": "Cy" };
    // What was there before the ledger stands in its first line.
    insert(&store, "ledger", line("old", 3)).await.expect("appended");
    assert_eq!(quantities(&store, "old").await, (10, 0));

    insert(&store, "skus", doc! { "_id": "lamp", "name": "lamp" }).await.expect("inserted");
    let refused = set(&store, "skus", "lamp", doc! { "$set": { "available": 5_i64 } }).await.expect_err("is kept");
    assert!(refused.message.contains("sku.available"), "{refused}");
    insert(&store, "ledger", line("lamp", 5)).await.expect("appended");
    insert(&store, "holds", hold(1, "lamp", 2)).await.expect("held");
    insert(&store, "holds", hold(2, "lamp", 3)).await.expect("held");
    assert_eq!(quantities(&store, "lamp").await, (0, 5));
    let refused = insert(&store, "holds", hold(3, "lamp", 1)).await.expect_err("nothing is left");
    assert!(refused.code == Some(121) && refused.message.contains("below zero"), "{refused}");
    for (bad, why) in [
        (hold(3, "none", 1), "no such document"),
        (hold(3, "lamp", 0), "above zero"),
        (doc! { "_id": 3, "item": "lamp", "quantity": -4 }, "above zero"),
    ] {
        let refused = insert(&store, "holds", bad).await.expect_err(why);
        assert!(refused.message.contains(why), "{refused}");
    }
    let refused = insert(&store, "ledger", doc! { "item": "lamp", "quantity": 0.5 }).await.expect_err("is not whole");
    assert!(refused.message.contains("whole"), "{refused}");

    // Sold: out of the holds and out of the ledger at once.
    set(&store, "holds", 1, doc! { "$set": { "sold": true } }).await.expect("sold");
    assert_eq!(quantities(&store, "lamp").await, (0, 3));
    let sold =
        store.collection("shop", "ledger").find_one(doc! { "hold": 1 }, None).await.expect("read").expect("a line");
    let numbers = ["quantity", "before", "after"].map(|name| sold.get_i64(name).expect("a number"));
    assert_eq!((numbers, sold.get_str("who").ok()), ([-2, 5, 3], Some("Cy")));
    let mut session = store.start_session().await.expect("a session");
    session.start_transaction().await.expect("starts");
    insert(&store, "ledger", line("old", 1)).await.expect("appended");
    let holds = store.collection("shop", "holds");
    holds.insert_one(hold(7, "old", 4), Some(&mut session)).await.expect("noted");
    let sold = doc! { "$set": { "sold": true } };
    holds.update_one(doc! { "_id": 7 }, sold, Update::default(), Some(&mut session)).await.expect("noted");
    session.commit_transaction().await.expect("commits");
    drop(holds);
    assert_eq!(quantities(&store, "old").await, (7, 0), "held and sold in one transaction");
    // Expired: back, by the sweep that deletes it.
    let expires = one(&store, "holds", 2).await.expect("there").get_datetime("expiresAt").copied().expect("a date");
    assert!(expires > DateTime::now());
    let past = doc! { "$set": { "expiresAt": DateTime::from_millis(1_000) } };
    set(&store, "holds", 2, past).await.expect("updated");
    // A sweep passes over what it can't delete just now; the next one comes.
    for _ in 0..50 {
        store.engine().expect("embedded").delete_expired().expect("swept");
        if one(&store, "holds", 2).await.is_none() {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    assert_eq!(one(&store, "holds", 2).await, None);
    assert_eq!(quantities(&store, "lamp").await, (3, 0));
    let refused = insert(&store, "ledger", line("lamp", -4)).await.expect_err("only three are there");
    assert!(refused.message.contains("below zero"), "{refused}");
    assert_eq!(drifted(&store, &model).await, []);
    close(store);
}

#[tokio::test(flavor = "multi_thread")]
async fn stock_is_exact_in_transactions_and_among_threads() {
    let store = Store::in_memory().expect("a store");
    store.engine().expect("embedded").add_hook(active::Models::new());
    let model = parsed(MODEL);
    applied(&store, &model).await;
    insert(&store, "skus", doc! { "_id": "lamp" }).await.expect("inserted");
    insert(&store, "ledger", doc! { "item": "lamp", "quantity": 40 }).await.expect("appended");
    let mut buyers = Vec::new();
    for buyer in 0..8_i32 {
        let store = store.clone();
        buyers.push(tokio::spawn(async move {
            let mut held = 0;
            for turn in 0..12_i32 {
                let id = buyer * 100 + turn;
                let hold = doc! { "_id": id, "item": "lamp", "quantity": 1 };
                if turn % 2 == 0 {
                    held += i64::from(insert(&store, "holds", hold).await.is_ok());
                    continue;
                }
                let holds = store.collection("shop", "holds");
                let done = loop {
                    let mut session = store.start_session().await.expect("a session");
                    session.start_transaction().await.expect("starts");
                    holds.insert_one(hold.clone(), Some(&mut session)).await.expect("noted");
                    match session.commit_transaction().await {
                        Err(error) if error.has_label("TransientTransactionError") => {}
                        done => break done,
                    }
                };
                match done {
                    Ok(()) => held += 1,
                    Err(error) => assert_eq!(error.code, Some(121), "{error}"),
                }
            }
            held
        }));
    }
    let mut held = 0;
    for buyer in buyers {
        held += buyer.await.expect("ends well");
    }
    assert_eq!((held, quantities(&store, "lamp").await), (40, (0, 40)));
    assert_eq!(drifted(&store, &model).await, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_went_wrong_around_the_hooks_is_found_and_put_right() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = open(folder.path());
    let model = parsed(MODEL);
    applied(&store, &model).await;
    insert(&store, "skus", doc! { "_id": "lamp" }).await.expect("inserted");
    insert(&store, "ledger", doc! { "item": "lamp", "quantity": 9 }).await.expect("appended");
    insert(&store, "holds", doc! { "_id": 1, "item": "lamp", "quantity": 2 }).await.expect("held");
    insert(&store, "users", doc! { "_id": 1, "name": "Ann", "insurance": "A" }).await.expect("inserted");
    close(store);

    let refused = Engine::open(folder.path(), Options::system()).err().expect("not without its model");
    assert!(refused.message.contains("model"), "{refused}");
    let store = Store::embedded(active::open_around(folder.path(), Options::system()).expect("opens"));
    insert(&store, "articles", doc! { "_id": 1, "body": "word ".repeat(100) }).await.expect("as it comes");
    set(&store, "users", 1, doc! { "$set": { "insurance": "B" } }).await.expect("as it comes");
    insert(&store, "userProfiles", doc! { "_id": 9 }).await.expect("of nobody");
    // Four were lost, and a hold came of which nobody knows.
    set(&store, "skus", "lamp", doc! { "$inc": { "available": -4_i64 } }).await.expect("as it comes");
    insert(&store, "holds", doc! { "_id": 2, "item": "lamp", "quantity": 1 }).await.expect("as it comes");
    close(store);

    let store = open(folder.path());
    let expected = ["article.body", "sku.available", "user.profile"].map(|name| (name.to_owned(), 1));
    assert_eq!(drifted(&store, &model).await, expected);
    let repaired = audited(&store, &model, true).await;
    assert!(repaired.iter().all(|one| one.drifted == one.repaired), "{repaired:?}");
    assert_eq!(repaired.iter().map(|one| one.orphans).sum::<u64>(), 1, "the part of nobody");
    assert_eq!(drifted(&store, &model).await, [], "a second run finds nothing");
    assert_eq!(quantities(&store, "lamp").await, (2, 3));
    assert_eq!(one(&store, "userProfiles", 1).await.expect("there").get_str("insurance").ok(), Some("B"));
    let correction = doc! { "item": "lamp", "correction": true };
    let line = store.collection("shop", "ledger").find_one(correction, None).await.expect("read").expect("a line");
    assert_eq!(
        (line.get_i64("quantity").ok(), line.get_i64("after").ok()),
        (Some(-4), Some(5)),
        "the ledger explains what is missing"
    );
    close(store);
}
