//! A flash sale with its stock in a real Redis, which the test starts itself: `redis-server` must be there.

#![allow(clippy::unwrap_used, reason = "a test may end at what it did not expect")]

mod client;
mod scene;

use client::{Reply, Running};
use http::{Limits, Role};
use scene::{buyer, config, stocked};
use serde_json::{Value, json};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use store::Store;

const UNITS: usize = 30;
const BUYERS: usize = 60;

/// A Redis on a socket in a folder; it ends with this.
struct Redis(Child);

impl Redis {
    async fn start(folder: &Path) -> Redis {
        let started = Command::new("redis-server")
            .args(["--port", "0", "--unixsocket", "redis.sock", "--save", "", "--appendonly", "no"])
            .current_dir(folder)
            .stdout(Stdio::null())
            .spawn();
        let redis = Redis(started.expect("redis-server is there: apt-get install redis-server"));
        while !folder.join("redis.sock").exists() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        redis
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

async fn reserve(server: &Running, token: &str, key: &str, quantity: i64) -> Reply {
    let call = server.post("/v1/flash-sales/noon/reservations").token(token).key(key);
    call.json(&json!({ "quantity": quantity })).send().await
}

/// What became of a reservation, once it is decided.
async fn decided(server: &Running, token: &str, order: &str) -> Value {
    for _ in 0..500 {
        let path = format!("/v1/flash-sales/noon/reservations/{order}");
        let view = server.get(&path).token(token).send().await.expect(200).json();
        if view["status"] != "waiting" {
            return view;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("{order} waits for ever");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sale_promises_exactly_its_units_at_once_and_the_orders_follow() {
    let folder = tempfile::tempdir().unwrap();
    let _redis = Redis::start(folder.path()).await;
    let store = Store::in_memory().unwrap();
    let mut config = config(&store, Limits { rate_per_second: 0, ..Limits::default() });
    config.redis = Some(format!("redis+unix://{}", folder.path().join("redis.sock").display()));
    config.commerce.as_ref().unwrap().ensure_indexes().await.unwrap();
    config.social.as_ref().unwrap().ensure_indexes().await.unwrap();
    let server = Running::on(store, config).await;
    stocked(&server, "lamp", UNITS as i64 + 10).await;
    let operator = server.token("ops", &[Role::Operator]).await;
    let sale = |units: usize| {
        let body = json!({ "id": "noon", "sku": "lamp", "quantity": units, "until": "2100-01-01T00:00:00Z" });
        server.post("/v1/flash-sales").token(&operator).once().json(&body).send()
    };
    assert_eq!(sale(UNITS).await.expect(201).json()["left"], UNITS);
    sale(UNITS + 1).await.expect_problem(422, "idempotency-mismatch");

    let mut tokens = Vec::new();
    for number in 0..BUYERS {
        tokens.push(buyer(&server, &format!("buyer-{number}")).await);
    }
    let calls = tokens.iter().map(|token| reserve(&server, token, "now", 1));
    let replies = futures_util::future::join_all(calls).await;
    let mut promised = Vec::new();
    for (token, reply) in tokens.iter().zip(replies) {
        match reply.status {
            202 => promised.push((token, reply.json()["order"].as_str().unwrap().to_owned())),
            _ => assert_eq!(reply.expect_problem(409, "out-of-stock").json()["left"], 0),
        }
    }
    assert_eq!(promised.len(), UNITS);
    let (token, order) = &promised[0];
    assert_eq!(reserve(&server, token, "now", 1).await.expect(202).json()["order"], order.as_str());
    for (token, order) in &promised {
        assert_eq!(decided(&server, token, order).await["status"], "placed");
        server.get(&format!("/v1/orders/{order}")).token(token).send().await.expect(200);
    }
    let other = server.get(&format!("/v1/flash-sales/noon/reservations/{order}")).token(promised[1].0);
    other.send().await.expect_problem(404, "not-found");

    let check = server.post("/v1/flash-sales/noon/reconciliations").token(&operator).once().json(&json!({}));
    assert_eq!(check.send().await.expect(200).json(), json!({ "left": 0, "expected": 0 }));
    let close = server.post("/v1/flash-sales/noon/close").token(&operator).once();
    assert_eq!(close.send().await.expect(200).json(), json!({ "released": 0 }));
    let over = server.get("/v1/flash-sales").token(&operator).send().await.expect(200).json();
    assert_eq!(over, json!({ "items": [] }));
    let level = server.get("/v1/skus/lamp/stock").token(&operator).send().await.expect(200).json();
    assert_eq!(level, json!({ "sku": "lamp", "available": 10, "held": UNITS, "sold": 0 }));
}

#[tokio::test]
async fn a_server_without_redis_says_so() {
    let server = scene::both().await;
    stocked(&server, "lamp", 5).await;
    let operator = server.token("ops", &[Role::Operator]).await;
    let body = json!({ "id": "noon", "sku": "lamp", "quantity": 5, "until": "2100-01-01T00:00:00Z" });
    let open = server.post("/v1/flash-sales").token(&operator).once().json(&body);
    open.send().await.expect_problem(409, "conflict");
    server.get("/v1/flash-sales/noon").token(&operator).send().await.expect_problem(404, "not-found");
}
