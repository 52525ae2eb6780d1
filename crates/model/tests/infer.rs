//! `infer` on the data of `models/shop`: its relations and queries come back, in a model that the checks accept.

use bson::oid::ObjectId;
use bson::{Bson, DateTime, Document, doc};
use model::Model;
use model::infer::infer;
use model::language::filter::Test;
use model::language::query::Query;
use model::model::Body;
use model::observe::{Bounds, observe};
use model::problem::Sources;
use std::collections::BTreeSet;
use std::future::pending;
use std::path::Path;
use store::{Find, Index, Store};
use wire::{Address, Config, Listen, Server};

const NOW_MS: i64 = 1_760_000_000_000;
/// The collections that the data is of.
const HELD: [&str; 8] = ["products", "skus", "reviews", "users", "orders", "logistics", "payments", "sessions"];

async fn cluster() -> Store {
    let listen = vec![Listen::Tcp { host: "127.0.0.1".to_owned(), port: 0 }];
    let engine = engine::Engine::in_memory(engine::Options::system()).expect("opens");
    let server = Server::bind(Config { listen, ..Config::default() }, engine).await.expect("binds");
    let Some(Address::Tcp(address)) = server.addresses().into_iter().next() else { panic!("a TCP address") };
    tokio::spawn(server.serve(pending()));
    Store::connect(&format!("mongodb://{address}/?replicaSet=sheaf")).await.expect("connects")
}

fn id(kind: u8, number: i32) -> ObjectId {
    let mut bytes = [0; 12];
    bytes[..4].copy_from_slice(&((NOW_MS / 1000 - 8_640_000 + i64::from(number) * 10_000) as u32).to_be_bytes());
    bytes[4] = kind;
    bytes[8..].copy_from_slice(&number.to_be_bytes());
    ObjectId::from_bytes(bytes)
}

fn date(number: i32) -> DateTime {
    DateTime::from_millis(NOW_MS - 8_640_000_000 + i64::from(number) * 60_000)
}

fn sku(number: i32) -> String {
    format!("sku-{number:08}")
}

fn state(number: i32) -> &'static str {
    ["created", "paid", "shipped", "signed"][number as usize % 4]
}

fn make(collection: &str, n: i32) -> Document {
    match collection {
        "products" => doc! {
            "_id": id(1, n), "productName": format!("product {n}"), "brand": format!("brand {}", n % 50), "price": i64::from(n) * 100,
            "category": { "id": format!("cat-{}", n % 40), "name": format!("category {}", n % 40) },
            "tags": [format!("tag {}", n % 45), format!("tag {}", n % 37)], "status": if n % 9 == 0 { "draft" } else { "active" },
            "createdAt": date(n), "skus": [{ "skuId": sku(2 * n), "price": 100_i64 }, { "skuId": sku(2 * n + 1), "price": 200_i64 }],
        },
        "skus" => doc! { "_id": sku(n), "productId": id(1, n / 2), "price": 100_i64, "available": n % 70 },
        "reviews" => doc! {
            "_id": id(3, n), "productId": id(1, n % 150), "userId": id(4, n % 190), "rating": n % 5, "text": format!("review {n}"),
            "status": if n % 7 == 0 { "hidden" } else { "visible" }, "createdAt": date(n),
        },
        "users" => doc! {
            "_id": id(4, n), "username": format!("user {n}"), "phone": format!("phone {n}"),
            "defaultAddress": { "city": format!("city {}", n % 60), "street": format!("street {n}") },
            "coupons": [{ "couponId": format!("coupon {n}"), "discount": 20_i64 }],
        },
        "orders" => doc! {
            "_id": id(5, n), "orderNumber": format!("N{n:08}"), "userId": id(4, n % 180),
            "buyer": { "username": format!("user {}", n % 180), "phone": format!("phone {}", n % 180) },
            "shippingAddress": { "city": format!("city {}", n % 60) },
            "items": [{ "skuId": sku(n % 300), "productId": id(1, n % 150), "quantity": 1 }, { "skuId": sku(n % 299), "productId": id(1, n % 149), "quantity": 2 }],
            "total": i64::from(n) * 100, "createdAt": date(n), "status": state(n),
        },
        "logistics" => doc! {
            "_id": id(6, n), "orderId": id(5, n % 390), "status": format!("event {}", n % 12), "location": format!("place {n}"), "time": date(n),
        },
        "payments" => doc! {
            "_id": id(7, n), "orderId": id(5, n % 400), "amount": i64::from(n) * 100, "transactionNo": format!("T{n:09}"), "createdAt": date(n),
        },
        _ => doc! { "_id": format!("session {n}"), "userId": id(4, n % 200), "expiresAt": date(n + 10_000_000) },
    }
}

async fn fill(store: &Store) {
    for (name, count) in [
        ("products", 150),
        ("skus", 300),
        ("reviews", 600),
        ("users", 200),
        ("orders", 400),
        ("logistics", 800),
        ("payments", 410),
        ("sessions", 200),
    ] {
        let documents = (0..count).map(|n| make(name, n)).collect();
        store.collection("shop", name).insert_many(documents, None).await.expect("inserts");
    }
    let indexes = [
        ("users", Index::unique(doc! { "username": 1 })),
        ("payments", Index::unique(doc! { "transactionNo": 1 })),
        ("orders", Index::unique(doc! { "userId": 1, "orderNumber": 1 })),
        ("sessions", Index { keys: doc! { "expiresAt": 1 }, options: doc! { "expireAfterSeconds": 0 } }),
    ];
    for (name, index) in indexes {
        store.collection("shop", name).create_indexes(vec![index]).await.expect("creates");
    }
}

/// A value of a document, in the first element of arrays.
fn value(document: &Document, path: &str) -> Option<Bson> {
    let mut found = document.get(path.split('.').next()?)?;
    for name in path.split('.').skip(1).map(Some).chain([None]) {
        while let Bson::Array(elements) = found {
            found = elements.first()?;
        }
        match (name, found) {
            (Some(name), Bson::Document(inner)) => found = inner.get(name)?,
            (None, _) => {}
            _ => return None,
        }
    }
    Some(found.clone())
}

/// What a query asks of documents like this one; `None` if the data lacks one of its fields.
fn filter(query: &Query, document: &Document) -> Option<Document> {
    let mut filter = Document::new();
    for path in &query.equal {
        filter.insert(path, value(document, path)?);
    }
    for condition in &query.filter {
        let Test::In(values) = &condition.test else { return None };
        if values.len() != 1 {
            return None;
        }
        filter.insert(&condition.path, value(document, &condition.path)?);
    }
    for within in &query.within {
        filter.insert(&within.path, doc! { "$in": [value(document, &within.path)?] });
    }
    for path in &query.range {
        filter.insert(path, doc! { "$gte": value(document, path)? });
    }
    query.sort.iter().all(|key| value(document, &key.path).is_some()).then_some(filter)
}

/// Asks the queries of the model as an application does; gives those that the data has the fields for.
async fn ask(store: &Store, model: &Model) -> BTreeSet<String> {
    let mut asked = BTreeSet::new();
    store.run_command("shop", doc! { "profile": 2 }).await.expect("profiles");
    for query in &model.queries {
        let Some(entity) = model.declared(&query.on) else { continue };
        if !HELD.contains(&entity.collection.as_str()) {
            continue;
        }
        let Some(filter) = filter(query, &make(&entity.collection, 3)) else { continue };
        let sort =
            query.sort.iter().map(|key| (key.path.clone(), Bson::Int32(if key.descending { -1 } else { 1 }))).collect();
        let sort = Some(sort).filter(|sort: &Document| !sort.is_empty());
        let limit = query.limit.unwrap_or(0) as i64;
        for _ in 0..3 {
            let options = Find { sort: sort.clone(), limit, ..Find::default() };
            store.collection("shop", &entity.collection).find(filter.clone(), options, None).await.expect("finds");
        }
        asked.extend(line(model, query));
    }
    store.run_command("shop", doc! { "profile": 0 }).await.expect("profiles");
    asked
}

fn refs(model: &Model) -> BTreeSet<String> {
    fn walk(model: &Model, place: &str, body: &Body, found: &mut BTreeSet<String>) {
        for reference in &body.refs {
            let target = model.declared(&reference.to).expect("declared");
            found.insert(format!("{place}.{} -> {}", reference.name, target.collection));
        }
        for embed in &body.embeds {
            walk(model, &format!("{place}.{}", embed.name), &embed.body, found);
        }
    }
    let mut found = BTreeSet::new();
    for entity in &model.entities {
        walk(model, &entity.collection, &entity.body, &mut found);
    }
    found
}

/// A query in one line; a constant and a value given by the caller look the same from outside.
fn line(model: &Model, query: &Query) -> Option<String> {
    let collection = &model.declared(&query.on)?.collection;
    let mut equal: Vec<&str> = query.equal.iter().map(String::as_str).collect();
    equal.extend(query.filter.iter().map(|condition| condition.path.as_str()));
    equal.sort_unstable();
    let within: Vec<&str> = query.within.iter().map(|within| within.path.as_str()).collect();
    let sort: Vec<String> = query.sort.iter().map(|key| format!("{key}")).collect();
    Some(format!(
        "{collection} equal {equal:?} in {within:?} range {:?} sort {sort:?} limit {:?}",
        query.range, query.limit
    ))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_shops_relations_and_queries_come_back() {
    let store = cluster().await;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models/shop");
    let original = model::load(&folder).expect("the sample model").model;
    fill(&store).await;
    let asked = ask(&store, &original).await;
    assert!(asked.len() >= 10, "{asked:?}");
    let observed = observe(&store, &["shop".to_owned()], Bounds::default(), NOW_MS).await.expect("looks");
    let text = infer(&store, &observed.databases[0], Bounds::default()).await.expect("infers");
    let inferred = match model::parse(Sources::single("shop.sheaf.kdl", text.clone())) {
        Ok(checked) => checked.model,
        Err(problems) => panic!("{problems}\n{text}"),
    };
    let (found, mut expected) = (refs(&inferred), refs(&original));
    let is_held = |name: &str| HELD.iter().any(|held| name.split(['.', ' ']).next() == Some(held));
    expected.retain(|line| is_held(line) && line.split(" -> ").nth(1).is_some_and(is_held));
    // The original holds variants' ids as plain fields; in the data they are references too.
    expected.extend(["orders.items.skuId -> skus".to_owned(), "products.skus.skuId -> skus".to_owned()]);
    assert_eq!(found, expected, "{text}");
    let queries: BTreeSet<String> = inferred.queries.iter().filter_map(|query| line(&inferred, query)).collect();
    assert_eq!(queries, asked, "{text}");
    let user = inferred.declared("user").expect("users");
    assert!(user.body.fields.iter().any(|field| field.name == "username" && field.unique));
    assert!(inferred.declared("session").is_some_and(|session| session.parts.expire.is_some()));
    assert!(inferred.declared("order").is_some_and(|order| order.parts.uniques.len() == 1));
    let product = inferred.declared("product").expect("products");
    assert!(product.body.embeds.iter().any(|embed| embed.name == "skus" && embed.many));
    assert!(product.body.fields.iter().any(|field| field.name == "status" && field.values == ["active", "draft"]));
}
