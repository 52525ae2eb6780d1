//! The shelf under many buyers: nothing is oversold, nothing leaks, the ledger agrees.

#![allow(clippy::unwrap_used, reason = "a test may end at what it did not expect")]

use bson::doc;
use commerce::{Error, Line, OrderRequest, Product, Shop, Sku};
use store::Store;

async fn shop(quantity: i64) -> Shop {
    let store = Store::in_memory().unwrap();
    let users = store.collection("shop", "users");
    for buyer in 0..200 {
        users
            .insert_one(doc! { "_id": format!("u{buyer}"), "username": format!("buyer {buyer}") }, None)
            .await
            .unwrap();
    }
    let shop = Shop::new(store, "shop");
    shop.ensure_indexes().await.unwrap();
    for id in ["p", "q"] {
        let product = Product {
            id: id.into(),
            name: format!("product {id}"),
            price_minor: 1_000,
            currency: "EUR".into(),
            image_url: String::new(),
        };
        shop.add_product(&product).await.unwrap();
        shop.add_sku(&Sku { id: id.into(), product_id: id.into(), price_minor: 1_000, quantity }).await.unwrap();
    }
    shop
}

fn request(number: &str, buyer: usize, lines: &[(&str, i64)]) -> OrderRequest {
    let lines = lines.iter().map(|(sku, quantity)| Line { sku: (*sku).into(), quantity: *quantity }).collect();
    OrderRequest { number: number.into(), buyer: format!("u{buyer}"), lines, city: "Lyon".into() }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_buyers_of_fifty_units_get_exactly_fifty_orders() {
    let shop = shop(50).await;
    let mut buyers = tokio::task::JoinSet::new();
    for buyer in 0..200 {
        let shop = shop.clone();
        buyers.spawn(async move { shop.place_order(&request(&format!("n{buyer}"), buyer, &[("p", 1)])).await });
    }
    let mut sold = 0;
    while let Some(outcome) = buyers.join_next().await {
        match outcome.unwrap() {
            Ok(_) => sold += 1,
            Err(Error::OutOfStock { available: 0, .. }) => {}
            Err(other) => panic!("{other}"),
        }
    }
    assert_eq!(sold, 50);
    assert_eq!(shop.available("p").await.unwrap(), Some(0));
    assert_eq!(shop.ledger_total("p").await.unwrap(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_takes_all_its_lines_or_none() {
    let shop = shop(3).await;
    let refused = shop.place_order(&request("n1", 1, &[("p", 2), ("q", 4)])).await.unwrap_err();
    assert!(matches!(refused, Error::OutOfStock { ref sku, asked: 4, available: 3 } if sku == "q"), "{refused}");
    assert_eq!(shop.available("p").await.unwrap(), Some(3));
    assert_eq!(shop.ledger_total("p").await.unwrap(), 3);
    let placed = shop.place_order(&request("n2", 1, &[("p", 2), ("p", 1), ("q", 1)])).await.unwrap();
    assert_eq!(placed.total_minor, 4_000);
    assert_eq!(shop.available("p").await.unwrap(), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn one_number_is_one_order_and_a_negative_quantity_adds_nothing() {
    let shop = shop(3).await;
    shop.place_order(&request("n1", 1, &[("p", 1)])).await.unwrap();
    let again = shop.place_order(&request("n1", 1, &[("p", 1)])).await.unwrap_err();
    assert!(matches!(again, Error::Store(ref error) if error.is_duplicate_key()), "{again}");
    assert!(matches!(shop.place_order(&request("n2", 1, &[("p", -5)])).await, Err(Error::InvalidLine(_))));
    assert_eq!(shop.available("p").await.unwrap(), Some(2));
    assert_eq!(shop.ledger_total("p").await.unwrap(), 2);
}
