//! The shelf under many buyers: nothing is oversold, nothing leaks, the ledger agrees.

#![allow(clippy::unwrap_used, reason = "a test may end at what it did not expect")]

mod common;

use bson::doc;
use commerce::{Error, Keeping, NewSku};
use common::{reconciled, request, stocked};
use store::Update;

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_buyers_of_fifty_units_get_exactly_fifty_orders() {
    for keeping in [Keeping::Model, Keeping::Shop] {
        let (shop, _) = stocked(keeping, 50).await;
        let mut buyers = tokio::task::JoinSet::new();
        for buyer in 0..200 {
            let shop = shop.clone();
            buyers.spawn(async move { shop.place_order(&request(buyer, &[("p", 1)])).await });
        }
        let mut sold = 0;
        while let Some(outcome) = buyers.join_next().await {
            match outcome.unwrap() {
                Ok(_) => sold += 1,
                Err(Error::OutOfStock { left: 0, wanted: 1, .. }) => {}
                Err(other) => panic!("{other}"),
            }
        }
        assert_eq!(sold, 50);
        let level = shop.stock("p").await.unwrap();
        assert_eq!((level.available, level.held, level.sold), (0, 50, 0));
        reconciled(&shop).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_takes_all_its_lines_or_none() {
    let (shop, _) = stocked(Keeping::Model, 3).await;
    let refused = shop.place_order(&request(1, &[("p", 2), ("q", 4)])).await.unwrap_err();
    assert!(matches!(refused, Error::OutOfStock { ref sku, wanted: 4, left: 3 } if sku == "q"), "{refused}");
    assert_eq!(shop.available("p").await.unwrap(), Some(3));
    assert_eq!(shop.ledger_total("p").await.unwrap(), 3);
    let placed = shop.place_order(&request(1, &[("p", 2), ("p", 1), ("q", 1)])).await.unwrap();
    assert_eq!((placed.total, placed.items.len()), (4_000, 2));
    assert_eq!(shop.available("p").await.unwrap(), Some(0));
    reconciled(&shop).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_number_is_one_order_and_a_negative_quantity_adds_nothing() {
    let (shop, _) = stocked(Keeping::Model, 3).await;
    let mut numbered = request(1, &[("p", 1)]);
    numbered.number = Some("n1".into());
    shop.place_order(&numbered).await.unwrap();
    let again = shop.place_order(&numbered).await.unwrap_err();
    assert!(matches!(again, Error::AlreadyExists { ref id, .. } if id == "n1"), "{again}");
    assert!(matches!(shop.place_order(&request(1, &[("p", -5)])).await, Err(Error::Invalid { .. })));
    assert!(matches!(shop.place_order(&request(1, &[])).await, Err(Error::Invalid { .. })));
    assert!(matches!(shop.place_order(&request(1, &[("p", i64::MAX)])).await, Err(Error::Invalid { .. })));
    assert_eq!(shop.available("p").await.unwrap(), Some(2));
    reconciled(&shop).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hold_that_expires_gives_its_stock_back_once_however_many_sweep() {
    let (shop, hand) = stocked(Keeping::Model, 10).await;
    for buyer in 0..10 {
        shop.place_order(&request(buyer, &[("p", 1), ("q", 1)])).await.unwrap();
    }
    assert_eq!(shop.expire_holds().await.unwrap(), 0);
    hand.forward_ms(15 * 60 * 1_000);
    let mut sweeps = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let shop = shop.clone();
        sweeps.spawn(async move { shop.expire_holds().await.unwrap() });
    }
    let expired: usize = sweeps.join_all().await.into_iter().sum();
    assert_eq!(expired, 10);
    for sku in ["p", "q"] {
        let level = shop.stock(sku).await.unwrap();
        assert_eq!((level.available, level.held), (10, 0));
    }
    let orders = shop.store().collection("shop", "orders");
    assert_eq!(orders.count(doc! { "status": "expired" }, None).await.unwrap(), 10);
    reconciled(&shop).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cancel_and_expiry_that_race_release_once() {
    let (shop, hand) = stocked(Keeping::Model, 50).await;
    let mut orders = Vec::new();
    for buyer in 0..50 {
        orders.push(shop.place_order(&request(buyer, &[("p", 1)])).await.unwrap().id);
    }
    hand.forward_ms(15 * 60 * 1_000);
    let mut tasks = tokio::task::JoinSet::new();
    for order in orders {
        let buyer = shop.clone();
        tasks.spawn(async move {
            match buyer.cancel_order(&order, "buyer", "changed my mind", None).await {
                Ok(_) | Err(Error::IllegalMove { .. }) => {}
                Err(other) => panic!("{other}"),
            }
        });
        if tasks.len() % 10 == 0 {
            let shop = shop.clone();
            tasks.spawn(async move {
                shop.expire_holds().await.unwrap();
            });
        }
    }
    tasks.join_all().await;
    shop.expire_holds().await.unwrap();
    let level = shop.stock("p").await.unwrap();
    assert_eq!((level.available, level.held), (50, 0));
    reconciled(&shop).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_buyer_in_a_hurry_gets_no_more_than_the_limit() {
    let (shop, hand) = stocked(Keeping::Model, 1).await;
    let sku = NewSku {
        id: "flash".into(),
        product_id: "p".into(),
        price_minor: 1,
        quantity: 100,
        per_buyer: Some(2),
        ..NewSku::default()
    };
    shop.add_sku(&sku).await.unwrap();
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..50 {
        let shop = shop.clone();
        tasks.spawn(async move { shop.place_order(&request(7, &[("flash", 1)])).await.is_ok() });
    }
    let bought = tasks.join_all().await.into_iter().filter(|done| *done).count();
    assert_eq!(bought, 2);
    let refused = shop.place_order(&request(7, &[("flash", 1)])).await.unwrap_err();
    assert!(matches!(refused, Error::LimitPerBuyer { limit: 2, had: 2, .. }), "{refused}");
    assert_eq!(shop.stock("flash").await.unwrap().available, 98);
    hand.forward_ms(15 * 60 * 1_000);
    shop.expire_holds().await.unwrap();
    shop.place_order(&request(7, &[("flash", 2)])).await.unwrap();
    reconciled(&shop).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn reconcile_finds_what_somebody_did_by_hand_and_explains_its_repair() {
    let (shop, _) = stocked(Keeping::Model, 10).await;
    let order = shop.place_order(&request(1, &[("p", 4)])).await.unwrap();
    let skus = shop.store().collection("shop", "skus");
    let by_hand = doc! { "$set": { "available": 9_i64, "held": 1_i64 } };
    skus.update_one(doc! { "_id": "p" }, by_hand, Update::default(), None).await.unwrap();
    let found = shop.reconcile(false).await.unwrap();
    assert_eq!(found.skus, 2);
    let one = &found.discrepancies[0];
    assert_eq!((one.available, one.ledger_available, one.held, one.ledger_held, one.holds), (9, 6, 1, 4, 4));
    assert_eq!(shop.reconcile(true).await.unwrap().repaired, 1);
    reconciled(&shop).await;
    let level = shop.stock("p").await.unwrap();
    assert_eq!((level.available, level.held), (6, 4));
    let entry = shop.ledger("p", 10).await.unwrap().into_iter().find(|entry| entry.movement == "correct").unwrap();
    assert_eq!((entry.before_stock, entry.after_stock, entry.operator.as_str()), (9, 6, "reconcile"));
    shop.cancel_order(&order.id, "buyer", "no", None).await.unwrap();
    assert_eq!(shop.available("p").await.unwrap(), Some(10));
    reconciled(&shop).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_reported_twice_comes_in_once() {
    let (shop, _) = stocked(Keeping::Shop, 1).await;
    for _ in 0..3 {
        shop.receive("p", 5, "delivery 17", "warehouse").await.unwrap();
    }
    assert_eq!(shop.stock("p").await.unwrap().available, 6);
    let short = shop.write_off("p", 7, "breakage 1", "warehouse").await.unwrap_err();
    assert!(matches!(short, Error::OutOfStock { wanted: 7, left: 6, .. }), "{short}");
    shop.write_off("p", 6, "breakage 1", "warehouse").await.unwrap();
    reconciled(&shop).await;
}
