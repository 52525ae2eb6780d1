//! The same shop on a deployment, through the official driver: our own server, which knows nothing of the model.

#![allow(clippy::unwrap_used, reason = "a test may end at what it did not expect")]

mod common;

use commerce::{Checkout, Error, Faults, Keeping, RefundOptions, Simulator};
use common::{SECRET, fill, on, request};
use std::future::pending;
use std::sync::Arc;
use store::Store;
use wire::{Address, Config, Listen, Server};

async fn cluster() -> Store {
    let config = Config { listen: vec![Listen::Tcp { host: "127.0.0.1".to_owned(), port: 0 }], ..Config::default() };
    let engine = engine::Engine::in_memory(engine::Options::system()).unwrap();
    let server = Server::bind(config, engine).await.unwrap();
    let Some(Address::Tcp(address)) = server.addresses().into_iter().next() else { panic!("a TCP address") };
    tokio::spawn(server.serve(pending()));
    Store::connect(&format!("mongodb://{address}/?replicaSet=sheaf")).await.unwrap()
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
