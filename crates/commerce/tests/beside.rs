//! A shop on a deployment with `sheaf keep` beside it: both account for the same documents, and nothing is counted twice.

#![allow(clippy::unwrap_used, reason = "a test may end at what it did not expect")]

mod common;

use commerce::{Faults, Keeping, MODEL, RefundOptions, Simulator};
use common::{SECRET, fill, on, request, served};
use model::audit::Auditor;
use model::keep::Keeper;
use model::keep::deployment::Deployment;
use model::problem::Sources;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use store::Store;

fn parsed() -> model::Model {
    let mut sources = Sources::default();
    for (name, text) in MODEL {
        sources.push(name, text);
    }
    model::parse(sources).unwrap_or_else(|problems| panic!("{problems}")).model
}

/// A keeper that works until it is told to stop; then it catches up.
fn keeper(store: &Store, stop: &Arc<AtomicBool>) -> tokio::task::JoinHandle<u64> {
    let (store, stop) = (store.clone(), stop.clone());
    tokio::spawn(async move {
        let planner = Keeper::new(&parsed()).unwrap();
        let mut deployment = Deployment::start(&store, "shop", planner, "beside").await.unwrap().expect("the lease");
        let mut quiet = 0;
        while quiet < 3 {
            let done = deployment.step().await.unwrap();
            quiet = if done == 0 && stop.load(Ordering::Acquire) { quiet + 1 } else { 0 };
        }
        deployment.progress().events
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn orders_beside_a_keeper_are_counted_once() {
    let (store, _serving) = served(engine::Engine::in_memory(engine::Options::system()).unwrap()).await;
    let stop = Arc::new(AtomicBool::new(false));
    let keeping = keeper(&store, &stop);
    let (shop, hand) = on(store.clone(), Keeping::Shop).await;
    fill(&shop, 60).await;
    let clock = hand.clone();
    let provider = Simulator::new(3, Faults::NONE, SECRET, Arc::new(move || clock.millis()));
    let mut tasks = tokio::task::JoinSet::new();
    for buyer in 0..40 {
        let (shop, provider) = (shop.clone(), provider.clone());
        tasks.spawn(async move {
            let order = shop.place_order(&request(buyer % 7, &[("p", 1), ("q", 1)])).await.unwrap();
            if buyer % 3 > 0 {
                shop.pay(&order.id, "card", None, &provider).await.unwrap();
            }
        });
    }
    tasks.join_all().await;
    for round in 0..20 {
        hand.forward_ms(60_000);
        for callback in provider.due() {
            shop.accept_callback(&callback).await.unwrap();
        }
        shop.settle_payments(&provider).await.unwrap();
        shop.housekeeping().await.unwrap();
        // Somebody who knows nothing of the model writes, too.
        let users = store.collection("shop", "users");
        let name = bson::doc! { "$set": { "username": format!("renamed {round}") } };
        users.update_one(bson::doc! { "_id": "u3" }, name, store::Update::default(), None).await.unwrap();
    }
    let paid = commerce::OrderFilter { buyer: None, status: Some("paid".into()) };
    let page = shop.orders(&paid, &commerce::Paging::first(5)).await.unwrap();
    assert_eq!(page.items.len(), 5);
    for order in &page.items {
        let options = RefundOptions { key: "r".into(), amount: Some(300), why: String::new(), by: "clerk".into() };
        shop.refund_order(&order.id, &options).await.unwrap();
    }
    shop.send_refunds(&provider).await.unwrap();
    stop.store(true, Ordering::Release);
    assert!(keeping.await.unwrap() > 40, "the keeper saw the events");

    let users = store.collection("shop", "users");
    let counted = users.find(bson::doc! { "orderCount": { "$gt": 0 } }, store::Find::default(), None).await.unwrap();
    let counts: i64 = counted.iter().map(|user| user.get_i64("orderCount").unwrap()).sum();
    let orders = store.collection("shop", "orders");
    let status = bson::doc! { "status": { "$in": ["paid", "shipped", "signed"] } };
    assert_eq!(counts as u64, orders.count(status, None).await.unwrap());
    let mut auditor = Auditor::new(&store, "shop", &parsed()).unwrap();
    let findings = auditor.run().await.unwrap();
    for finding in &findings {
        assert_eq!(finding.drifted, 0, "{finding:?}");
    }
    let checked = |name: &str| findings.iter().find(|finding| finding.declaration == name).map(|found| found.checked);
    assert!(checked("user.orderCount") >= Some(200) && checked("salesByCity") > Some(0), "{findings:?}");
    assert_eq!(shop.verify().await.unwrap().violations, Vec::<String>::new());
}
