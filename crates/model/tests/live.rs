//! A model's life on a store: applied, changed, audited, repaired, dropped, opened again.

use bson::{Bson, Document, doc};
use engine::hook::{DocumentWrite, HookScope, WriteHook};
use engine::{Engine, Namespace, Options};
use model::audit::{Auditor, Finding};
use model::keep::active::{self, Models};
use model::keep::service::Service;
use model::problem::Sources;
use model::{Model, apply};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use store::{Aggregate, Find, Store, Update};

const BEFORE: &str = r#"
entity user collection=users id=int {
  field name string
  count orderCount of=order by=userId { where status paid }
}
entity order collection=orders id=int {
  ref userId to=user
  enum status created paid shipped
  field total long
}
"#;

const AFTER: &str = r#"
entity user collection=users id=int {
  field name string
  count orderCount of=order by=userId { where status paid shipped }
  sum spent of=order by=userId field=total
  max largest of=order by=userId field=total
  recent lastOrders 2 of=order by=userId order=total { fields status }
}
entity order collection=orders id=int {
  ref userId to=user
  live buyer via=userId { fields name }
  enum status created paid shipped
  field total long
}
edge friends from=user to=user mutual collection=friends count-from=friendCount
rollup byStatus of=order collection=byStatus { by status; count orders; sum sales field=total }
"#;

fn parsed(text: &str) -> Model {
    model::parse(Sources::single("model.sheaf.kdl", text)).unwrap_or_else(|problems| panic!("{problems}")).model
}

fn open(folder: &Path) -> (Store, Arc<Models>) {
    let (engine, models) = active::open(folder, Options::system()).expect("the folder opens");
    (Store::embedded(engine), models)
}

fn close(store: Store) {
    store.engine().expect("it is embedded").clone().close().expect("closes");
}

async fn applied(store: &Store, model: &Model) -> usize {
    let actions = apply::plan(store, "shop", model, false).await.expect("a plan");
    apply::run(store, "shop", model, &actions.list, &mut |_| {}).await.expect("is applied");
    actions.list.len()
}

async fn audited(store: &Store, model: &Model, repair: bool) -> Vec<Finding> {
    let mut auditor = Auditor::new(store, "shop", model).expect("an audit");
    auditor.options.repair = repair;
    auditor.run().await.expect("is audited")
}

async fn drifted(store: &Store, model: &Model) -> Vec<Finding> {
    audited(store, model, false).await.into_iter().filter(|one| one.drifted > 0 || one.skipped.is_some()).collect()
}

async fn one(store: &Store, collection: &str, id: impl Into<Bson>) -> Document {
    let id: Bson = id.into();
    let found = store.collection("shop", collection).find_one(doc! { "_id": id.clone() }, None).await;
    found.expect("is read").unwrap_or_else(|| panic!("{collection} has no {id}"))
}

fn order(id: i32, user: i32, status: &str, total: i64) -> Document {
    doc! { "_id": id, "userId": user, "status": status, "total": total }
}

/// Two users, and orders of three: the third user is not there yet.
async fn filled(store: &Store) {
    let users = (1..=2).map(|id| doc! { "_id": id, "name": format!("user {id}") }).collect();
    store.collection("shop", "users").insert_many(users, None).await.expect("inserted");
    let status = ["created", "paid", "shipped"];
    let orders = (0..700).map(|id| order(id, 1 + id % 3, status[id as usize % 7 % 3], i64::from(id))).collect();
    store.collection("shop", "orders").insert_many(orders, None).await.expect("inserted");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_takes_effect_on_data_that_were_there_first_and_stays_in_the_folder() {
    let folder = tempfile::tempdir().expect("a folder");
    let (store, _) = open(folder.path());
    filled(&store).await;
    let (before, after) = (parsed(BEFORE), parsed(AFTER));
    assert!(applied(&store, &before).await > 2);
    let paid =
        store.collection("shop", "orders").count(doc! { "userId": 1, "status": "paid" }, None).await.expect("counts");
    assert_eq!(one(&store, "users", 1).await.get_i64("orderCount").expect("kept"), paid as i64);
    assert_eq!(applied(&store, &before).await, 0, "the second time there is nothing to do");

    assert!(applied(&store, &after).await > 0);
    assert_eq!(drifted(&store, &after).await, vec![]);
    let user = one(&store, "users", 1).await;
    let mine = doc! { "userId": 1, "status": { "$in": ["paid", "shipped"] } };
    let count = store.collection("shop", "orders").count(mine, None).await.expect("counts");
    assert_eq!(user.get_i64("orderCount").expect("kept"), count as i64);
    assert_eq!(one(&store, "orders", 0).await.get_document("buyer").expect("kept"), &doc! { "name": "user 1" });

    // The user that comes after its orders.
    store.collection("shop", "users").insert_one(doc! { "_id": 3, "name": "late" }, None).await.expect("inserted");
    let sum: i64 = (0..700).filter(|id| id % 3 == 2).sum();
    assert_eq!(one(&store, "users", 3).await.get_i64("spent").expect("kept"), sum);
    assert_eq!(drifted(&store, &after).await, vec![]);

    // Nobody else writes what is kept, and a replacement doesn't lose it.
    let users = store.collection("shop", "users");
    let refused = users.update_one(doc! { "_id": 1 }, doc! { "$set": { "spent": 1 } }, Update::default(), None).await;
    let refused = refused.expect_err("is kept");
    assert_eq!(refused.code, Some(121));
    assert!(refused.message.contains("user.spent"), "{refused}");
    users.replace_one(doc! { "_id": 1 }, doc! { "name": "new" }, Update::default(), None).await.expect("replaced");
    assert_eq!(one(&store, "users", 1).await.get("spent"), user.get("spent"));
    drop(users);
    close(store);

    let refused = Engine::open(folder.path(), Options::system()).err().expect("not without its model");
    assert!(refused.message.contains("model"), "{refused}");
    let (store, models) = open(folder.path());
    assert_eq!(models.databases(), vec!["shop".to_owned()]);
    store.collection("shop", "orders").insert_one(order(900, 1, "paid", 1_000), None).await.expect("inserted");
    assert_eq!(one(&store, "users", 1).await.get_i64("largest").expect("kept"), 1_000);
    assert_eq!(drifted(&store, &after).await, vec![]);
    close(store);
}

/// Writes as it pleases, as if the model were not there.
struct Blind;

impl WriteHook for Blind {
    fn layer(&self) -> Option<&'static str> {
        Some(active::LAYER)
    }

    fn watches(&self, _: &Namespace) -> bool {
        false
    }

    fn before_write(
        &self,
        _: DocumentWrite<'_>,
        _: &mut dyn HookScope,
    ) -> engine::Result<Option<bson::RawDocumentBuf>> {
        Ok(None)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_audit_finds_each_planted_drift_and_nothing_else_and_repairs_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let (store, _) = open(folder.path());
    let model = parsed(AFTER);
    filled(&store).await;
    applied(&store, &model).await;
    let friends = store.collection("shop", "friends");
    friends.insert_one(doc! { "_id": "a", "from": 1, "to": 2 }, None).await.expect("inserted");
    assert_eq!(one(&store, "users", 2).await.get_i64("friendCount").expect("kept"), 1);
    drop(friends);
    close(store);

    let blind: Vec<Arc<dyn WriteHook>> = vec![Arc::new(Blind)];
    let engine = Engine::open_with(folder.path(), Options::system(), blind).expect("opens");
    let store = Store::embedded(engine);
    let set = |collection: &'static str, id: Bson, change: Document| {
        let collection = store.collection("shop", collection);
        async move {
            let done = collection.update_one(doc! { "_id": id }, change, Update::default(), None).await;
            assert_eq!(done.expect("updated").modified, 1);
        }
    };
    set("users", 1.into(), doc! { "$inc": { "orderCount": 3_i64 } }).await;
    set("users", 2.into(), doc! { "$set": { "largest": 5_i64 } }).await;
    set("users", 1.into(), doc! { "$unset": { "lastOrders": 1 } }).await;
    set("orders", 4.into(), doc! { "$set": { "buyer.name": "somebody" } }).await;
    set("byStatus", doc! { "status": "paid" }.into(), doc! { "$inc": { "sales": -7_i64 } }).await;
    let rows = store.collection("shop", "friends");
    assert_eq!(rows.delete_one(doc! { "from": 2, "to": 1 }, None).await.expect("deleted"), 1);
    // An order of the user that isn't there: what waits for that user is short of it.
    store.collection("shop", "orders").insert_one(order(902, 3, "created", 50), None).await.expect("inserted");
    drop(rows);
    close(store);

    let (store, _) = open(folder.path());
    let mut found: Vec<(String, u64)> =
        drifted(&store, &model).await.into_iter().map(|one| (one.declaration, one.drifted)).collect();
    found.sort();
    // The deleted row was counted, and so was the order that slipped in.
    let expected = [
        ("byStatus", 2),
        ("friends", 1),
        ("order.buyer", 1),
        ("user.friendCount", 1),
        ("user.largest", 1),
        ("user.lastOrders", 1),
        ("user.orderCount", 1),
        ("user.spent", 1),
    ];
    let expected: Vec<(String, u64)> = expected.iter().map(|(name, n)| ((*name).to_owned(), *n)).collect();
    assert_eq!(found, expected);
    let orphans: u64 = audited(&store, &model, false).await.iter().map(|one| one.orphans).sum();
    assert_eq!(orphans, 234, "the orders of the user that isn't there");

    let repaired = audited(&store, &model, true).await;
    assert!(repaired.iter().all(|one| one.drifted == one.repaired), "{repaired:?}");
    assert_eq!(drifted(&store, &model).await, vec![], "a second run finds nothing");
    store.collection("shop", "users").insert_one(doc! { "_id": 3, "name": "late" }, None).await.expect("inserted");
    assert_eq!(drifted(&store, &model).await, vec![]);
    close(store);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_audit_that_was_stopped_goes_on_where_it_was() {
    let store = Store::in_memory().expect("a store");
    store.engine().expect("embedded").add_hook(Models::new());
    let model = parsed(AFTER);
    filled(&store).await;
    applied(&store, &model).await;
    let whole = audited(&store, &model, false).await;
    let mut state = None;
    let mut steps = 0;
    let resumed = loop {
        let mut auditor = Auditor::new(&store, "shop", &model).expect("an audit");
        auditor.resume(state.as_ref().and_then(model::audit::State::from_bson));
        let more = auditor.step().await.expect("a step");
        steps += 1;
        assert!(steps < 500);
        if !more {
            break auditor.findings().to_vec();
        }
        // A rollup is added up in memory and begins anew.
        while auditor.current().kind == "rollup" && auditor.step().await.expect("a step") {}
        state = Some(auditor.state().to_bson());
    };
    assert!(steps > 20, "{steps}");
    assert_eq!(resumed, whole);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collection_that_goes_as_a_whole_leaves_no_counts_behind() {
    let store = Store::in_memory().expect("a store");
    store.engine().expect("embedded").add_hook(Models::new());
    let model = parsed(AFTER);
    filled(&store).await;
    applied(&store, &model).await;
    let orders = store.collection("shop", "orders");
    let merge = vec![
        doc! { "$match": { "userId": 1 } },
        doc! { "$set": { "status": "created", "total": 1_i64 } },
        doc! { "$unset": "buyer" },
        doc! { "$merge": "orders" },
    ];
    orders.aggregate(merge, Aggregate::default(), None).await.expect("merged").collect(None).await.expect("merged");
    assert_eq!(one(&store, "users", 1).await.get_i64("orderCount").expect("kept"), 0);
    assert_eq!(drifted(&store, &model).await, vec![]);
    let out = vec![doc! { "$match": { "_id": { "$lt": 10 } } }, doc! { "$unset": "buyer" }, doc! { "$out": "orders" }];
    orders.aggregate(out, Aggregate::default(), None).await.expect("out").collect(None).await.expect("out");
    assert_eq!(orders.count(doc! {}, None).await.expect("counts"), 10);
    assert_eq!(drifted(&store, &model).await, vec![]);
    assert_eq!(orders.rename("old", false).await.err().expect("is refused").code, Some(20));
    orders.drop().await.expect("dropped");
    let user = one(&store, "users", 1).await;
    assert_eq!((user.get_i64("orderCount").ok(), user.get_i64("spent").ok()), (Some(0), Some(0)), "{user}");
    assert!(user.get("largest").is_none(), "{user}");
    let groups = store.collection("shop", "byStatus").count(doc! {}, None).await.expect("counts");
    assert_eq!(groups, 0);
    let models = store.collection(active::DATABASE, active::MODELS);
    assert_eq!(models.drop().await.expect_err("stays").code, Some(20));
    let rewritten = models.update_many(doc! {}, doc! { "$set": { "model": "" } }, Update::default(), None).await;
    assert!(rewritten.is_err(), "an activation is never rewritten");
}

#[tokio::test(flavor = "multi_thread")]
async fn both_halves_of_a_mutual_edge_may_be_written() {
    let store = Store::in_memory().expect("a store");
    store.engine().expect("embedded").add_hook(Models::new());
    let model = parsed(AFTER);
    filled(&store).await;
    applied(&store, &model).await;
    let friends = store.collection("shop", "friends");
    friends.insert_one(doc! { "_id": "a", "from": 1, "to": 2 }, None).await.expect("inserted");
    friends.insert_one(doc! { "_id": "b", "from": 2, "to": 1 }, None).await.expect("the other half is no conflict");
    assert_eq!(friends.count(doc! {}, None).await.expect("counts"), 2);
    assert_eq!(one(&store, "users", 1).await.get_i64("friendCount").ok(), Some(1));
    let again = friends.insert_one(doc! { "_id": "c", "from": 2, "to": 1 }, None).await;
    assert!(again.expect_err("they are friends already").is_duplicate_key());
    assert_eq!(drifted(&store, &model).await, vec![]);
    friends.delete_one(doc! { "_id": "b" }, None).await.expect("deleted");
    assert_eq!(friends.count(doc! {}, None).await.expect("counts"), 0);
    assert_eq!(one(&store, "users", 2).await.get_i64("friendCount").ok(), Some(0));
}

const REVIEWS: &str = r#"
entity product collection=products id=int {
  field name string
  count reviewCount of=review by=productId
  sum shown of=review by=productId field=weight { where visible #true }
}
entity review collection=reviews id=int {
  ref productId to=product
  live product via=productId { fields name reviewCount shown }
  field weight long
  field visible bool
  sum noteWeight of=note by=reviewId field=seen
}
entity note collection=notes id=int {
  ref reviewId to=review
  live via=reviewId { field seen from="product.reviewCount" }
}
"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_of_a_counter_that_its_holder_adds_to_shows_the_new_count_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let (store, _) = open(folder.path());
    let model = parsed(REVIEWS);
    applied(&store, &model).await;
    let (products, reviews) = (store.collection("shop", "products"), store.collection("shop", "reviews"));
    reviews.create_index(doc! { "product.reviewCount": 1 }, false).await.expect("an index");
    for id in 1..=2 {
        products.insert_one(doc! { "_id": id, "name": format!("p{id}") }, None).await.expect("inserted");
    }
    let review = |id: i32, product: i32| doc! { "_id": id, "productId": product, "weight": 5_i64, "visible": false };
    let counted = async |id: i32| {
        let review = one(&store, "reviews", id).await;
        let copy = review.get_document("product").expect("a copy");
        let (count, shown) = (copy.get_i64("reviewCount").expect("a count"), copy.get_i64("shown").expect("a sum"));
        // The index finds it under this count and no other.
        for other in 0..5_i64 {
            let filter = doc! { "_id": { "$in": [id] }, "product.reviewCount": other };
            let options = Find { hint: Some(doc! { "product.reviewCount": 1 }.into()), ..Find::default() };
            let found = reviews.find(filter, options, None).await.expect("is read");
            assert_eq!(found.len(), usize::from(other == count), "{id}: {other}, {count}");
        }
        (count, shown)
    };
    reviews.insert_one(review(1, 1), None).await.expect("inserted");
    assert_eq!(counted(1).await, (1, 0));
    reviews.insert_one(review(2, 1), None).await.expect("inserted");
    store.collection("shop", "notes").insert_one(doc! { "_id": 1, "reviewId": 2 }, None).await.expect("inserted");
    assert_eq!((counted(1).await, counted(2).await), ((2, 0), (2, 0)));
    assert_eq!(one(&store, "reviews", 2).await.get_i64("noteWeight").expect("kept"), 2);

    let show = doc! { "$set": { "visible": true } };
    reviews.update_one(doc! { "_id": 2 }, show, Update::default(), None).await.expect("updated");
    assert_eq!((counted(1).await, counted(2).await), ((2, 5), (2, 5)));
    // What copies the copy follows, and what adds that up.
    let to_other = doc! { "$set": { "productId": 2 } };
    reviews.update_one(doc! { "_id": 2 }, to_other, Update::default(), None).await.expect("updated");
    assert_eq!((counted(1).await, counted(2).await), ((1, 0), (1, 5)));
    assert_eq!(one(&store, "notes", 1).await.get_i64("seen").expect("kept"), 1);
    assert_eq!(one(&store, "reviews", 2).await.get_i64("noteWeight").expect("kept"), 1);
    reviews.insert_one(review(3, 1), None).await.expect("inserted");
    reviews.delete_one(doc! { "_id": 1 }, None).await.expect("deleted");
    assert_eq!(counted(3).await, (1, 0));
    // Two in one transaction see each other.
    let mut session = store.start_session().await.expect("a session");
    session.start_transaction().await.expect("starts");
    for id in 4..=5 {
        reviews.insert_one(review(id, 1), Some(&mut session)).await.expect("inserted");
    }
    session.commit_transaction().await.expect("commits");
    assert_eq!((counted(3).await, counted(4).await, counted(5).await), ((3, 0), (3, 0), (3, 0)));
    assert_eq!(drifted(&store, &model).await, vec![]);
    close(store);
}

const VERSIONED: &str = r#"
entity author collection=authors id=int { field name string }
entity book collection=books id=int {
  ref authorId to=author
  live author via=authorId { fields name }
  field title string
  version
}
"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_that_changes_a_source_and_a_holder_keeps_the_copy() {
    let folder = tempfile::tempdir().expect("a folder");
    let (store, _) = open(folder.path());
    let model = parsed(VERSIONED);
    applied(&store, &model).await;
    let (authors, books) = (store.collection("shop", "authors"), store.collection("shop", "books"));
    authors.insert_one(doc! { "_id": 1, "name": "Ann" }, None).await.expect("inserted");
    books.insert_one(doc! { "_id": 1, "authorId": 1, "title": "a" }, None).await.expect("inserted");
    for (round, source_first) in [true, false].into_iter().enumerate() {
        let name = format!("Anna {round}");
        let mut session = store.start_session().await.expect("a session");
        session.start_transaction().await.expect("starts");
        for source in [source_first, !source_first] {
            let (collection, field) = if source { (&authors, "name") } else { (&books, "title") };
            let change = doc! { "$set": { field: name.clone() } };
            collection
                .update_one(doc! { "_id": 1 }, change, Update::default(), Some(&mut session))
                .await
                .expect("updated");
        }
        session.commit_transaction().await.expect("commits");
        let book = one(&store, "books", 1).await;
        assert_eq!(book.get_document("author").expect("a copy"), &doc! { "name": name.clone() });
        assert_eq!(book.get_str("title").expect("a title"), name);
    }
    assert_eq!(drifted(&store, &model).await, vec![]);
    close(store);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fill_is_exact_while_others_write() {
    let store = Store::in_memory().expect("a store");
    let engine = store.engine().expect("embedded").clone();
    let models = Models::new();
    engine.add_hook(models.clone());
    let (before, after) = (parsed(BEFORE), parsed(AFTER));
    filled(&store).await;
    applied(&store, &before).await;
    let actions = apply::plan(&store, "shop", &after, false).await.expect("a plan");
    apply::define(&store, "shop", &after, &actions.list, &mut |_| {}).await.expect("is defined");
    let writer = {
        let store = store.clone();
        tokio::spawn(async move {
            let orders = store.collection("shop", "orders");
            for round in 0..400_i32 {
                let id = round * 7 % 700;
                let change = doc! { "$set": { "userId": 1 + round % 3, "status": "paid" }, "$inc": { "total": 1_i64 } };
                orders.update_one(doc! { "_id": id }, change, Update::default(), None).await.expect("updated");
                orders.insert_one(order(10_000 + round, 1 + round % 4, "shipped", 3), None).await.expect("inserted");
                if round % 3 == 0 {
                    orders.delete_one(doc! { "_id": round * 11 % 700 }, None).await.expect("deleted");
                }
            }
        })
    };
    let service = Service::start(&engine, &models).expect("starts");
    writer.await.expect("the writer ends well");
    assert!(service.settle(&engine, &models, Duration::from_secs(60)).expect("settles"), "{:?}", service.status());
    assert_eq!(drifted(&store, &after).await, vec![]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sample_models_can_be_applied_and_applied_again() {
    for name in ["shop", "social", "blog", "chat", "metrics"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models").join(name);
        let model = model::load(&path).expect("a model").model;
        let store = Store::in_memory().expect("a store");
        store.engine().expect("embedded").add_hook(Models::new());
        assert!(applied(&store, &model).await > 0, "{name}");
        let again = apply::plan(&store, "shop", &model, false).await.expect("a plan");
        assert_eq!(again.list, vec![], "{name}");
        assert_eq!(drifted(&store, &model).await, vec![], "{name}");
    }
}

const LEASES: &str = r#"
entity lease collection=leases id=int { field expiresAt date; expire expiresAt }
entity tenant collection=tenants id=int { ref leaseId to=lease on-delete=restrict }
"#;

#[tokio::test(flavor = "multi_thread")]
async fn an_expired_document_that_must_stay_does_not_keep_those_that_expired_after_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let (store, _models) = open(folder.path());
    let model = parsed(LEASES);
    applied(&store, &model).await;
    let engine = store.engine().expect("embedded").clone();
    let leases = store.collection("shop", "leases");
    for id in 1..=5 {
        let at = bson::DateTime::from_millis(i64::from(id) * 1_000);
        leases.insert_one(doc! { "_id": id, "expiresAt": at }, None).await.expect("inserted");
    }
    let tenants = store.collection("shop", "tenants");
    for id in [1, 3] {
        tenants.insert_one(doc! { "_id": id, "leaseId": id }, None).await.expect("inserted");
    }
    assert_eq!(engine.delete_expired().expect("sweeps"), 3);
    assert_eq!(leases.count(doc! { "_id": { "$in": [1, 3] } }, None).await.expect("counts"), 2);
    tenants.delete_many(doc! {}, None).await.expect("deleted");
    assert_eq!(engine.delete_expired().expect("sweeps"), 2);
    drop((leases, tenants, engine));
    close(store);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_lags_when_a_process_ends_still_lags_in_the_next_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let model = parsed(AFTER);
    let (store, _models) = open(folder.path());
    applied(&store, &model).await;
    store.collection("shop", "users").insert_one(doc! { "_id": 1, "name": "old" }, None).await.expect("inserted");
    let all = (0..600).map(|id| order(id, 1, "paid", 1)).collect();
    store.collection("shop", "orders").insert_many(all, None).await.expect("inserted");
    // Nobody follows: the process ends before its service has begun.
    let rename = doc! { "$set": { "name": "new" } };
    let users = store.collection("shop", "users");
    users.update_one(doc! { "_id": 1 }, rename, Update::default(), None).await.expect("renamed");
    let notes = store.collection("shop", model::keep::LAGGING);
    let since = |notes: Vec<Document>| notes[0].get_datetime("since").expect("a time").timestamp_millis();
    let noted = since(notes.find(doc! {}, Find::default(), None).await.expect("found"));
    drop((users, notes));
    close(store);
    std::thread::sleep(Duration::from_millis(50));

    let (store, models) = open(folder.path());
    let engine = store.engine().expect("embedded").clone();
    let notes = store.collection("shop", model::keep::LAGGING);
    assert_eq!(since(notes.find(doc! {}, Find::default(), None).await.expect("found")), noted);
    let service = Service::start(&engine, &models).expect("starts");
    assert!(service.settle(&engine, &models, Duration::from_secs(60)).expect("settles"), "{:?}", service.status());
    assert_eq!(drifted(&store, &model).await, vec![]);
    drop((service, notes, engine));
    close(store);
}

/// The resident memory of this process, in megabytes, where the system tells.
fn resident_mb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB")).and_then(|text| text.trim().parse().ok());
    kilobytes.unwrap_or(0_u64) / 1_024
}

/// One of the writes that others make; gives how long it took.
async fn other_write(store: &Store, number: usize) -> Duration {
    let write = std::time::Instant::now();
    let touch = doc! { "$set": { "name": format!("name {number}") } };
    let upsert = Update { upsert: true, ..Update::default() };
    store.collection("shop", "others").update_one(doc! { "_id": 1 }, touch, upsert, None).await.expect("written");
    write.elapsed()
}

/// What 99 of 100 waits are below.
fn p99(mut waits: Vec<Duration>) -> Duration {
    waits.sort();
    waits.get(waits.len() * 99 / 100).copied().unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_with_many_copies_is_followed_by_the_service() {
    let copies: i32 = std::env::var("SHEAF_COPIES").ok().and_then(|n| n.parse().ok()).unwrap_or(2_000);
    let folder = tempfile::tempdir().expect("a folder");
    let (store, models) = open(folder.path());
    let engine = store.engine().expect("embedded").clone();
    let model = parsed(AFTER);
    applied(&store, &model).await;
    store.collection("shop", "users").insert_one(doc! { "_id": 1, "name": "old" }, None).await.expect("inserted");
    let orders = store.collection("shop", "orders");
    for begin in (0..copies).step_by(1_000) {
        let batch = (begin..copies.min(begin + 1_000)).map(|id| order(id, 1, "paid", 1)).collect();
        orders.insert_many(batch, None).await.expect("inserted");
    }
    let service = Service::start(&engine, &models).expect("starts");
    let mut alone = Vec::new();
    for number in 0..copies as usize / 10 {
        alone.push(other_write(&store, number).await);
    }
    let (alone, before_mb) = (p99(alone), resident_mb());
    let begun = std::time::Instant::now();
    let rename = doc! { "$set": { "name": "new" } };
    store
        .collection("shop", "users")
        .update_one(doc! { "_id": 1 }, rename, Update::default(), None)
        .await
        .expect("renamed");
    let renamed = begun.elapsed();
    let (mut beside, mut most_mb) = (Vec::new(), before_mb);
    while !service.settle(&engine, &models, Duration::ZERO).expect("settles") {
        beside.push(other_write(&store, beside.len()).await);
        if beside.len() % 100 == 0 {
            most_mb = most_mb.max(resident_mb());
        }
        assert!(begun.elapsed() < Duration::from_secs(600), "{:?}", service.status());
    }
    let took = begun.elapsed();
    let left = orders.count(doc! { "buyer.name": { "$ne": "new" } }, None).await.expect("counts");
    assert_eq!(left, 0);
    let rate = f64::from(copies) / took.as_secs_f64();
    let others = beside.len();
    eprintln!(
        "{copies} copies: the rename took {renamed:?}, all of them {took:?} ({rate:.0}/s); meanwhile {others} writes, p99 {:?}, \
         alone {alone:?}; {before_mb} MB before, {most_mb} at most",
        p99(beside)
    );
    assert_eq!(drifted(&store, &model).await, vec![]);
    drop(service);
    let found = orders.find(doc! {}, Find { limit: 1, ..Find::default() }, None).await.expect("found");
    assert_eq!(found.len(), 1);
    drop((orders, engine));
    close(store);
}
