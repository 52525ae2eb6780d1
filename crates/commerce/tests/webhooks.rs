//! What others are told of orders: all that happened, signed, and again until it is taken.

#![allow(clippy::unwrap_used, reason = "a test may end at what it did not expect")]

mod common;

use bson::doc;
use commerce::{Error, Keeping, Shop, WEBHOOK_RETRIES, WebhookAnswer, WebhookCall};
use common::{request, stocked};
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::task::JoinHandle;

const SECRET: [u8; 32] = [7; 32];

/// Somebody who notes what is to be told.
fn teller(shop: &Shop) -> JoinHandle<()> {
    let shop = shop.clone();
    tokio::spawn(async move { panic!("{:?}", shop.note_webhooks().await) })
}

async fn noted(shop: &Shop, deliveries: u64) {
    let stored = shop.store().collection("shop", "webhookDeliveries");
    for _ in 0..3_000 {
        match stored.count(doc! {}, None).await.unwrap() {
            count if count == deliveries => return,
            count => assert!(count < deliveries, "{count} deliveries"),
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{} deliveries, not {deliveries}", stored.count(doc! {}, None).await.unwrap());
}

async fn claim_one(shop: &Shop) -> Option<WebhookCall> {
    shop.claim_webhooks(1).await.unwrap().pop()
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_is_told_once_to_each_who_wants_it_however_often_the_teller_is_torn_away() {
    for keeping in [Keeping::Model, Keeping::Shop] {
        let (shop, _) = stocked(keeping, 100).await;
        shop.add_webhook_endpoint("https://all.example/", &[], &SECRET).await.unwrap();
        let some = ["order.cancelled".to_owned()];
        shop.add_webhook_endpoint("https://some.example/", &some, &SECRET).await.unwrap();
        let mut orders = BTreeSet::new();
        for round in 0..6 {
            let order = shop.place_order(&request(round, &[("p", 1)])).await.unwrap();
            let one = teller(&shop);
            if round % 2 == 0 {
                let other = teller(&shop); // as another process would
                noted(&shop, round as u64 * 3 + 1).await;
                other.abort();
            }
            one.abort();
            shop.cancel_order(&order.id, "buyer", "no", None).await.unwrap();
            orders.insert(order.id);
            let last = teller(&shop);
            noted(&shop, (round as u64 + 1) * 3).await;
            last.abort();
        }
        let calls = shop.claim_webhooks(200).await.unwrap();
        assert_eq!(shop.claim_webhooks(200).await.unwrap(), [], "who took them has a minute");
        let mut told = BTreeSet::new();
        for call in &calls {
            call.signed.verify(&SECRET, shop.now()).unwrap();
            let body: serde_json::Value = serde_json::from_slice(&call.signed.body).unwrap();
            assert!(orders.contains(body["data"]["orderId"].as_str().unwrap()), "{body}");
            let version = if body["type"] == "order.created" { 1 } else { 2 };
            assert_eq!(body["data"]["version"], version, "{body}");
            assert!(told.insert((call.url.clone(), call.signed.id.clone())), "told twice: {body}");
        }
        let to = |host: &str| told.iter().filter(|(url, _)| url.contains(host)).count();
        assert_eq!((to("all"), to("some")), (12, 6));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_fails_is_made_again_with_the_same_id_and_given_up_in_the_end() {
    let (shop, hand) = stocked(Keeping::Model, 100).await;
    let endpoint = shop.add_webhook_endpoint("https://a.example/", &[], &SECRET).await.unwrap();
    shop.place_order(&request(1, &[("p", 1)])).await.unwrap();
    let teller = teller(&shop);
    noted(&shop, 1).await;
    teller.abort();
    let first = claim_one(&shop).await.unwrap();
    // Whoever took it was killed: somebody else takes it when the minute is over.
    hand.forward_ms(60_000);
    let mut call = claim_one(&shop).await.unwrap();
    for pause in &WEBHOOK_RETRIES[1..] {
        assert_eq!(call.signed.id, first.signed.id);
        shop.webhook_answered(&call.delivery, WebhookAnswer::Failed("it answered 500".into())).await.unwrap();
        hand.forward_ms(pause.as_millis() as i64 - 1);
        assert_eq!(claim_one(&shop).await, None, "too early");
        hand.forward_ms(1);
        call = claim_one(&shop).await.unwrap();
        call.signed.verify(&SECRET, shop.now()).unwrap();
    }
    shop.webhook_answered(&call.delivery, WebhookAnswer::Failed("it answered 500".into())).await.unwrap();
    let told = shop.webhook_deliveries(&endpoint.id, 10).await.unwrap();
    assert_eq!((told[0].status.as_str(), told[0].attempts), ("failed", 10));
    assert_eq!(told[0].why.as_deref(), Some("it answered 500"));
    // Somebody asks for it once more: it begins anew, with the same id.
    let again = shop.resend_webhook(&endpoint.id, &told[0].id).await.unwrap();
    assert_eq!((again.status.as_str(), again.attempts, again.why), ("pending", 0, None));
    let resent = claim_one(&shop).await.unwrap();
    assert_eq!(resent.signed.id, first.signed.id);
    shop.webhook_answered(&resent.delivery, WebhookAnswer::Taken).await.unwrap();
    for (to, delivery) in [(endpoint.id.as_str(), "none"), ("none", told[0].id.as_str())] {
        let missing = shop.resend_webhook(to, delivery).await;
        assert!(matches!(missing, Err(Error::NotFound { .. })), "{missing:?}");
    }
    let taken = shop.resend_webhook(&endpoint.id, &told[0].id).await;
    assert!(matches!(&taken, Err(Error::IllegalMove { from, .. }) if from == "delivered"), "{taken:?}");
    hand.forward_ms(8 * 24 * 3_600 * 1_000);
    assert_eq!((claim_one(&shop).await, shop.forget_webhooks().await.unwrap()), (None, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_that_is_gone_is_told_no_more() {
    let (shop, _) = stocked(Keeping::Model, 100).await;
    let endpoint = shop.add_webhook_endpoint("https://a.example/", &[], &SECRET).await.unwrap();
    let removed = shop.add_webhook_endpoint("https://b.example/", &[], &SECRET).await.unwrap();
    shop.place_order(&request(1, &[("p", 1)])).await.unwrap();
    shop.place_order(&request(2, &[("p", 1)])).await.unwrap();
    let teller = teller(&shop);
    noted(&shop, 4).await;
    shop.remove_webhook_endpoint(&removed.id).await.unwrap();
    assert!(matches!(shop.remove_webhook_endpoint(&removed.id).await, Err(Error::NotFound { .. })));
    let mut taken = 0;
    while let Some(call) = claim_one(&shop).await {
        assert_eq!(call.url, "https://a.example/");
        shop.webhook_answered(&call.delivery, WebhookAnswer::Gone).await.unwrap();
        taken += 1;
    }
    assert_eq!(taken, 1);
    assert_eq!(shop.webhook_endpoints().await.unwrap()[0].status, "gone");
    let told = shop.webhook_deliveries(&endpoint.id, 10).await.unwrap();
    assert!(told.iter().all(|delivery| delivery.status == "failed"), "{told:?}");
    shop.place_order(&request(3, &[("p", 1)])).await.unwrap();
    teller.abort();
    let unknown = shop.add_webhook_endpoint("https://c.example/", &["order.eaten".into()], &SECRET).await;
    assert!(matches!(unknown, Err(Error::Invalid { field: "events", .. })), "{unknown:?}");
}
