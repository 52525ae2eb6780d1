//! A server with a shop and a network behind it, and what the tests put there.

#![allow(dead_code, reason = "each test uses what it needs")]

use crate::client::{Reply, Running};
use commerce::{Shop, Signed};
use http::{Config, Limits, Role};
use serde_json::{Value, json};
use social::{Blog, Metrics, Network};
use std::time::Duration;
use store::Store;

pub(crate) const SECRET: &[u8] = b"a secret between the shop and the provider";

/// Both backends, which keep their models' values themselves.
pub(crate) async fn both() -> Running {
    limited(Limits { rate_per_second: 0, ..Limits::default() }).await
}

pub(crate) async fn limited(limits: Limits) -> Running {
    let store = Store::in_memory().unwrap();
    let config = config(&store, limits);
    config.commerce.as_ref().unwrap().ensure_indexes().await.unwrap();
    config.social.as_ref().unwrap().ensure_indexes().await.unwrap();
    config.blog.as_ref().unwrap().ensure_indexes().await.unwrap();
    config.metrics.as_ref().unwrap().ensure(Duration::from_secs(24 * 3600)).await.unwrap();
    Running::on(store, config).await
}

pub(crate) fn config(store: &Store, limits: Limits) -> Config {
    let mut shop = commerce::Settings::for_store(store);
    shop.keeping = commerce::Keeping::Shop;
    shop.callback_secret = SECRET.to_vec();
    let network = social::Settings::new(social::Keeping::Service);
    Config {
        commerce: Some(Shop::with(store.clone(), "shop", shop)),
        social: Some(Network::with_settings(store.clone(), "social", network)),
        blog: Some(Blog::new(store.clone(), "blog", social::Keeping::Service)),
        metrics: Some(Metrics::new(store, "metrics")),
        limits,
        ..Config::default()
    }
}

/// Puts a product of one SKU with some stock on the shelf, over HTTP.
pub(crate) async fn stocked(server: &Running, sku: &str, quantity: i64) {
    let merchant = server.token("shop", &[Role::Merchant]).await;
    let product = json!({
        "id": format!("p-{sku}"), "name": "Desk lamp", "price": { "amountMinor": 4900, "currency": "EUR" },
        "category": { "id": "lamps", "name": "Lamps", "parent": "" }, "attributes": { "colour": "brass" },
    });
    server.post("/v1/products").token(&merchant).once().json(&product).send().await.expect(201);
    let variant = json!({ "id": sku, "priceMinor": 4900, "quantity": quantity });
    let path = format!("/v1/products/p-{sku}/skus");
    server.post(&path).token(&merchant).once().json(&variant).send().await.expect(201);
}

/// Signs a buyer up; gives their token.
pub(crate) async fn buyer(server: &Running, id: &str) -> String {
    let operator = server.token("ops", &[Role::Operator]).await;
    let body = json!({ "id": id, "username": id, "defaultAddress": { "city": "Lyon", "receiver": id } });
    server.post("/v1/buyers").token(&operator).once().json(&body).send().await.expect(201);
    server.token(id, &[Role::Buyer]).await
}

/// Orders one of a SKU.
pub(crate) async fn order(server: &Running, token: &str, sku: &str) -> Reply {
    let body = json!({ "lines": [{ "sku": sku, "quantity": 1 }] });
    server.post("/v1/orders").token(token).once().json(&body).send().await
}

/// Begins to pay an order; gives the payment.
pub(crate) async fn pay(server: &Running, token: &str, order: &str) -> Value {
    let call = server.post(&format!("/v1/orders/{order}/payments")).token(token).once();
    call.json(&json!({ "method": "card" })).send().await.expect(201).json()
}

/// The provider reports a payment's money.
pub(crate) async fn captured(server: &Running, payment: &Value, event: &str, secret: &[u8]) -> Reply {
    let body = json!({
        "id": event, "paymentId": payment["id"], "report": "captured", "amount": payment["amount"],
        "currency": payment["currency"], "at": "2026-01-01T00:00:00Z",
    });
    let now = commerce::Time::from_millis(bson::DateTime::now().timestamp_millis());
    let signed = Signed::sign(secret, event, now, body.to_string().into_bytes());
    let call = server.post("/v1/webhooks/payments").header("webhook-id", &signed.id);
    let call = call.header("webhook-timestamp", signed.timestamp.to_string());
    call.header("webhook-signature", &signed.signature).bytes(signed.body).send().await
}

/// Signs a user of the network up; gives the id and a token.
pub(crate) async fn user(server: &Running, name: &str) -> (String, String) {
    let operator = server.token("ops", &[Role::Operator]).await;
    let reply = server.post("/v1/users").token(&operator).once().json(&json!({ "username": name })).send().await;
    let id = reply.expect(201).json()["id"].as_str().unwrap().to_owned();
    let token = server.token(&id, &[Role::User]).await;
    (id, token)
}
