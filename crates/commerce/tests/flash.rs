//! A flash sale: thousands of buyers of one SKU at once, on a folder, every answer durable.
//!
//! `SHEAF_FLASH_BUYERS` says how many (2,000 unless given), for a tenth as many units.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test may end at what it did not expect, and says how fast it was"
)]

mod common;

use commerce::{Error, Keeping, NewProduct, NewSku};
use common::{euros, lyon, on, reconciled, request};
use std::time::Instant;
use store::Store;

#[tokio::test(flavor = "multi_thread")]
async fn exactly_the_stock_is_sold_and_everybody_has_an_answer_at_once() {
    let buyers: usize = std::env::var("SHEAF_FLASH_BUYERS").ok().and_then(|text| text.parse().ok()).unwrap_or(2_000);
    let units = buyers as i64 / 10;
    let folder = tempfile::tempdir().unwrap();
    let (shop, _) = on(Store::open(folder.path()).unwrap(), Keeping::Model).await;
    let users: Vec<_> =
        (0..buyers).map(|buyer| bson::doc! { "_id": format!("u{buyer}"), "username": format!("b{buyer}") }).collect();
    shop.store().collection("shop", "users").insert_many(users, None).await.unwrap();
    shop.add_product(&NewProduct::new("p", "lamp", euros(1_000))).await.unwrap();
    let lamp =
        NewSku { id: "p".into(), product_id: "p".into(), price_minor: 1_000, quantity: units, ..NewSku::default() };
    shop.add_sku(&NewSku { per_buyer: Some(1), ..lamp }).await.unwrap();
    let begun = Instant::now();
    let mut tasks = tokio::task::JoinSet::new();
    for buyer in 0..buyers {
        let shop = shop.clone();
        let mut wanted = request(buyer, &[("p", 1)]);
        wanted.address = Some(lyon());
        tasks.spawn(async move {
            let answer = shop.place_order(&wanted).await;
            (answer, Instant::now())
        });
    }
    let (mut sold, mut slowest) = (0, begun);
    for (answer, at) in tasks.join_all().await {
        slowest = slowest.max(at);
        match answer {
            Ok(_) => sold += 1,
            Err(Error::OutOfStock { left: 0, .. }) => {}
            Err(other) => panic!("{other}"),
        }
    }
    let took = begun.elapsed().as_secs_f64();
    eprintln!("{buyers} buyers of {units}: {:.0} answers/s, {:.0} orders/s", buyers as f64 / took, units as f64 / took);
    assert_eq!(sold, units);
    let level = shop.stock("p").await.unwrap();
    assert_eq!((level.available, level.held), (0, units));
    reconciled(&shop).await;
    // All of them sell, as fast as they can: the orders' own rate.
    shop.receive("p", buyers as i64, "more", "warehouse").await.unwrap();
    let begun = Instant::now();
    let mut tasks = tokio::task::JoinSet::new();
    for buyer in 0..buyers {
        let shop = shop.clone();
        let mut wanted = request(buyer, &[("p", 1)]);
        wanted.address = Some(lyon());
        tasks.spawn(async move { shop.place_order(&wanted).await.is_ok() });
    }
    let sold = tasks.join_all().await.into_iter().filter(|sold| *sold).count();
    let took = begun.elapsed().as_secs_f64();
    eprintln!("{sold} orders of one SKU: {:.0} orders/s", sold as f64 / took);
    assert_eq!(sold as i64, buyers as i64 - units, "who has one gets no second");
    reconciled(&shop).await;
    let engine = shop.store().engine().unwrap().clone();
    drop(shop);
    engine.close().unwrap();
}
