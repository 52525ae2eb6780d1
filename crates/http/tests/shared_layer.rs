//! The shared layer from the outside: problems, tokens, idempotency, limits, health and description.

#![allow(clippy::unwrap_used, reason = "a test may end at what it did not expect")]

mod client;

use client::Running;
use http::{Limits, Role};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

fn a_token(subject: &str) -> Value {
    json!({ "subject": subject, "roles": ["buyer"] })
}

#[tokio::test]
async fn every_refusal_is_a_problem() {
    let server = Running::start().await;
    let operator = server.token("ops", &[Role::Operator]).await;
    let buyer = server.token("ada", &[Role::Buyer]).await;
    server.get("/v1/nothing").send().await.expect_problem(404, "not-found");
    let refused =
        server.call("PUT", "/v1/tokens").token(&operator).send().await.expect_problem(405, "method-not-allowed");
    let allowed: BTreeSet<&str> = refused.header("allow").split(',').map(str::trim).collect();
    assert_eq!(allowed, BTreeSet::from(["GET", "HEAD", "POST"]));
    let refused = server.get("/v1/tokens").send().await.expect_problem(401, "unauthenticated");
    assert!(refused.header("www-authenticate").starts_with("Bearer"));
    server.get("/v1/tokens").token("shf_0123456789abcdef_00").send().await.expect_problem(401, "unauthenticated");
    server.get("/v1/tokens").token(&buyer).send().await.expect_problem(403, "forbidden");
    server.get("/v1/tokens?limit=0").token(&operator).send().await.expect_problem(400, "invalid-query");
    server.get("/v1/tokens?limit=x").token(&operator).send().await.expect_problem(400, "invalid-query");
    server.get("/v1/tokens?cursor=x").token(&operator).send().await.expect_problem(400, "invalid-cursor");
    let post = || server.post("/v1/tokens").token(&operator);
    post().json(&a_token("x")).send().await.expect_problem(400, "idempotency-key-required");
    post().json(&a_token("x")).key("a b").send().await.expect_problem(400, "invalid-header");
    post().once().bytes("{}").send().await.expect_problem(415, "unsupported-media-type");
    let json = |body: &'static str| post().once().header("content-type", "application/json").bytes(body);
    json("{").send().await.expect_problem(400, "malformed-body");
    json("{}").send().await.expect_problem(422, "invalid-body");
    json(r#"{"subject":"x","roles":["king"]}"#).send().await.expect_problem(422, "invalid-body");
    json(r#"{"subject":"x","roles":["buyer"],"more":1}"#).send().await.expect_problem(422, "invalid-body");
    let large = a_token(&"x".repeat(2 << 20));
    post().once().json(&large).send().await.expect_problem(413, "body-too-large");
    let delete = server.call("DELETE", "/v1/tokens/unknown").token(&operator).once();
    delete.send().await.expect_problem(404, "not-found");
}

#[tokio::test]
async fn every_answer_has_an_id_and_security_headers() {
    let server = Running::start().await;
    for path in ["/healthz", "/v1/nothing", "/v1/me"] {
        let reply = server.get(path).send().await;
        assert_eq!(reply.header("x-request-id").len(), 32);
        assert_eq!(reply.header("x-content-type-options"), "nosniff");
        assert_eq!(reply.header("cache-control"), "no-store");
        assert!(reply.header("content-security-policy").contains("default-src 'none'"));
        assert_eq!(reply.header("access-control-allow-origin"), "");
    }
    let reply = server.get("/healthz").header("x-request-id", "mine-1").send().await;
    assert_eq!(reply.header("x-request-id"), "mine-1");
    let reply = server.get("/healthz").header("x-request-id", "not<mine>").send().await;
    assert_eq!(reply.header("x-request-id").len(), 32);
}

#[tokio::test]
async fn web_pages_may_call_from_the_named_origins_only() {
    let config = http::Config { cors_origins: vec!["https://shop.example".into()], ..http::Config::default() };
    let server = Running::with(config).await;
    let preflight = |origin: &str| {
        let call = server.call("OPTIONS", "/v1/tokens").header("origin", origin);
        call.header("access-control-request-method", "POST").send()
    };
    assert_eq!(preflight("https://shop.example").await.header("access-control-allow-origin"), "https://shop.example");
    assert_eq!(preflight("https://evil.example").await.header("access-control-allow-origin"), "");
}

#[tokio::test]
async fn tokens_are_made_listed_by_pages_and_taken_back() {
    let server = Running::start().await;
    let operator = server.token("ops", &[Role::Operator]).await;
    let mut made = BTreeSet::new();
    for number in 0..5 {
        let reply =
            server.post("/v1/tokens").token(&operator).once().json(&a_token(&format!("u{number}"))).send().await;
        let token = reply.expect(201).json();
        made.insert(token["id"].as_str().unwrap().to_owned());
        let me = server.get("/v1/me").token(token["secret"].as_str().unwrap()).send().await.expect(200).json();
        assert_eq!(me["subject"], format!("u{number}"));
    }
    let (mut path, mut listed) = ("/v1/tokens?limit=2".to_owned(), BTreeSet::new());
    loop {
        let reply = server.get(&path).token(&operator).send().await.expect(200);
        let page = reply.json();
        assert!(page["items"].as_array().unwrap().len() <= 2);
        for token in page["items"].as_array().unwrap() {
            assert!(token.get("secret").is_none() && token.get("secretHash").is_none(), "{token}");
            assert!(listed.insert(token["id"].as_str().unwrap().to_owned()), "listed twice");
        }
        let link = reply.header("link");
        if link.is_empty() {
            assert!(page.get("nextCursor").is_none());
            break;
        }
        assert!(link.ends_with("; rel=\"next\""));
        path = link[1..link.find('>').unwrap()].to_owned();
    }
    assert!(listed.is_superset(&made) && listed.len() == 6, "{listed:?}");
    let victim = server.post("/v1/tokens").token(&operator).once().json(&a_token("v")).send().await.json();
    let path = format!("/v1/tokens/{}", victim["id"].as_str().unwrap());
    server.call("DELETE", &path).token(&operator).once().send().await.expect(204);
    let secret = victim["secret"].as_str().unwrap();
    server.get("/v1/me").token(secret).send().await.expect_problem(401, "unauthenticated");
}

#[tokio::test]
async fn a_repeated_call_gets_the_first_answer_and_has_no_second_effect() {
    let server = Running::start().await;
    let operator = server.token("ops", &[Role::Operator]).await;
    let post = |key: &str, body: Value| server.post("/v1/tokens").token(&operator).key(key).json(&body).send();
    let first = post("k1", a_token("ada")).await.expect(201);
    let again = post("k1", a_token("ada")).await.expect(201);
    assert_eq!(again.header("idempotency-replayed"), "true");
    assert_eq!(first.json()["id"], again.json()["id"]);
    assert_eq!(first.header("location"), again.header("location"));
    assert!(first.json()["secret"].is_string() && again.json().get("secret").is_none());
    post("k1", a_token("bob")).await.expect_problem(422, "idempotency-mismatch");
    // A refusal is an answer, too.
    let refused = post("k2", json!({ "subject": "", "roles": ["buyer"] })).await;
    refused.expect_problem(422, "invalid-body");
    let refused = post("k2", json!({ "subject": "", "roles": ["buyer"] })).await.expect_problem(422, "invalid-body");
    assert_eq!(refused.header("idempotency-replayed"), "true");
    // Another caller's key is another key.
    let other = server.token("ops2", &[Role::Operator]).await;
    let theirs = server.post("/v1/tokens").token(&other).key("k1").json(&a_token("ada")).send().await.expect(201);
    assert_ne!(theirs.json()["id"], first.json()["id"]);
}

#[tokio::test]
async fn of_many_equal_calls_at_once_one_has_an_effect() {
    let server = Running::start().await;
    let operator = server.token("ops", &[Role::Operator]).await;
    for round in 0..10 {
        let subject = format!("user-{round}");
        let calls = (0..20).map(|_| {
            let call = server.post("/v1/tokens").token(&operator).key(&format!("round-{round}"));
            call.json(&a_token(&subject)).send()
        });
        let replies = futures_util::future::join_all(calls).await;
        let mut ids = BTreeSet::new();
        for reply in replies {
            match reply.status {
                201 => ids.insert(reply.json()["id"].as_str().unwrap().to_owned()),
                _ => !reply.expect_problem(409, "idempotency-in-flight").header("retry-after").is_empty(),
            };
        }
        assert_eq!(ids.len(), 1);
        let tokens = server.store.collection(http::Config::default().database.as_str(), "apiTokens");
        assert_eq!(tokens.count(bson::doc! { "subject": &subject }, None).await.unwrap(), 1);
    }
}

#[tokio::test]
async fn a_restart_keeps_the_answers() {
    let server = Running::start().await;
    let operator = server.token("ops", &[Role::Operator]).await;
    let first = server.post("/v1/tokens").token(&operator).key("k").json(&a_token("ada")).send().await.expect(201);
    let store = server.stop().await;
    let server = Running::on(store, http::Config::default()).await;
    let again = server.post("/v1/tokens").token(&operator).key("k").json(&a_token("ada")).send().await.expect(201);
    assert_eq!(again.header("idempotency-replayed"), "true");
    assert_eq!(first.json()["id"], again.json()["id"]);
}

#[tokio::test]
async fn callers_are_held_to_their_rate() {
    let server = Running::limited(Limits { rate_per_second: 1, rate_burst: 3, ..Limits::default() }).await;
    let (ada, bob) = (server.token("ada", &[Role::Buyer]).await, server.token("bob", &[Role::Buyer]).await);
    for _ in 0..3 {
        server.get("/v1/me").token(&ada).send().await.expect(200);
    }
    let refused = server.get("/v1/me").token(&ada).send().await.expect_problem(429, "rate-limited");
    assert_eq!(refused.header("retry-after"), "1");
    server.get("/v1/me").token(&bob).send().await.expect(200);
    for _ in 0..3 {
        server.get("/v1/me").token("guess").send().await.expect(401);
    }
    server.get("/v1/me").token("guess").send().await.expect_problem(429, "rate-limited");
    let metrics = server.get("/metrics").send().await.expect(200);
    assert!(String::from_utf8_lossy(&metrics.body).contains("sheaf_http_rate_limited_total 2"));
}

#[tokio::test]
async fn slow_and_oversized_requests_are_cut_off() {
    let limits = Limits {
        head_timeout: Duration::from_millis(200),
        body_timeout: Duration::from_millis(200),
        ..Limits::default()
    };
    let server = Running::limited(limits).await;
    let operator = server.token("ops", &[Role::Operator]).await;
    // A head that does not end.
    let mut slow = tokio::net::TcpStream::connect(server.address).await.unwrap();
    slow.write_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\n").await.unwrap();
    let mut said = Vec::new();
    tokio::time::timeout(Duration::from_secs(5), slow.read_to_end(&mut said)).await.unwrap().unwrap();
    assert!(said.is_empty() || said.starts_with(b"HTTP/1.1 408"), "{}", String::from_utf8_lossy(&said));
    // A body that does not come.
    let mut slow = tokio::net::TcpStream::connect(server.address).await.unwrap();
    let head = format!(
        "POST /v1/tokens HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {operator}\r\nIdempotency-Key: k\r\n\
         Content-Type: application/json\r\nContent-Length: 10\r\n\r\n{{"
    );
    slow.write_all(head.as_bytes()).await.unwrap();
    let mut said = vec![0; 512];
    let length = tokio::time::timeout(Duration::from_secs(5), slow.read(&mut said)).await.unwrap().unwrap();
    assert!(said[..length].starts_with(b"HTTP/1.1 408"), "{}", String::from_utf8_lossy(&said[..length]));
    // A head that is too large.
    let reply = server.get("/healthz").header("x-large", "x".repeat(64 << 10)).send().await;
    assert_eq!(reply.status, 431);
}

#[tokio::test]
async fn one_call_too_many_is_refused_at_once() {
    let server = Running::limited(Limits { calls: 0, ..Limits::default() }).await;
    let ada = server.token("ada", &[Role::Buyer]).await;
    let refused = server.get("/v1/me").token(&ada).send().await.expect_problem(503, "overloaded");
    assert!(!refused.header("retry-after").is_empty());
}

#[tokio::test]
async fn health_readiness_and_metrics_are_open() {
    let server = Running::start().await;
    server.get("/healthz").send().await.expect(200);
    server.get("/readyz").send().await.expect(200);
    server.get("/v1/me").send().await.expect(401);
    let metrics = server.get("/metrics").send().await.expect(200);
    assert!(metrics.header("content-type").starts_with("text/plain; version=0.0.4"));
    let text = String::from_utf8_lossy(&metrics.body).into_owned();
    assert!(text.contains("sheaf_http_requests_total{method=\"GET\",route=\"/v1/me\",status=\"401\"} 1"), "{text}");
    let stopped = server.address;
    server.stop().await;
    assert!(tokio::net::TcpStream::connect(stopped).await.is_err());
}
