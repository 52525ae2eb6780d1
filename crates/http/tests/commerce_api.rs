//! The shop from the outside: a purchase, who sees what, races, live events.

#![allow(clippy::unwrap_used, reason = "a test may end at what it did not expect")]

mod client;
mod scene;

use client::{Events, Running};
use http::Role;
use scene::{SECRET, buyer, captured, order, pay, stocked};
use serde_json::{Value, json};
use std::collections::BTreeSet;

fn id(value: &Value) -> String {
    value["id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_purchase_from_the_cart_to_the_refund() {
    let server = scene::both().await;
    stocked(&server, "lamp", 5).await;
    let ada = buyer(&server, "ada").await;
    let cart = server.get("/v1/cart").token(&ada).send().await.expect(200);
    assert_eq!(cart.header("etag"), "\"0\"");
    let put = |etag: &str, quantity: i64| {
        let call = server.call("PUT", "/v1/cart/lines/lamp").token(&ada).once().header("if-match", etag);
        call.json(&json!({ "quantity": quantity })).send()
    };
    let filled = put("\"0\"", 2).await.expect(200);
    put("\"0\"", 3).await.expect_problem(412, "precondition-failed");
    assert_eq!(filled.json()["lines"], json!([{ "sku": "lamp", "quantity": 2 }]));
    let press = || server.post("/v1/cart/checkout").token(&ada).key("buy").json(&json!({})).send();
    let placed = press().await.expect(201);
    let again = press().await.expect(201);
    assert_eq!((again.header("idempotency-replayed"), &again.body), ("true", &placed.body));
    let order = placed.json();
    assert_eq!((order["total"].as_i64(), order["status"].as_str()), (Some(9800), Some("created")));
    assert!(placed.header("location").ends_with(order["id"].as_str().unwrap()));

    let payment = pay(&server, &ada, &id(&order)).await;
    captured(&server, &payment, "evt-0", b"another secret").await.expect_problem(401, "signature-invalid");
    let unsigned = server.post("/v1/webhooks/payments").json(&json!({})).send().await;
    unsigned.expect_problem(401, "signature-invalid");
    assert_eq!(captured(&server, &payment, "evt-1", SECRET).await.expect(200).json()["accepted"], "done");
    assert_eq!(captured(&server, &payment, "evt-1", SECRET).await.expect(200).json()["accepted"], "known");
    let path = format!("/v1/orders/{}", id(&order));
    let paid = server.get(&path).token(&ada).send().await.expect(200);
    assert_eq!(paid.json()["status"], "paid");
    let known = server.get(&path).token(&ada).header("if-none-match", paid.header("etag")).send().await.expect(304);
    assert!(known.body.is_empty());
    let cancel = server.post(&format!("{path}/cancel")).token(&ada).once().header("if-match", paid.header("etag"));
    cancel.json(&json!({})).send().await.expect_problem(409, "illegal-move");

    let merchant = server.token("shop", &[Role::Merchant]).await;
    let refund = |body: Value| server.post(&format!("{path}/refunds")).token(&merchant).once().json(&body).send();
    refund(json!({ "amountMinor": 9801 })).await.expect_problem(409, "refund-too-large");
    assert_eq!(refund(json!({ "amountMinor": 800, "why": "late" })).await.expect(201).json()["status"], "pending");
    refund(json!({ "amountMinor": 9001 })).await.expect_problem(409, "refund-too-large");
}

#[tokio::test]
async fn nobody_sees_or_touches_the_order_of_another_buyer() {
    let server = scene::both().await;
    stocked(&server, "lamp", 5).await;
    let (ada, bob) = (buyer(&server, "ada").await, buyer(&server, "bob").await);
    let placed = order(&server, &ada, "lamp").await.expect(201).json();
    let (there, missing) = (format!("/v1/orders/{}", id(&placed)), "/v1/orders/000000000000000000000000".to_owned());
    let empty = json!({});
    let card = json!({ "method": "card" });
    let calls: [(&str, &str, Option<&Value>); 7] = [
        ("GET", "", None),
        ("GET", "/payments", None),
        ("GET", "/events", None),
        ("POST", "/payments", Some(&card)),
        ("POST", "/cancel", Some(&empty)),
        ("POST", "/sign", None),
        ("GET", "/payments?x=1", None),
    ];
    for (method, rest, body) in calls {
        let mut answers = Vec::new();
        for path in [&there, &missing] {
            let mut call = server.call(method, &format!("{path}{rest}")).token(&bob);
            if method == "POST" {
                call = call.once().header("if-match", "*");
            }
            if let Some(body) = body {
                call = call.json(body);
            }
            answers.push(call.send().await.expect_problem(404, "not-found").body);
        }
        assert_eq!(answers[0], answers[1], "{method} {rest}: another's order is told from a missing one");
    }
    for path in ["/v1/buyers/ada", "/v1/buyers/ada/profile", "/v1/buyers/ada/coupons", "/v1/orders?buyer=ada"] {
        server.get(path).token(&bob).send().await.expect_problem(404, "not-found");
    }
    let claim = server.post("/v1/buyers/ada/coupons").token(&bob).once().json(&json!({ "campaign": "x" }));
    claim.send().await.expect_problem(404, "not-found");
    let theirs = server.get("/v1/orders").token(&bob).send().await.expect(200).json();
    assert_eq!(theirs["items"], json!([]));
    let untouched = server.get(&there).token(&ada).send().await.expect(200).json();
    assert_eq!(untouched, placed);
    let merchant = server.token("shop", &[Role::Merchant]).await;
    server.get(&there).token(&merchant).send().await.expect(200);
}

#[tokio::test]
async fn of_changes_to_one_version_one_succeeds() {
    let server = scene::both().await;
    stocked(&server, "lamp", 50).await;
    let ada = buyer(&server, "ada").await;
    for _ in 0..5 {
        let placed = order(&server, &ada, "lamp").await.expect(201);
        let path = format!("/v1/orders/{}/cancel", id(&placed.json()));
        let cancel = |_| {
            let call = server.post(&path).token(&ada).once().header("if-match", placed.header("etag"));
            call.json(&json!({ "why": "changed my mind" })).send()
        };
        let replies = futures_util::future::join_all((0..20).map(cancel)).await;
        assert_eq!(replies.iter().filter(|reply| reply.status == 200).count(), 1);
        assert!(replies.iter().all(|reply| [200, 412].contains(&reply.status)), "{replies:?}");
        let post = server.post(&path).token(&ada).once().json(&json!({}));
        post.send().await.expect_problem(428, "precondition-required");
    }
    let merchant = server.token("shop", &[Role::Merchant]).await;
    let level = server.get("/v1/skus/lamp/stock").token(&merchant).send().await.expect(200).json();
    assert_eq!(level, json!({ "sku": "lamp", "available": 50, "held": 0, "sold": 0 }));
}

#[tokio::test]
async fn a_flash_sale_sells_what_there_is() {
    let server = scene::both().await;
    stocked(&server, "lamp", 30).await;
    let mut tokens = Vec::new();
    for number in 0..100 {
        tokens.push(buyer(&server, &format!("buyer-{number}")).await);
    }
    let replies = futures_util::future::join_all(tokens.iter().map(|token| order(&server, token, "lamp"))).await;
    let sold = replies.iter().filter(|reply| reply.status == 201).count();
    assert_eq!(sold, 30);
    for reply in replies.into_iter().filter(|reply| reply.status != 201) {
        assert_eq!(reply.expect_problem(409, "out-of-stock").json()["left"], 0);
    }
    let operator = server.token("ops", &[Role::Operator]).await;
    let check = server.post("/v1/stock/reconciliations").token(&operator).once().json(&json!({}));
    assert_eq!(check.send().await.expect(200).json(), json!({ "skus": 1, "discrepancies": [], "repaired": 0 }));
}

#[tokio::test]
async fn an_order_is_placed_once_for_its_key_and_a_refused_one_can_be_placed_anew() {
    let server = scene::both().await;
    stocked(&server, "lamp", 5).await;
    let ada = buyer(&server, "ada").await;
    let body = json!({ "lines": [{ "sku": "lamp", "quantity": 1 }] });
    let place = |key: &str| server.post("/v1/orders").token(&ada).key(key).json(&body).send();
    let replies = futures_util::future::join_all((0..20).map(|_| place("one"))).await;
    let made: BTreeSet<_> = replies.iter().filter(|reply| reply.status == 201).map(|reply| id(&reply.json())).collect();
    assert_eq!(made.len(), 1);
    assert!(replies.iter().all(|reply| [201, 409].contains(&reply.status)));
    let listed = server.get("/v1/orders").token(&ada).send().await.expect(200).json();
    assert_eq!(listed["items"].as_array().unwrap().len(), 1);
    // The answer is kept in the order's own commit. Housekeeping may add one of its own now and then.
    let storage = server.store.engine().unwrap().storage();
    let mut fewest = u64::MAX;
    for number in 0..4 {
        let before = storage.flushed();
        place(&format!("again-{number}")).await.expect(201);
        fewest = fewest.min(storage.flushed() - before);
    }
    assert_eq!(fewest, 1, "commits of an order");
    let unknown = json!({ "lines": [{ "sku": "nothing", "quantity": 1 }] });
    let refused = server.post("/v1/orders").token(&ada).once().json(&unknown).send().await;
    assert_eq!(refused.expect_problem(422, "unknown-reference").json()["id"], "nothing");
    for quantity in [0, -1, 1_000_001] {
        let body = json!({ "lines": [{ "sku": "lamp", "quantity": quantity }] });
        server.post("/v1/orders").token(&ada).once().json(&body).send().await.expect_problem(422, "invalid-body");
    }
}

#[tokio::test]
async fn lists_go_on_by_their_cursors() {
    let server = scene::both().await;
    stocked(&server, "lamp", 50).await;
    let ada = buyer(&server, "ada").await;
    let mut placed = Vec::new();
    for _ in 0..7 {
        placed.push(id(&order(&server, &ada, "lamp").await.expect(201).json()));
    }
    let (mut path, mut listed) = ("/v1/orders?status=created&limit=3".to_owned(), Vec::new());
    loop {
        let reply = server.get(&path).token(&ada).send().await.expect(200);
        listed.extend(reply.json()["items"].as_array().unwrap().iter().map(id));
        let link = reply.header("link").to_owned();
        let Some(end) = link.find('>') else { break };
        path = link[1..end].to_owned();
        // What comes in between does not move the pages.
        order(&server, &ada, "lamp").await.expect(201);
    }
    assert_eq!(BTreeSet::from_iter(&listed), BTreeSet::from_iter(&placed));
    assert_eq!(listed.len(), 7);
    let other = path.replace("status=created", "status=paid");
    server.get(&other).token(&ada).send().await.expect_problem(400, "invalid-cursor");
    server.get("/v1/orders?status=lost").token(&ada).send().await.expect_problem(400, "invalid-query");
    let products = server.get("/v1/products?attribute=colour:brass").send().await.expect(200).json();
    assert_eq!(products["items"].as_array().unwrap().len(), 1);
    server.get("/v1/products").send().await.expect_problem(400, "invalid-query");
    server.get("/v1/products/nothing").send().await.expect_problem(404, "not-found");
}

async fn events(server: &Running, token: &str, order: &str, last: Option<&str>) -> Events {
    let mut call = server.get(&format!("/v1/orders/{order}/events")).token(token);
    if let Some(last) = last {
        call = call.header("last-event-id", last);
    }
    Events::open(call).await
}

#[tokio::test]
async fn an_orders_changes_are_followed_and_taken_up_again() {
    let server = scene::both().await;
    stocked(&server, "lamp", 5).await;
    let ada = buyer(&server, "ada").await;
    let placed = order(&server, &ada, "lamp").await.expect(201).json();
    let mut stream = events(&server, &ada, &id(&placed), None).await;
    assert_eq!(stream.next().await.unwrap().data, placed);
    let payment = pay(&server, &ada, &id(&placed)).await;
    let tried = stream.next().await.unwrap();
    assert_eq!(tried.data["payment"]["attempts"], json!([payment["id"]]));
    assert!(!tried.id.is_empty());
    drop(stream);
    captured(&server, &payment, "evt", SECRET).await.expect(200);
    let other = order(&server, &ada, "lamp").await.expect(201).json();
    let mut stream = events(&server, &ada, &id(&placed), Some(&tried.id)).await;
    let missed = stream.next().await.unwrap();
    assert_eq!((missed.data["id"].as_str(), missed.data["status"].as_str()), (placed["id"].as_str(), Some("paid")));
    // Nothing is sent twice, and nothing of other orders.
    pay(&server, &ada, &id(&other)).await;
    let merchant = server.token("shop", &[Role::Merchant]).await;
    let refund = server.post(&format!("/v1/orders/{}/refunds", id(&placed))).token(&merchant).once();
    refund.json(&json!({ "amountMinor": 100 })).send().await.expect(201);
    let next = stream.next().await.unwrap();
    assert_eq!(
        (next.data["id"].as_str(), next.data["payment"]["refunding"].as_i64()),
        (placed["id"].as_str(), Some(100))
    );
    let path = format!("/v1/orders/{}/events", id(&placed));
    let wrong = server.get(&path).token(&ada).header("last-event-id", "nonsense").send().await;
    wrong.expect_problem(400, "invalid-header");
    // The server's end is the streams' end.
    let stopped = tokio::spawn(server.stop());
    assert!(stream.next().await.is_none());
    stopped.await.unwrap();
}

#[tokio::test]
async fn after_the_payment_parcels_a_review_a_return_and_a_report() {
    let server = scene::both().await;
    stocked(&server, "lamp", 5).await;
    let (ada, bob) = (buyer(&server, "ada").await, buyer(&server, "bob").await);
    let merchant = server.token("shop", &[Role::Merchant]).await;
    let placed = order(&server, &ada, "lamp").await.expect(201).json();
    let path = format!("/v1/orders/{}", id(&placed));
    let review = |token: &str| {
        let body = json!({ "order": id(&placed), "rating": 5, "text": "bright" });
        server.post("/v1/products/p-lamp/reviews").once().json(&body).token_of(token).send()
    };
    review(&ada).await.expect_problem(403, "not-bought");
    let payment = pay(&server, &ada, &id(&placed)).await;
    captured(&server, &payment, "evt", SECRET).await.expect(200);
    let ship = server.post(&format!("{path}/parcels")).token(&merchant).once().header("if-match", "*");
    let parcel = ship.json(&json!({ "carrier": "post", "trackingNumber": "T1" })).send().await.expect(201).json();
    let track = format!("/v1/parcels/{}/track", id(&parcel));
    let events = json!({ "events": [{ "id": "e1", "time": "2026-01-02T00:00:00Z", "status": "in-transit" }] });
    for new in [1, 0] {
        let told = server.post(&track).token(&merchant).once().json(&events).send().await.expect(200);
        assert_eq!(told.json()["new"], new);
    }
    assert_eq!(server.get(&track).token(&ada).send().await.expect(200).json()["items"][0]["id"], "e1");
    server.get(&track).token(&bob).send().await.expect_problem(404, "not-found");
    review(&ada).await.expect(201);
    review(&bob).await.expect_problem(403, "not-bought");
    let shown = server.get("/v1/products/p-lamp/reviews").send().await.expect(200).json();
    assert_eq!(shown["items"][0]["rating"], 5);
    let ask = |token: &str| {
        let body = json!({ "kind": "return", "lines": [{ "sku": "lamp", "quantity": 1 }], "why": "too bright" });
        server.post(&format!("{path}/after-sales")).once().json(&body).token_of(token).send()
    };
    ask(&bob).await.expect_problem(404, "not-found");
    let asked = ask(&ada).await.expect(201);
    let steps = format!("/v1/after-sales/{}/steps", id(&asked.json()));
    let step = |token: &str, to: &str, etag: &str| {
        let call = server.post(&steps).once().json(&json!({ "to": to })).header("if-match", etag);
        call.token_of(token).send()
    };
    step(&bob, "withdrawn", "*").await.expect_problem(404, "not-found");
    step(&ada, "approved", "*").await.expect_problem(403, "forbidden");
    step(&merchant, "received", "*").await.expect_problem(409, "illegal-move");
    let approved = step(&merchant, "approved", asked.header("etag")).await.expect(200);
    step(&merchant, "received", asked.header("etag")).await.expect_problem(412, "precondition-failed");
    step(&merchant, "received", approved.header("etag")).await.expect(200);
    let report = "/v1/reports/sales?by=city&from=2020-01-01&to=2100-01-01&source=aggregation";
    server.get(report).token(&ada).send().await.expect_problem(403, "forbidden");
    let rows = server.get(report).token(&merchant).send().await.expect(200).json()["rows"].clone();
    assert_eq!((rows[0]["key"].as_str(), rows[0]["sales"].as_i64()), (Some("Lyon"), Some(4900)));
    let wrong = "/v1/reports/sales?by=city&from=2020-01-01&to=2020-01-01";
    server.get(wrong).token(&merchant).send().await.expect_problem(400, "invalid-query");
}

#[tokio::test]
async fn categories_are_listed_by_pages_and_their_names_follow_on_products() {
    let server = scene::both().await;
    stocked(&server, "lamp", 5).await;
    let merchant = server.token("shop", &[Role::Merchant]).await;
    let name = |id: &str, name: &str| {
        let call = server.call("PUT", &format!("/v1/categories/{id}")).token(&merchant).once();
        call.json(&json!({ "name": name })).send()
    };
    name("chairs", "Chairs").await.expect(200);
    name("lamps", "Lights").await.expect(200);
    name("lamps", "").await.expect_problem(422, "invalid-body");
    let first = server.get("/v1/categories?limit=1").send().await.expect(200).json();
    assert_eq!((&first["items"][0]["id"], first["items"].as_array().unwrap().len()), (&json!("chairs"), 1));
    let next = format!("/v1/categories?limit=1&cursor={}", first["nextCursor"].as_str().unwrap());
    let second = server.get(&next).send().await.expect(200).json();
    assert_eq!((&second["items"][0]["name"], &second["nextCursor"]), (&json!("Lights"), &Value::Null));
    let product = server.get("/v1/products/p-lamp").send().await.expect(200).json();
    assert_eq!(product["category"]["name"], "Lights");
}
