//! The same shop on a deployment, through the official driver: our own server, which knows nothing of the model.

#![allow(clippy::unwrap_used, reason = "a test may end at what it did not expect")]

mod common;

use commerce::{Checkout, Error, Faults, Keeping, RefundOptions, Simulator};
use common::{SECRET, fill, on, reconciled, request, served};
use std::sync::Arc;
use store::Store;

async fn cluster() -> Store {
    served(engine::Engine::in_memory(engine::Options::system()).unwrap()).await.0
}

#[tokio::test(flavor = "multi_thread")]
async fn two_processes_on_one_deployment_sell_what_there_is_and_owe_nothing() {
    let store = cluster().await;
    let (one, hand) = on(store.clone(), Keeping::Shop).await;
    fill(&one, 40).await;
    // Another process: a till and a cache of its own on the same documents.
    let two = commerce::Shop::with(store, "shop", one.settings().clone());
    let clock = hand.clone();
    let provider = Simulator::new(3, Faults::MANY, SECRET, Arc::new(move || clock.millis()));
    let mut tasks = tokio::task::JoinSet::new();
    for buyer in 0..100 {
        let shop = if buyer % 2 == 0 { one.clone() } else { two.clone() };
        let provider = provider.clone();
        tasks.spawn(async move {
            let placed = if buyer % 5 == 0 {
                let user = format!("u{buyer}");
                shop.put_in_cart(&user, "p", 1, None).await.unwrap();
                shop.checkout(&user, &Checkout { key: "k".into(), ..Checkout::default() }).await
            } else {
                shop.place_order(&request(buyer, &[("p", 1)])).await
            };
            match placed {
                Ok(order) => drop(shop.pay(&order.id, "card", None, &provider).await),
                Err(Error::OutOfStock { left: 0, .. }) => return 0,
                Err(other) => panic!("{other}"),
            }
            1
        });
    }
    assert_eq!(tasks.join_all().await.into_iter().sum::<i32>(), 40);
    provider.set_faults(Faults::NONE);
    for round in 0..40 {
        hand.forward_ms(60_000);
        for callback in provider.due() {
            let shop = if round % 2 == 0 { &one } else { &two };
            shop.accept_callback(&callback).await.unwrap();
        }
        one.settle_payments(&provider).await.unwrap();
        two.housekeeping().await.unwrap();
    }
    let paid = commerce::OrderFilter { buyer: None, status: Some("paid".into()) };
    let page = one.orders(&paid, &commerce::Paging::first(5)).await.unwrap();
    for order in &page.items {
        let options = RefundOptions { key: "r".into(), amount: Some(300), why: String::new(), by: "clerk".into() };
        two.refund_order(&order.id, &options).await.unwrap();
    }
    two.send_refunds(&provider).await.unwrap();
    let verdict = two.verify().await.unwrap();
    assert_eq!(verdict.violations, Vec::<String>::new());
    let books = provider.books();
    assert_eq!(verdict.money_in, books.values().map(|books| books.captured).sum::<i64>());
    assert_eq!(verdict.money_out, books.values().map(|books| books.refunded + books.reversed).sum::<i64>());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hold_expires_once_whichever_process_sweeps_or_cancels() {
    let store = cluster().await;
    let (one, hand) = on(store.clone(), Keeping::Shop).await;
    fill(&one, 30).await;
    let two = commerce::Shop::with(store, "shop", one.settings().clone());
    let mut orders = Vec::new();
    for buyer in 0..30 {
        orders.push(one.place_order(&request(buyer, &[("p", 1), ("q", 1)])).await.unwrap().id);
    }
    hand.forward_ms(15 * 60 * 1_000);
    let mut tasks = tokio::task::JoinSet::new();
    for (number, order) in orders.into_iter().enumerate() {
        let shop = if number % 2 == 0 { one.clone() } else { two.clone() };
        tasks.spawn(async move {
            if number % 3 == 0 {
                return match shop.cancel_order(&order, "buyer", "no", None).await {
                    Ok(_) | Err(Error::IllegalMove { .. }) => 0,
                    Err(other) => panic!("{other}"),
                };
            }
            shop.expire_holds().await.unwrap()
        });
    }
    let mut expired: usize = tasks.join_all().await.into_iter().sum();
    expired += one.expire_holds().await.unwrap() + two.expire_holds().await.unwrap();
    let placed = one.store().collection("shop", "orders");
    assert_eq!(placed.count(bson::doc! { "holdUntil": { "$exists": true } }, None).await.unwrap(), 0);
    let ended = bson::doc! { "statusHistory.state": "expired" };
    assert_eq!(placed.count(ended, None).await.unwrap(), expired as u64, "each is said to have expired once");
    for sku in ["p", "q"] {
        let level = two.stock(sku).await.unwrap();
        assert_eq!((level.available, level.held), (30, 0), "{sku}");
    }
    reconciled(&two).await;
}
