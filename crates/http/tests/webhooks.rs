//! Webhooks to others, as an endpoint sees them.

#![allow(clippy::unwrap_used, reason = "a test may end at what it did not expect")]

mod client;
mod scene;

use axum::Router;
use axum::body::Bytes;
use axum::http::HeaderMap;
use axum::routing::post;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use commerce::{Signed, Time};
use http::Role;
use scene::{buyer, captured, order, pay, stocked};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

/// An endpoint; gives its address and what it is sent.
async fn endpoint() -> (String, mpsc::UnboundedReceiver<Signed>) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let take = move |headers: HeaderMap, body: Bytes| {
        let header = |name: &str| headers[name].to_str().unwrap().to_owned();
        let timestamp = header("webhook-timestamp").parse().unwrap();
        let (id, signature) = (header("webhook-id"), header("webhook-signature"));
        sender.send(Signed { id, timestamp, signature, body: body.to_vec() }).unwrap();
        async { "thank you" }
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/told", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, Router::new().route("/told", post(take))).await.unwrap() });
    (url, receiver)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_is_told_of_an_order_by_signed_calls() {
    let server = scene::both().await;
    stocked(&server, "lamp", 5).await;
    let ada = buyer(&server, "ada").await;
    let operator = server.token("ops", &[Role::Operator]).await;
    let (url, mut told) = endpoint().await;
    let add = |body: Value| server.post("/v1/webhook-endpoints").token(&operator).once().json(&body).send();
    add(json!({ "url": "ftp://example.com/" })).await.expect_problem(422, "invalid-body");
    add(json!({ "url": url, "events": ["order.eaten"] })).await.expect_problem(422, "invalid-body");
    let body = json!({ "url": url, "events": ["order.created", "order.paid"] });
    let call = || server.post("/v1/webhook-endpoints").token(&operator).key("endpoint").json(&body).send();
    let added = call().await.expect(201).json();
    let secret = STANDARD.decode(added["secret"].as_str().unwrap().strip_prefix("whsec_").unwrap()).unwrap();
    assert!(call().await.expect(201).json()["secret"].is_null(), "it is shown once");

    let placed = order(&server, &ada, "lamp").await.expect(201).json();
    let payment = pay(&server, &ada, placed["id"].as_str().unwrap()).await;
    captured(&server, &payment, "evt", scene::SECRET).await.expect(200);
    let mut events = Vec::new();
    for _ in 0..2 {
        let call = told.recv().await.unwrap();
        call.verify(&secret, Time::from_millis(bson::DateTime::now().timestamp_millis())).unwrap();
        let event: Value = serde_json::from_slice(&call.body).unwrap();
        assert_eq!(event["data"]["orderId"], placed["id"]);
        events.push(event["type"].as_str().unwrap().to_owned());
    }
    events.sort();
    assert_eq!(events, ["order.created", "order.paid"]);

    let path = format!("/v1/webhook-endpoints/{}", added["id"].as_str().unwrap());
    let listed = server.get("/v1/webhook-endpoints").token(&operator).send().await.expect(200).json();
    assert_eq!((&listed["items"][0]["url"], &listed["items"][0]["secret"]), (&json!(url), &Value::Null));
    let shown = server.get(&format!("{path}/deliveries")).token(&operator).send().await.expect(200).json();
    assert_eq!(shown["items"].as_array().unwrap().len(), 2, "{shown}");
    let resend = |delivery: &str| {
        let path = format!("{path}/deliveries/{delivery}/resend");
        server.post(&path).token(&operator).once().send()
    };
    resend(shown["items"][0]["id"].as_str().unwrap()).await.expect_problem(409, "illegal-move");
    resend("none").await.expect_problem(404, "not-found");
    server.call("DELETE", &path).token(&operator).once().send().await.expect(204);
    server.get(&format!("{path}/deliveries")).token(&operator).send().await.expect_problem(404, "not-found");
}
