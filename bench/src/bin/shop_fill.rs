//! Fills a folder's shop with old orders, cancelled long ago, for measuring how a shop of many orders differs from one of few.
//!
//! `cargo run --release --bin shop_fill -- FOLDER ORDERS`: adds what is missing to so many.

use bson::{Bson, DateTime, Document, RawDocumentBuf, doc};
use commerce::{Address, Keeping, Line, Money, NewProduct, NewSku, NewUser, OrderRequest, Settings, Shop};
use engine::{Engine, Options};
use sheafdb_bench::{Dice, memory_mb};
use std::path::Path;
use std::time::Instant;
use store::{InsertMany, Store};

/// The allocator of the `sheaf` binary.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const USERS: u64 = 100_000;
const BATCH: u64 = 1_000;

#[tokio::main]
async fn main() {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().expect("a folder");
    let orders: u64 = arguments.next().expect("how many orders").parse().expect("a number");
    let engine = Engine::open(Path::new(&folder), Options::system()).unwrap();
    let store = Store::embedded(engine.clone());
    let settings = Settings { keeping: Keeping::Shop, ..Settings::for_store(&store) };
    let shop = Shop::with(store.clone(), "shop", settings);
    shop.ensure_indexes().await.unwrap();
    let collection = store.collection("shop", "orders");
    let there = collection.count(Document::new(), None).await.unwrap();
    let template = template(&shop, there).await;
    let (begun, mut number) = (Instant::now(), there + 1);
    while number < orders {
        let batch: Vec<RawDocumentBuf> =
            (number..(number + BATCH).min(orders)).map(|number| old(&template, number)).collect();
        number += batch.len() as u64;
        let done = collection.insert_raw_many(batch, InsertMany::default()).await.unwrap();
        assert!(done.errors.is_empty(), "{:?}", done.errors);
    }
    let took = begun.elapsed();
    println!("{orders} orders, {:.0} s, memory {:?} MB (now, most)", took.as_secs_f64(), memory_mb("self"));
    drop((shop, store, collection));
    engine.close().unwrap();
}

/// An order that was placed and cancelled.
async fn template(shop: &Shop, run: u64) -> Document {
    let (buyer, product, sku) = (format!("old-{run}"), format!("old-p-{run}"), format!("old-s-{run}"));
    let address = Address { city: "Lyon".into(), receiver: "a buyer".into(), ..Address::default() };
    let user = NewUser {
        id: Some(buyer.clone()),
        username: buyer.clone(),
        default_address: Some(address),
        ..NewUser::default()
    };
    shop.add_user(&user).await.unwrap();
    let price = Money::new(4_900, "EUR".parse().unwrap());
    shop.add_product(&NewProduct::new(&product, "Desk lamp, brass", price)).await.unwrap();
    let new = NewSku { id: sku.clone(), product_id: product, price_minor: 4_900, quantity: 9, ..NewSku::default() };
    shop.add_sku(&new).await.unwrap();
    let lines = vec![Line { sku, quantity: 2 }];
    let order =
        shop.place_order(&OrderRequest { buyer: buyer.clone(), lines, ..OrderRequest::default() }).await.unwrap();
    shop.cancel_order(&order.id, &buyer, "long ago", None).await.unwrap();
    shop.store().collection("shop", "orders").find_one(doc! { "_id": order.id }, None).await.unwrap().unwrap()
}

fn old(template: &Document, number: u64) -> RawDocumentBuf {
    let mut dice = Dice::new(number);
    let mut order = template.clone();
    // Spread as ids and numbers are, which are made of chance and of time.
    order.insert("_id", format!("{:024x}", u128::from(dice.number()) << 8 | u128::from(dice.below(256))));
    order.insert("orderNumber", format!("O{number:015}"));
    order.insert("userId", format!("buyer-{}", dice.below(USERS)));
    let created = 1_600_000_000_000 + number as i64 * 20_000;
    order.insert("createdAt", Bson::DateTime(DateTime::from_millis(created)));
    RawDocumentBuf::try_from(&order).unwrap()
}
