//! A shop with every fault that `lint` knows, to try it on: each fault is planted once, the rest is sound.
//!
//! `sheaf lint --plant 100000 URL|FOLDER` writes it into the database `badShop`. [`PLANTED`] says where each fault is.
//! Most documents are `orders`, which are sound apart from what is listed; the number given is theirs. The faults that only a
//! profile shows ([`profiled`]) need a server that profiles.

use bson::oid::ObjectId;
use bson::{Bson, DateTime, Document, doc};
use store::{Find, Index, InsertMany, Store, Update};

/// The database.
pub const DATABASE: &str = "badShop";

/// Documents that are inserted at once.
const BATCH: usize = 1_000;

/// Milliseconds of a day.
const DAY_MS: i64 = 86_400_000;

/// What is planted: the rule, and the beginning of the finding's place.
pub const PLANTED: &[(&str, &str)] = &[
    ("array-growing", "badShop.users logins"),
    ("array-large", "badShop.products relatedCodes"),
    ("date-as-number", "badShop.payments paidAt"),
    ("date-as-string", "badShop.payments settledOn"),
    ("document-size", "badShop.products"),
    ("dynamic-names", "badShop.products viewsByDay"),
    ("enumeration-missing", "badShop.orders status"),
    ("id-as-string", "badShop.payments orderId"),
    ("index-count", "badShop.products"),
    ("index-redundant", "badShop.orders userId_1"),
    ("index-selectivity", "badShop.orders status_1"),
    ("lookup-heavy", "badShop.orders aggregate"),
    ("mixed-types", "badShop.users phone"),
    ("money-as-double", "badShop.payments amount"),
    ("naming-style", "badShop snake_case"),
    ("no-validator", "badShop.sessions"),
    ("query-badly-ordered", "badShop.orders find {userId: ?} sort {total: -1}"),
    ("query-unindexed", "badShop.orders find {couponCode: ?}"),
    ("same-field-two-names", "badShop.payments"),
    ("ttl-not-date", "badShop.sessions expiresAt_1"),
    ("two-way-links", "badShop.users orderIds"),
    ("unique-missing", "badShop.carts update {userId: ?}"),
];

/// Ids that say when they were made, and are the same in each run.
fn id(kind: u8, number: usize, at_ms: i64) -> ObjectId {
    let mut bytes = [0; 12];
    bytes[..4].copy_from_slice(&((at_ms / 1000) as u32).to_be_bytes());
    bytes[4] = kind;
    bytes[8..].copy_from_slice(&(number as u32).to_be_bytes());
    ObjectId::from_bytes(bytes)
}

/// Whose order it is: a thousand users.
fn user_of(order: usize, now_ms: i64) -> ObjectId {
    let number = order % 1_000;
    id(1, number, now_ms - 400 * DAY_MS + number as i64 * 1_000)
}

fn order_id(number: usize, now_ms: i64) -> ObjectId {
    id(2, number, now_ms - 300 * DAY_MS + number as i64 * 1_000)
}

/// A validator that asks for nothing but an object.
fn any() -> Document {
    doc! { "validator": { "$jsonSchema": { "bsonType": "object" } } }
}

/// Writes the shop with so many orders; an old one is dropped.
///
/// # Errors
/// What the store refuses.
pub async fn plant(store: &Store, orders: usize, now_ms: i64) -> store::Result<()> {
    store.drop_database(DATABASE).await?;
    for name in ["orders", "users", "products", "payments", "carts"] {
        store.collection(DATABASE, name).create(any()).await?;
    }
    fill(store, "orders", orders, |number| order(number, now_ms)).await?;
    fill(store, "users", 1_000, |number| user(number, orders, now_ms)).await?;
    fill(store, "products", 300, |number| product(number, now_ms)).await?;
    fill(store, "payments", 500, |number| payment(number, now_ms)).await?;
    fill(store, "carts", 50, |number| cart(number, now_ms)).await?;
    fill(store, "sessions", 200, |number| session(number, now_ms)).await?;
    indexes(store).await
}

async fn fill(store: &Store, name: &str, count: usize, make: impl Fn(usize) -> Document) -> store::Result<()> {
    let collection = store.collection(DATABASE, name);
    for from in (0..count).step_by(BATCH) {
        let documents = (from..count.min(from + BATCH)).map(&make).collect();
        collection.insert_many_with(documents, InsertMany { ordered: false, ..InsertMany::default() }, None).await?;
    }
    Ok(())
}

async fn indexes(store: &Store) -> store::Result<()> {
    let orders = vec![
        Index::new(doc! { "userId": 1 }),
        Index::new(doc! { "userId": 1, "createdAt": -1 }),
        Index::new(doc! { "status": 1 }),
    ];
    store.collection(DATABASE, "orders").create_indexes(orders).await?;
    let many = ["title", "brand", "price", "weight", "colour", "createdAt", "rank", "shelf", "code", "width", "height"];
    let many = many.iter().map(|field| Index::new(doc! { *field: 1 })).collect();
    store.collection(DATABASE, "products").create_indexes(many).await?;
    let expiry = vec![Index { keys: doc! { "expiresAt": 1 }, options: doc! { "expireAfterSeconds": 0 } }];
    store.collection(DATABASE, "sessions").create_indexes(expiry).await
}

fn order(number: usize, now_ms: i64) -> Document {
    let status = ["created", "paid", "shipped", "signed"][number % 4];
    let items: Vec<Document> = (0..1 + number % 4)
        .map(|item| doc! { "sku": format!("sku-{}-{item}", number % 5_000), "quantity": 1 + (item % 3) as i32 })
        .collect();
    doc! {
        "_id": order_id(number, now_ms),
        "userId": user_of(number, now_ms),
        "orderNumber": format!("N-{number:09}"),
        "status": status,
        "items": items,
        "total": (number % 9_973) as i64 * 100,
        "couponCode": format!("c-{}", number % 7_919),
        "createdAt": DateTime::from_millis(now_ms - 300 * DAY_MS + number as i64 * 1_000),
    }
}

fn user(number: usize, orders: usize, now_ms: i64) -> Document {
    // The link stored twice: the orders name their user too.
    let held = (0..5).map(|turn| number + turn * 1_000).filter(|order| *order < orders);
    let order_ids: Vec<Bson> = held.map(|order| order_id(order, now_ms).into()).collect();
    // A login each hour since the user came, and nothing that ends it.
    let hours = 20 + number as i64 % 181;
    let time = |hour: i64| DateTime::from_millis(now_ms - (hours - hour) * DAY_MS / 24);
    let device = |hour: i64| format!("device {hour} {}", "-".repeat(100));
    let logins: Vec<Document> = (0..hours).map(|hour| doc! { "time": time(hour), "device": device(hour) }).collect();
    let phone = if number.is_multiple_of(10) {
        Bson::Int64(13_800_000_000 + number as i64)
    } else {
        format!("+86 138 {number:08}").into()
    };
    doc! {
        "_id": user_of(number, now_ms),
        "username": format!("user {number}"),
        "phone": phone,
        "orderIds": order_ids,
        "logins": logins,
    }
}

fn product(number: usize, now_ms: i64) -> Document {
    let mut product = doc! {
        "_id": id(3, number, now_ms - 200 * DAY_MS + number as i64 * 1_000),
        "title": format!("product {number}"),
        "brand": format!("brand {}", number % 90),
        "price": (number % 97) as i64 * 100,
        "weight": number as i32,
        "colour": format!("colour {}", number % 70),
        "rank": number as i32,
        "shelf": format!("shelf {number}"),
        "code": format!("code {number}"),
        "width": number as i32,
        "height": number as i32,
        "createdAt": DateTime::from_millis(now_ms - number as i64 * DAY_MS),
    };
    let day = |day: usize| format!("2024-{:02}-{:02}", 1 + day / 28 % 12, 1 + day % 28);
    let views: Document = (0..3).map(|turn| (day(number * 3 + turn), Bson::Int32(turn as i32))).collect();
    product.insert("viewsByDay", views);
    let related = if number == 7 { 400 } else { number % 5 };
    product.insert("relatedCodes", (0..related).map(|other| format!("code {other}")).collect::<Vec<_>>());
    if number == 11 {
        product.insert("scan", bson::Binary { subtype: bson::spec::BinarySubtype::Generic, bytes: vec![7; 3_000_000] });
    }
    product
}

fn payment(number: usize, now_ms: i64) -> Document {
    let paid = now_ms - 100 * DAY_MS + number as i64 * 60_000;
    let settled = DateTime::from_millis(paid).try_to_rfc3339_string().unwrap_or_default();
    let mut payment = doc! {
        "_id": id(4, number, paid),
        "orderId": order_id(number, now_ms).to_hex(),
        "amount": number as f64 * 1.25 + 0.1,
        "paidAt": paid,
        "settledOn": settled,
    };
    // One field under two names, the second in another style.
    let channel = if number.is_multiple_of(3) { "payment_channel" } else { "paymentChannel" };
    payment.insert(channel, format!("channel {number}"));
    payment
}

fn cart(number: usize, now_ms: i64) -> Document {
    let made = now_ms - 50 * DAY_MS + number as i64 * 1_000;
    doc! { "_id": id(5, number, made), "userId": user_of(number, now_ms), "units": number as i32 }
}

fn session(number: usize, now_ms: i64) -> Document {
    let made = now_ms - DAY_MS + number as i64 * 1_000;
    // Texts never expire.
    doc! { "_id": id(6, number, made), "token": format!("token {number}"), "expiresAt": format!("session {number}") }
}

/// Runs the operations whose faults only a profile shows, on a server that profiles them.
///
/// # Errors
/// What the store refuses.
pub async fn profiled(store: &Store, now_ms: i64) -> store::Result<()> {
    store.run_command(DATABASE, doc! { "profile": 2 }).await?;
    let orders = store.collection(DATABASE, "orders");
    for turn in 0..3 {
        orders.find(doc! { "couponCode": format!("c-{turn}") }, Find::default(), None).await?;
        let by_total = Find { sort: Some(doc! { "total": -1 }), ..Find::default() };
        orders.find(doc! { "userId": user_of(turn, now_ms) }, by_total, None).await?;
        let by_date = Find { sort: Some(doc! { "createdAt": -1 }), limit: 20, ..Find::default() };
        orders.find(doc! { "userId": user_of(turn, now_ms) }, by_date, None).await?;
        let join =
            doc! { "from": "payments", "localField": "orderNumber", "foreignField": "orderId", "as": "payments" };
        let pipeline = vec![doc! { "$match": { "_id": order_id(turn, now_ms) } }, doc! { "$lookup": join }];
        orders.aggregate(pipeline, store::Aggregate::default(), None).await?.collect(None).await?;
        let upsert = Update { upsert: true, ..Update::default() };
        let carts = store.collection(DATABASE, "carts");
        carts
            .update_one(doc! { "userId": user_of(turn, now_ms) }, doc! { "$inc": { "units": 1 } }, upsert, None)
            .await?;
    }
    store.run_command(DATABASE, doc! { "profile": 0 }).await?;
    Ok(())
}
