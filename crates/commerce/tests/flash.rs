//! A flash sale: thousands of buyers of one SKU at once, on a folder, every answer durable; and the same on a deployment.
//!
//! `SHEAF_FLASH_BUYERS` says how many (2,000 unless given, 400 on the deployment), for a tenth as many units.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test may end at what it did not expect, and says how fast it was"
)]

mod common;

use commerce::{Error, Keeping, NewProduct, NewSku, Shop};
use common::{euros, lyon, on, reconciled, request, served};
use std::time::Instant;
use store::Store;

fn buyers(otherwise: usize) -> usize {
    std::env::var("SHEAF_FLASH_BUYERS").ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

/// All of the buyers press the button at once; gives who got one, and how many answers a second there were.
async fn rush(shops: &[Shop], buyers: usize) -> (Vec<usize>, f64) {
    let begun = Instant::now();
    let mut tasks = tokio::task::JoinSet::new();
    for buyer in 0..buyers {
        let shop = shops[buyer % shops.len()].clone();
        let mut wanted = request(buyer, &[("p", 1)]);
        wanted.address = Some(lyon());
        tasks.spawn(async move {
            match shop.place_order(&wanted).await {
                Ok(_) => Some(buyer),
                Err(Error::OutOfStock { left: 0, .. } | Error::LimitPerBuyer { limit: 1, had: 1, .. }) => None,
                Err(other) => panic!("{other}"),
            }
        });
    }
    let sold = tasks.join_all().await.into_iter().flatten().collect();
    (sold, buyers as f64 / begun.elapsed().as_secs_f64())
}

async fn sale(shops: &[Shop], buyers: usize, place: &str) {
    let (shop, units) = (&shops[0], buyers as i64 / 10);
    let users: Vec<_> =
        (0..buyers).map(|buyer| bson::doc! { "_id": format!("u{buyer}"), "username": format!("b{buyer}") }).collect();
    for part in users.chunks(1_000) {
        shop.store().collection("shop", "users").insert_many(part.to_vec(), None).await.unwrap();
    }
    shop.add_product(&NewProduct::new("p", "lamp", euros(1_000))).await.unwrap();
    let lamp =
        NewSku { id: "p".into(), product_id: "p".into(), price_minor: 1_000, quantity: units, ..NewSku::default() };
    shop.add_sku(&NewSku { per_buyer: Some(1), ..lamp }).await.unwrap();
    let (first, rate) = rush(shops, buyers).await;
    eprintln!("{place}: {buyers} buyers of {units}: {} sold, {rate:.0} answers/s", first.len());
    assert_eq!(first.len() as i64, units);
    let level = shop.stock("p").await.unwrap();
    assert_eq!((level.available, level.held), (0, units));
    reconciled(shop).await;
    // Now there is one for everybody, and the rate is the orders' own.
    shop.receive("p", buyers as i64, "more", "warehouse").await.unwrap();
    let (second, rate) = rush(shops, buyers).await;
    eprintln!("{place}: {} orders of one SKU: {rate:.0} answers/s", second.len());
    assert_eq!(second.len() as i64, buyers as i64 - units, "who has one gets no second");
    assert!(first.iter().all(|buyer| !second.contains(buyer)));
    reconciled(shop).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn exactly_the_stock_is_sold_and_everybody_has_an_answer_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let (shop, _) = on(Store::open(folder.path()).unwrap(), Keeping::Model).await;
    sale(std::slice::from_ref(&shop), buyers(2_000), "folder").await;
    let engine = shop.store().engine().unwrap().clone();
    drop(shop);
    engine.close().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn two_processes_on_a_deployment_sell_exactly_the_stock() {
    let folder = tempfile::tempdir().unwrap();
    let engine = engine::Engine::open(folder.path(), engine::Options::system()).unwrap();
    let (store, _serving) = served(engine).await;
    let (one, _) = on(store.clone(), Keeping::Shop).await;
    let two = Shop::with(store, "shop", one.settings().clone());
    sale(&[one, two], buyers(400), "deployment").await;
}
