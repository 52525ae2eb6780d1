//! The model is kept by the engine's own hook, whatever the write: after each run everything equals its recount.

use bson::{Bson, Document, RawDocumentBuf, doc};
use engine::operation::{Delete, DeleteStatement, Find, Insert, Query, Update, UpdateStatement};
use engine::{Code, Context, Engine, Namespace, Options, SessionContext};
use model::keep::embedded::ModelHook;
use model::keep::{Keeper, LAGGING};
use model::problem::Sources;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const MODEL: &str = r#"
entity user collection=users id=int {
  field name string
  ref bestId to=product on-delete=nullify
  count orderCount of=order by=userId { where status paid shipped }
  sum spent of=order by=userId field=total { where status paid shipped }
  max largest of=order by=userId field=total
  min smallest of=order by=userId field=total
  latest lastOrder of=order by=userId order=at { fields status total }
  recent recentOrders 3 of=order by=userId order=at { fields total }
}
entity product collection=products id=int {
  field name string
  field price long
}
entity order collection=orders id=int {
  ref userId to=user on-delete=cascade
  live buyer via=userId { fields name }
  enum status created paid shipped
  field total long
  field at int
  field city string
  embed items many max=4 key=line {
    field line int
    ref productId to=product
    snapshot via=productId { fields price; field productName from=name }
    field quantity int
  }
}
entity ticket collection=tickets id=int {
  states state start=open history=steps max=3 { to held from=open; to open from=held; to closed from=open held }
  stock left ledger=ledger
  version
}
edge friends from=user to=user mutual collection=friends count-from=friendCount { enum kind close far; where kind close }
rollup byCity of=order collection=byCity {
  by city; where status paid shipped; count orders; sum sales field=total; min least field=total; max last field=at
}
rollup byProduct of=order collection=byProduct unwind=items {
  by "items.productId"; sum units field="items.quantity"; min fewest field="items.quantity"; max largest field=total
}
"#;

struct Shop {
    engine: Engine,
}

impl Shop {
    fn new() -> Shop {
        let seed = AtomicU64::new(1);
        let clock = AtomicU64::new(1_700_000_000_000);
        let engine = Engine::in_memory(Options {
            storage: engine::storage::Options::default(),
            clock: Arc::new(move || clock.fetch_add(1, Ordering::Relaxed) as i64),
            random: Arc::new(move || seed.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed)),
        })
        .expect("an engine in memory");
        let model =
            model::parse(Sources::single("model.sheaf.kdl", MODEL)).unwrap_or_else(|problems| panic!("{problems}"));
        for part in model::plan::plan(&model.model, None).collections {
            for index in part.indexes {
                let mut key = Document::new();
                for part in &index.keys {
                    key.insert(part.path.clone(), if part.descending { -1 } else { 1 });
                }
                let spec = raw(&doc! { "key": key, "name": index.name.clone(), "unique": index.unique });
                let made = engine.create_indexes(&Context::default(), &Shop::namespace(&part.collection), &[spec]);
                made.and_then(engine::Written::wait).expect("the planned index is made");
            }
        }
        let keeper = Keeper::new(&model.model).expect("the model compiles");
        engine.add_hook(Arc::new(ModelHook::new(keeper, "shop")));
        Shop { engine }
    }

    fn namespace(collection: &str) -> Namespace {
        Namespace::new("shop", collection).expect("a valid name")
    }

    fn insert_as(&self, context: &Context, collection: &str, document: Document) -> Result<(), engine::Error> {
        let insert = Insert {
            namespace: Shop::namespace(collection),
            documents: vec![raw(&document)],
            ordered: true,
            bypass_document_validation: false,
            statement_ids: Vec::new(),
        };
        let reply = self.engine.insert(context, insert)?.wait()?;
        match reply.errors.into_iter().next() {
            Some(error) => Err(error.error),
            None => Ok(()),
        }
    }

    fn insert(&self, collection: &str, document: Document) -> Result<(), engine::Error> {
        self.insert_as(&Context::default(), collection, document)
    }

    fn update_as(
        &self,
        context: &Context,
        collection: &str,
        filter: Document,
        change: Document,
    ) -> Result<usize, engine::Error> {
        let update = Update {
            namespace: Shop::namespace(collection),
            statements: vec![UpdateStatement {
                query: Query { filter: raw(&filter), ..Query::default() },
                update: raw(&change).into(),
                multi: true,
                upsert: false,
                array_filters: Vec::new(),
            }],
            ordered: true,
            bypass_document_validation: false,
            statement_ids: Vec::new(),
        };
        // A replacement is of one document.
        let mut update = update;
        update.statements[0].multi = change.keys().next().is_some_and(|key| key.starts_with('$'));
        let reply = self.engine.update(context, &update)?.wait()?;
        match reply.errors.into_iter().next() {
            Some(error) => Err(error.error),
            None => Ok(reply.n as usize),
        }
    }

    fn update(&self, collection: &str, filter: Document, change: Document) -> Result<usize, engine::Error> {
        self.update_as(&Context::default(), collection, filter, change)
    }

    fn delete_as(&self, context: &Context, collection: &str, filter: Document) -> Result<usize, engine::Error> {
        let delete = Delete {
            namespace: Shop::namespace(collection),
            statements: vec![DeleteStatement {
                query: Query { filter: raw(&filter), ..Query::default() },
                multi: true,
            }],
            ordered: true,
            statement_ids: Vec::new(),
        };
        let reply = self.engine.delete(context, &delete)?.wait()?;
        match reply.errors.into_iter().next() {
            Some(error) => Err(error.error),
            None => Ok(reply.n as usize),
        }
    }

    fn delete(&self, collection: &str, filter: Document) -> Result<usize, engine::Error> {
        self.delete_as(&Context::default(), collection, filter)
    }

    fn find(&self, collection: &str, filter: Document) -> Vec<Document> {
        let query = Query { filter: raw(&filter), ..Query::default() };
        let find = Find { query, batch_size: Some(100_000), ..Find::new(Shop::namespace(collection)) };
        let batch = self.engine.find(&Context::default(), &find).expect("finds");
        let decode = |bytes: &bytes::Bytes| Document::from_reader(bytes.as_ref()).expect("a document");
        let mut found: Vec<Document> = batch.documents.iter().map(decode).collect();
        found.sort_by_key(|document| document.get("_id").map(ToString::to_string));
        found
    }

    fn one(&self, collection: &str, id: i32) -> Document {
        self.find(collection, doc! { "_id": id }).pop().unwrap_or_else(|| panic!("{collection} has no {id}"))
    }
}

fn raw(document: &Document) -> RawDocumentBuf {
    RawDocumentBuf::try_from(document).expect("encodes")
}

fn transaction(number: i64, start: bool) -> Context {
    let session = SessionContext {
        id: [7; 16],
        user: [0; 32],
        txn_number: Some(number),
        in_transaction: true,
        start_transaction: start,
        ahead: false,
        begun: Arc::default(),
    };
    Context { session: Some(session), ..Context::default() }
}

fn code(result: Result<impl std::fmt::Debug, engine::Error>) -> Code {
    result.expect_err("is refused").code
}

/// Compares every kept value with its recount.
fn recount(shop: &Shop) {
    let orders = shop.find("orders", doc! {});
    let paid = |order: &&Document| matches!(order.get_str("status"), Ok("paid" | "shipped"));
    let total = |order: &Document| order.get_i64("total").ok();
    for user in shop.find("users", doc! {}) {
        let id = user.get_i32("_id").expect("an id");
        let mut own: Vec<&Document> = orders.iter().filter(|order| order.get_i32("userId").ok() == Some(id)).collect();
        assert_eq!(user.get_i64("orderCount").ok(), Some(own.iter().copied().filter(paid).count() as i64), "{user}");
        assert_eq!(
            user.get_i64("spent").ok(),
            Some(own.iter().copied().filter(paid).filter_map(total).sum()),
            "{user}"
        );
        assert_eq!(user.get_i64("largest").ok(), own.iter().copied().filter_map(total).max(), "{user}");
        assert_eq!(user.get_i64("smallest").ok(), own.iter().copied().filter_map(total).min(), "{user}");
        own.sort_by_key(|order| {
            std::cmp::Reverse((order.get_i32("at").unwrap_or(i32::MIN), order.get_i32("_id").unwrap_or(0)))
        });
        let ids = |list: &[Document]| -> Vec<i32> { list.iter().map(|one| one.get_i32("_id").unwrap_or(-1)).collect() };
        let expected: Vec<i32> = own.iter().take(3).map(|order| order.get_i32("_id").unwrap_or(-1)).collect();
        let recents: Vec<Document> = user
            .get_array("recentOrders")
            .map(|list| list.iter().filter_map(|one| one.as_document().cloned()).collect())
            .unwrap_or_default();
        assert_eq!(ids(&recents), expected, "{user}");
        for (recent, order) in recents.iter().zip(&own) {
            assert_eq!(recent.get("total"), order.get("total"), "{user}");
        }
        let last =
            user.get_document("lastOrder").ok().map(|last| (last.get_i32("_id").ok(), last.get("status").cloned()));
        assert_eq!(last, own.first().map(|order| (order.get_i32("_id").ok(), order.get("status").cloned())), "{user}");
        for order in own {
            let buyer = order.get_document("buyer").ok().and_then(|buyer| buyer.get("name")).cloned();
            assert_eq!(buyer, user.get("name").cloned(), "{order}");
        }
        let close = shop.find("friends", doc! { "from": id, "kind": "close" }).len() as i64;
        assert_eq!(user.get_i64("friendCount").ok(), Some(close), "{user}");
    }
    let mut cities: std::collections::BTreeMap<String, Group> = Default::default();
    let mut products: std::collections::BTreeMap<i32, Group> = Default::default();
    for order in &orders {
        if paid(&order) {
            let group = cities.entry(order.get_str("city").unwrap_or("").to_owned()).or_default();
            group.add(total(order).unwrap_or(0), total(order), order.get_i32("at").ok().map(i64::from));
        }
        for item in order.get_array("items").into_iter().flatten().filter_map(Bson::as_document) {
            let quantity = item.get_i32("quantity").ok().map(i64::from);
            let group = products.entry(item.get_i32("productId").unwrap_or(-1)).or_default();
            group.add(quantity.unwrap_or(0), quantity, total(order));
        }
    }
    let kept = shop.find("byCity", doc! {});
    assert_eq!(kept.len(), cities.len(), "{kept:?} {cities:?}");
    for group in kept {
        let expected = &cities[group.get_str("city").unwrap_or("")];
        let whole = |name: &str| number(&group, name);
        let found = Group {
            count: whole("orders").unwrap_or(-1),
            sum: whole("sales").unwrap_or(-1),
            min: whole("least"),
            max: whole("last"),
        };
        assert_eq!(found, *expected, "{group}");
    }
    let kept = shop.find("byProduct", doc! {});
    assert_eq!(kept.len(), products.len(), "{kept:?} {products:?}");
    for group in kept {
        let expected = &products[&group.get_i32("productId").unwrap_or(-1)];
        let whole = |name: &str| number(&group, name);
        assert_eq!(whole("units"), Some(expected.sum), "{group}");
        assert_eq!((whole("fewest"), whole("largest")), (expected.min, expected.max), "{group}");
    }
    for edge in shop.find("friends", doc! {}) {
        let reverse = shop.find("friends", doc! { "from": edge.get("to"), "to": edge.get("from") });
        assert_eq!(reverse.len(), 1, "{edge}");
        assert_eq!(reverse[0].get("kind"), edge.get("kind"), "{edge}");
    }
}

/// What a rollup says of a group, counted again.
#[derive(Debug, Default, PartialEq)]
struct Group {
    count: i64,
    sum: i64,
    min: Option<i64>,
    max: Option<i64>,
}

impl Group {
    fn add(&mut self, amount: i64, low: Option<i64>, high: Option<i64>) {
        self.count += 1;
        self.sum += amount;
        self.min = self.min.into_iter().chain(low).min();
        self.max = self.max.into_iter().chain(high).max();
    }
}

fn number(document: &Document, name: &str) -> Option<i64> {
    match document.get(name)? {
        Bson::Int32(number) => Some(i64::from(*number)),
        Bson::Int64(number) => Some(*number),
        other => panic!("{name} is {other}"),
    }
}

fn order(id: i32, user: i32, status: &str, total: i64) -> Document {
    doc! { "_id": id, "userId": user, "status": status, "total": total, "at": id % 7, "city": if id % 2 == 0 { "Rome" } else { "Oslo" } }
}

#[test]
fn a_count_and_a_sum_follow_insert_update_move_and_delete() {
    let shop = Shop::new();
    shop.insert("users", doc! { "_id": 1, "name": "Ann" }).expect("inserted");
    shop.insert("users", doc! { "_id": 2, "name": "Bob" }).expect("inserted");
    let spent = |id: i32| {
        let user = shop.one("users", id);
        (user.get_i64("orderCount").expect("kept"), user.get_i64("spent").expect("kept"))
    };
    assert_eq!(spent(1), (0, 0), "a parent without children has 0 from its insert on");
    shop.insert("orders", order(1, 1, "paid", 100)).expect("inserted");
    shop.insert("orders", order(2, 1, "created", 50)).expect("inserted");
    assert_eq!(spent(1), (1, 100));
    shop.update("orders", doc! { "_id": 2 }, doc! { "$set": { "status": "paid" } }).expect("updated");
    assert_eq!(spent(1), (2, 150), "a change of the filter's field");
    shop.update("orders", doc! { "_id": 1 }, doc! { "$inc": { "total": 11_i64 } }).expect("updated");
    assert_eq!(spent(1), (2, 161));
    shop.update("orders", doc! { "_id": 1 }, doc! { "$set": { "userId": 2 } }).expect("updated");
    assert_eq!((spent(1), spent(2)), ((1, 50), (1, 111)), "a move between parents");
    shop.update("orders", doc! { "_id": 2 }, doc! { "$set": { "userId": Bson::Null } }).expect("updated");
    assert_eq!(spent(1), (0, 0), "a reference that becomes null");
    shop.delete("orders", doc! { "_id": 1 }).expect("deleted");
    assert_eq!(spent(2), (0, 0));
    recount(&shop);
}

#[test]
fn a_parent_created_after_its_children_and_one_deleted_before_them_count_right() {
    let shop = Shop::new();
    shop.insert("orders", order(1, 5, "paid", 100)).expect("inserted");
    shop.insert("orders", order(2, 5, "paid", 30)).expect("inserted");
    shop.delete("orders", doc! { "_id": 2 }).expect("deleted");
    shop.insert("users", doc! { "_id": 5, "name": "Eve" }).expect("inserted");
    let user = shop.one("users", 5);
    assert_eq!((user.get_i64("orderCount").ok(), user.get_i64("spent").ok()), (Some(1), Some(100)));
    assert_eq!(user.get_document("lastOrder").expect("kept").get_i32("_id").ok(), Some(1));
    assert!(shop.find(model::keep::PENDING, doc! {}).is_empty());
    shop.delete("users", doc! { "_id": 5 }).expect("deleted");
    assert!(shop.find("orders", doc! {}).is_empty(), "on-delete=cascade");
    shop.insert("users", doc! { "_id": 5, "name": "Eve" }).expect("inserted");
    assert_eq!(shop.one("users", 5).get_i64("orderCount").ok(), Some(0));
}

#[test]
fn the_newest_and_the_extremes_move_up_when_a_child_goes() {
    let shop = Shop::new();
    shop.insert("users", doc! { "_id": 1, "name": "Ann" }).expect("inserted");
    for id in 1..=6 {
        shop.insert("orders", order(id, 1, "paid", i64::from(id) * 10)).expect("inserted");
        recount(&shop);
    }
    for id in [6, 1, 4] {
        shop.delete("orders", doc! { "_id": id }).expect("deleted");
        recount(&shop);
    }
    shop.update("orders", doc! { "_id": 5 }, doc! { "$set": { "at": -1, "total": 1_i64 } }).expect("updated");
    recount(&shop);
    shop.update("orders", doc! { "_id": 2 }, doc! { "$unset": { "total": 1, "at": 1 } }).expect("updated");
    recount(&shop);
}

#[test]
fn a_rollups_extremes_are_found_again_when_their_document_goes() {
    let shop = Shop::new();
    for id in 1..=40 {
        let mut order = order(id, 1, "paid", i64::from(id * 37 % 41));
        let line = |line: i32| doc! { "line": line, "productId": (id + line) % 3, "quantity": id * 7 % 11 + line };
        order.insert("items", vec![line(1), line(2)]);
        shop.insert("orders", order).expect("inserted");
    }
    recount(&shop);
    // The least and the greatest go again and again: one after the other, by a state, by a move, by a value.
    for id in [21, 32, 40, 11, 31, 3, 2, 9] {
        shop.delete("orders", doc! { "_id": id }).expect("deleted");
        recount(&shop);
    }
    shop.update("orders", doc! { "_id": 10 }, doc! { "$set": { "status": "created" } }).expect("updated");
    recount(&shop);
    shop.update("orders", doc! { "_id": 20 }, doc! { "$set": { "city": "Bern", "total": -1_i64 } }).expect("updated");
    recount(&shop);
    shop.update("orders", doc! { "_id": 20 }, doc! { "$unset": { "total": 1, "items": 1 } }).expect("updated");
    recount(&shop);
    shop.update(
        "orders",
        doc! { "_id": 30 },
        doc! { "$set": { "items.0.quantity": 99, "items.1.quantity": Bson::Null } },
    )
    .expect("updated");
    recount(&shop);
    shop.delete("orders", doc! {}).expect("deleted");
    recount(&shop);
}

#[test]
fn a_kept_field_cannot_be_written_and_a_replacement_keeps_it() {
    let shop = Shop::new();
    shop.insert("users", doc! { "_id": 1, "name": "Ann" }).expect("inserted");
    shop.insert("orders", order(1, 1, "paid", 100)).expect("inserted");
    let refused = shop.update("users", doc! { "_id": 1 }, doc! { "$set": { "spent": 5_i64 } });
    let error = refused.expect_err("refused");
    assert_eq!(error.code, Code::DOCUMENT_VALIDATION_FAILURE);
    assert!(error.message.contains("user.spent"), "{}", error.message);
    shop.update("users", doc! { "_id": 1 }, doc! { "name": "Anna" }).expect("replaced");
    let user = shop.one("users", 1);
    assert_eq!((user.get_str("name").ok(), user.get_i64("spent").ok()), (Some("Anna"), Some(100)));
    assert_eq!(code(shop.insert("users", doc! { "_id": 3, "orderCount": 7 })), Code::DOCUMENT_VALIDATION_FAILURE);
    recount(&shop);
}

#[test]
fn a_snapshot_stays_and_a_live_copy_follows() {
    let shop = Shop::new();
    shop.insert("users", doc! { "_id": 1, "name": "Ann" }).expect("inserted");
    shop.insert("products", doc! { "_id": 1, "name": "Pen", "price": 5_i64 }).expect("inserted");
    let mut first = order(1, 1, "paid", 100);
    first.insert("items", vec![doc! { "line": 1, "productId": 1, "quantity": 2 }]);
    shop.insert("orders", first).expect("inserted");
    shop.update("products", doc! { "_id": 1 }, doc! { "$set": { "name": "Quill", "price": 9_i64 } }).expect("updated");
    shop.update("users", doc! { "_id": 1 }, doc! { "$set": { "name": "Anna" } }).expect("updated");
    let line =
        |document: &Document| document.get_array("items").expect("items")[0].as_document().expect("a line").clone();
    let stored = shop.one("orders", 1);
    assert_eq!(line(&stored).get_str("productName").ok(), Some("Pen"), "{stored}");
    assert_eq!(line(&stored).get_i64("price").ok(), Some(5));
    assert_eq!(stored.get_document("buyer").expect("kept").get_str("name").ok(), Some("Anna"));
    let frozen = shop.update("orders", doc! { "_id": 1 }, doc! { "$set": { "items.0.price": 1_i64 } });
    assert_eq!(code(frozen), Code::DOCUMENT_VALIDATION_FAILURE);
    let copied = shop.update("orders", doc! { "_id": 1 }, doc! { "$set": { "buyer.name": "Zoe" } });
    assert_eq!(code(copied), Code::DOCUMENT_VALIDATION_FAILURE);
    shop.update(
        "orders",
        doc! { "_id": 1 },
        doc! { "$push": { "items": { "line": 2, "productId": 1, "quantity": 1 } } },
    )
    .expect("updated");
    let second = shop.one("orders", 1).get_array("items").expect("items")[1].as_document().expect("a line").clone();
    assert_eq!((second.get_str("productName").ok(), second.get_i64("price").ok()), (Some("Quill"), Some(9)));
    recount(&shop);
}

#[test]
fn states_stock_and_version_are_guarded() {
    let shop = Shop::new();
    assert_eq!(code(shop.insert("tickets", doc! { "_id": 9, "state": "closed" })), Code::DOCUMENT_VALIDATION_FAILURE);
    shop.insert("tickets", doc! { "_id": 1, "left": 3 }).expect("inserted");
    let ticket = shop.one("tickets", 1);
    assert_eq!((ticket.get_str("state").ok(), ticket.get_i64("version").ok()), (Some("open"), Some(1)));
    for state in ["held", "open", "held", "closed"] {
        shop.update("tickets", doc! { "_id": 1 }, doc! { "$set": { "state": state } }).expect("allowed");
    }
    let steps: Vec<String> = shop
        .one("tickets", 1)
        .get_array("steps")
        .expect("a history")
        .iter()
        .filter_map(|step| Some(step.as_document()?.get_str("state").ok()?.to_owned()))
        .collect();
    assert_eq!(steps, ["open", "held", "closed"], "the last three steps");
    assert_eq!(
        code(shop.update("tickets", doc! { "_id": 1 }, doc! { "$set": { "state": "open" } })),
        Code::DOCUMENT_VALIDATION_FAILURE
    );
    assert_eq!(
        code(shop.update("tickets", doc! { "_id": 1 }, doc! { "$inc": { "left": -4 } })),
        Code::DOCUMENT_VALIDATION_FAILURE
    );
    shop.update("tickets", doc! { "_id": 1 }, doc! { "$inc": { "left": -3 } }).expect("allowed");
    let version = shop.one("tickets", 1).get_i64("version").expect("a version");
    shop.update("tickets", doc! { "_id": 1, "version": version }, doc! { "$inc": { "version": 1 } }).expect("allowed");
    assert_eq!(shop.one("tickets", 1).get_i64("version").ok(), Some(version + 1));
    assert_eq!(
        code(shop.update("tickets", doc! { "_id": 1 }, doc! { "$set": { "version": 99_i64 } })),
        Code::DOCUMENT_VALIDATION_FAILURE
    );
}

#[test]
fn an_array_keeps_its_bound_and_its_keys() {
    let shop = Shop::new();
    let mut five = order(1, 1, "paid", 1);
    five.insert("items", (1..=5).map(|line| doc! { "line": line }).collect::<Vec<_>>());
    assert_eq!(code(shop.insert("orders", five)), Code::DOCUMENT_VALIDATION_FAILURE);
    let mut twice = order(1, 1, "paid", 1);
    twice.insert("items", vec![doc! { "line": 1 }, doc! { "line": 1 }]);
    assert_eq!(code(shop.insert("orders", twice)), Code::DOCUMENT_VALIDATION_FAILURE);
}

#[test]
fn a_friendship_has_both_rows_or_none() {
    let shop = Shop::new();
    for id in 1..=3 {
        shop.insert("users", doc! { "_id": id, "name": "x" }).expect("inserted");
    }
    shop.insert("friends", doc! { "_id": 1, "from": 1, "to": 2, "kind": "close" }).expect("inserted");
    shop.insert("friends", doc! { "_id": 2, "from": 1, "to": 3, "kind": "far" }).expect("inserted");
    recount(&shop);
    assert_eq!(shop.find("friends", doc! {}).len(), 4);
    shop.update("friends", doc! { "_id": 2 }, doc! { "$set": { "kind": "close" } }).expect("updated");
    recount(&shop);
    assert_eq!(shop.one("users", 3).get_i64("friendCount").ok(), Some(1));
    shop.delete("friends", doc! { "_id": 1 }).expect("deleted");
    recount(&shop);
    assert_eq!(shop.find("friends", doc! {}).len(), 2);
    shop.delete("users", doc! { "_id": 3 }).expect("deleted");
    assert!(shop.find("friends", doc! {}).is_empty(), "edges go with their ends");
    recount(&shop);
}

#[test]
fn a_reference_becomes_null_when_its_document_goes() {
    let shop = Shop::new();
    shop.insert("products", doc! { "_id": 1, "name": "Pen" }).expect("inserted");
    shop.insert("users", doc! { "_id": 1, "bestId": 1 }).expect("inserted");
    shop.delete("products", doc! { "_id": 1 }).expect("deleted");
    assert_eq!(shop.one("users", 1).get("bestId"), Some(&Bson::Null));
}

#[test]
fn a_transaction_counts_its_writes_once_at_commit() {
    let shop = Shop::new();
    shop.insert("users", doc! { "_id": 1, "name": "Ann" }).expect("inserted");
    shop.insert("orders", order(1, 1, "paid", 100)).expect("inserted");
    // Parent and children in one transaction, in both orders of their collections' names, and a parent that is changed.
    shop.insert_as(&transaction(1, true), "users", doc! { "_id": 2, "name": "Bob" }).expect("inserted");
    let again = transaction(1, false);
    shop.insert_as(&again, "orders", order(2, 2, "paid", 7)).expect("inserted");
    shop.insert_as(&again, "orders", order(3, 2, "paid", 8)).expect("inserted");
    shop.insert_as(&again, "orders", order(4, 1, "paid", 9)).expect("inserted");
    shop.update_as(&again, "users", doc! { "_id": 1 }, doc! { "$set": { "name": "Anna" } }).expect("updated");
    shop.update_as(&again, "orders", doc! { "_id": 1 }, doc! { "$inc": { "total": 1_i64 } }).expect("updated");
    shop.engine.commit_transaction(&again).and_then(engine::Written::wait).expect("committed");
    recount(&shop);
    assert_eq!(shop.one("users", 2).get_i64("spent").ok(), Some(15));
    assert_eq!(shop.one("users", 1).get_i64("spent").ok(), Some(110));
    // A replacement of the parent and a delete of a child.
    shop.update_as(&transaction(2, true), "users", doc! { "_id": 2 }, doc! { "name": "Rob" }).expect("replaced");
    let again = transaction(2, false);
    shop.delete_as(&again, "orders", doc! { "_id": 2 }).expect("deleted");
    shop.engine.commit_transaction(&again).and_then(engine::Written::wait).expect("committed");
    recount(&shop);
    assert_eq!(shop.one("users", 2).get_i64("spent").ok(), Some(8));
    // A parent that is created after its children, together with one more.
    shop.insert("orders", order(10, 9, "paid", 5)).expect("inserted");
    shop.insert_as(&transaction(3, true), "orders", order(11, 9, "paid", 6)).expect("inserted");
    let again = transaction(3, false);
    shop.insert_as(&again, "users", doc! { "_id": 9, "name": "Kim" }).expect("inserted");
    shop.engine.commit_transaction(&again).and_then(engine::Written::wait).expect("committed");
    assert_eq!(shop.one("users", 9).get_i64("spent").ok(), Some(11));
    recount(&shop);
}

#[test]
fn many_copies_follow_in_batches() {
    let shop = Shop::new();
    shop.insert("users", doc! { "_id": 1, "name": "Ann" }).expect("inserted");
    for id in 0..450 {
        shop.insert("orders", order(id, 1, "created", 1)).expect("inserted");
    }
    shop.update("users", doc! { "_id": 1 }, doc! { "$set": { "name": "Anna" } }).expect("updated");
    let mut rounds = 0;
    while !shop.find(LAGGING, doc! { "done": { "$ne": true } }).is_empty() {
        shop.update(LAGGING, doc! { "done": { "$ne": true } }, doc! { "$inc": { "tick": 1 } }).expect("a batch");
        rounds += 1;
        assert!(rounds < 100, "{:?}", shop.find(LAGGING, doc! {}));
    }
    assert!(rounds > 45, "{rounds} batches: others wait for a large one");
    recount(&shop);
}

/// A source of numbers, the same for the same seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// One random write; refused ones (a duplicate id and the like) are part of the game.
fn random_write(shop: &Shop, context: &Context, dice: &mut Dice) -> Result<usize, engine::Error> {
    let (user, id, total) = (dice.below(5) as i32, dice.below(25) as i32, dice.below(50) as i64);
    let status = ["created", "paid", "shipped"][dice.below(3) as usize];
    let name = format!("n{total}");
    match dice.below(13) {
        0 => shop.insert_as(context, "users", doc! { "_id": user, "name": name }).map(|()| 1),
        1 => shop.update_as(context, "users", doc! { "_id": user }, doc! { "$set": { "name": name } }),
        2 if dice.below(4) == 0 => shop.delete_as(context, "users", doc! { "_id": user }),
        2 => shop.update_as(context, "users", doc! { "_id": user }, doc! { "name": name }),
        3..6 => {
            let mut new = order(id, user, status, total);
            new.insert("at", dice.below(9) as i32);
            let item = doc! { "line": 1, "productId": dice.below(3) as i32, "quantity": dice.below(4) as i32 };
            new.insert("items", vec![item]);
            shop.insert_as(context, "orders", new).map(|()| 1)
        }
        6 => shop.update_as(context, "orders", doc! { "userId": user }, doc! { "$set": { "status": status } }),
        7 => {
            let change = doc! { "$set": { "userId": user, "at": dice.below(9) as i32 } };
            shop.update_as(context, "orders", doc! { "_id": id }, change)
        }
        8 => shop.update_as(context, "orders", doc! { "_id": id }, doc! { "$inc": { "total": total } }),
        9 => shop.delete_as(context, "orders", doc! { "_id": id }),
        10 => shop.insert_as(context, "friends", doc! { "from": user, "to": 9 - user, "kind": "close" }).map(|()| 1),
        11 => shop.update_as(context, "orders", doc! { "_id": id }, doc! { "$unset": { "total": 1, "userId": 1 } }),
        _ => shop.delete_as(context, "friends", doc! { "from": user }),
    }
}

#[test]
fn random_writes_leave_no_drift() {
    let shop = Shop::new();
    let mut dice = Dice(42);
    for round in 0..2_000 {
        let _ = random_write(&shop, &Context::default(), &mut dice);
        if round % 50 == 0 {
            recount(&shop);
        }
    }
    recount(&shop);
}

#[test]
fn random_transactions_leave_no_drift() {
    for seed in 0..6 {
        let shop = Shop::new();
        let mut dice = Dice(seed);
        let mut committed = 0;
        for number in 1..=150 {
            let writes = 1 + dice.below(6);
            let mut failed = false;
            for write in 0..writes {
                failed |= random_write(&shop, &transaction(number, write == 0), &mut dice).is_err();
            }
            let context = transaction(number, false);
            if failed || dice.below(5) == 0 {
                let _ = shop.engine.abort_transaction(&context);
            } else if shop.engine.commit_transaction(&context).and_then(engine::Written::wait).is_ok() {
                committed += 1;
            }
            if dice.below(3) == 0 {
                let _ = random_write(&shop, &Context::default(), &mut dice);
            }
            recount(&shop);
        }
        assert!(committed > 30, "only {committed} transactions of seed {seed} were committed");
    }
}
