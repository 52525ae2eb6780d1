//! The blog, machines and the log of operations from the outside.

#![allow(clippy::unwrap_used, reason = "a test may end at what it did not expect")]

mod client;
mod scene;

use client::Running;
use http::Role;
use scene::user;
use serde_json::{Value, json};

/// Signs an author up; gives the id and a token.
async fn author(server: &Running, name: &str) -> (String, String) {
    let operator = server.token("ops", &[Role::Operator]).await;
    let body = json!({ "name": name, "email": format!("{name}@example.org") });
    let reply = server.post("/v1/authors").token(&operator).once().json(&body).send().await.expect(201);
    assert!(reply.json().get("email").is_none(), "an address is nobody's to read");
    let id = reply.json()["id"].as_str().unwrap().to_owned();
    let token = server.token(&id, &[Role::Author]).await;
    (id, token)
}

async fn draft(server: &Running, token: &str, slug: &str) -> Value {
    let body = json!({ "title": slug, "slug": slug, "body": "text", "tags": ["all"] });
    let reply = server.post("/v1/articles").token(token).once().json(&body).send().await.expect(201);
    assert_eq!(reply.header("etag"), "\"1\"");
    reply.json()
}

async fn publish(server: &Running, token: &str, article: &Value) {
    let path = format!("/v1/articles/{}/published", article["id"].as_str().unwrap());
    server.call("PUT", &path).token(token).once().send().await.expect(204);
}

#[tokio::test]
async fn a_draft_is_its_authors_and_an_article_everybodys() {
    let server = scene::both().await;
    let ((ann, at), (_, bt)) = (author(&server, "ann").await, author(&server, "bo").await);
    let article = draft(&server, &at, "first").await;
    let id = article["id"].as_str().unwrap();
    let taken = json!({ "title": "t", "slug": "first", "body": "" });
    server.post("/v1/articles").token(&bt).once().json(&taken).send().await.expect_problem(409, "already-exists");
    // Nobody else sees, edits or publishes a draft.
    let (own, public) = (format!("/v1/drafts/{id}"), "/v1/articles/by-slug/first");
    let path = format!("/v1/articles/{id}");
    let edit = |token: &str, version: &str| {
        let call = server.call("PATCH", &path).token_of(token).once().header("if-match", version);
        call.json(&json!({ "body": "better" })).send()
    };
    server.get(&own).token(&at).send().await.expect(200);
    server.get(&own).token(&bt).send().await.expect_problem(404, "not-found");
    server.get(public).send().await.expect_problem(404, "not-found");
    server.get(&format!("{path}/comments")).send().await.expect_problem(404, "not-found");
    edit(&bt, "\"1\"").await.expect_problem(404, "not-found");
    let publication = format!("{path}/published");
    server.call("PUT", &publication).token(&bt).once().send().await.expect_problem(404, "not-found");
    assert_eq!(server.get("/v1/drafts").token(&bt).send().await.expect(200).json()["items"], json!([]));
    assert_eq!(server.get("/v1/drafts").token(&at).send().await.expect(200).json()["items"][0]["id"], id);
    publish(&server, &at, &article).await;
    publish(&server, &at, &article).await;
    assert_eq!(server.get(public).send().await.expect(200).json()["body"], "text");
    edit(&bt, "\"1\"").await.expect_problem(403, "not-allowed");
    edit(&at, "\"1\"").await.expect(200);
    edit(&at, "\"1\"").await.expect_problem(412, "precondition-failed");
    assert_eq!(server.get(public).send().await.expect(200).json()["body"], "better");
    let page = format!("/v1/authors/{ann}");
    assert_eq!(server.get(&page).send().await.expect(200).json()["articleCount"], 1);
    let rename = |token: &str| {
        let call = server.call("PATCH", &page).token_of(token).once();
        call.json(&json!({ "name": "Anna" })).send()
    };
    rename(&bt).await.expect_problem(404, "not-found");
    rename(&at).await.expect(200);
    assert_eq!(server.get(public).send().await.expect(200).json()["authorName"], "Anna");
}

#[tokio::test]
async fn articles_are_listed_in_pages() {
    let server = scene::both().await;
    let (ann, at) = author(&server, "ann").await;
    for slug in ["one", "two", "three"] {
        let article = draft(&server, &at, slug).await;
        publish(&server, &at, &article).await;
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    }
    for query in ["limit=2", "limit=2&tag=all", &format!("limit=2&author={ann}")] {
        let first = server.get(&format!("/v1/articles?{query}")).send().await.expect(200);
        let slugs: Vec<_> = first.json()["items"].as_array().unwrap().iter().map(|item| item["slug"].clone()).collect();
        assert_eq!(slugs, ["three", "two"], "{query}");
        let next = first.header("link").split(['<', '>']).nth(1).unwrap().to_owned();
        let rest = server.get(&next).send().await.expect(200).json();
        assert_eq!((&rest["items"][0]["slug"], rest.get("nextCursor")), (&json!("one"), None), "{query}");
    }
    assert_eq!(server.get("/v1/articles?tag=other").send().await.expect(200).json()["items"], json!([]));
    let both = server.get(&format!("/v1/articles?tag=all&author={ann}")).send().await;
    both.expect_problem(400, "invalid-query");
}

#[tokio::test]
async fn comments_carry_the_callers_name_and_are_hidden_by_who_may() {
    let server = scene::both().await;
    let ((_, at), (_, bt)) = (author(&server, "ann").await, author(&server, "bo").await);
    let (_, eve) = user(&server, "eve").await;
    let article = draft(&server, &at, "first").await;
    publish(&server, &at, &article).await;
    let path = format!("/v1/articles/{}/comments", article["id"].as_str().unwrap());
    let say = |token: &str, key: &str| {
        let call = server.post(&path).token_of(token).key(key);
        call.json(&json!({ "text": "well said" })).send()
    };
    let first = say(&eve, "one").await.expect(201).json();
    assert_eq!(say(&eve, "one").await.expect(201).json(), first);
    say(&bt, "two").await.expect(201);
    let listed = server.get(&path).send().await.expect(200).json();
    let names: Vec<_> = listed["items"].as_array().unwrap().iter().map(|item| item["authorName"].clone()).collect();
    assert_eq!(names, ["bo", "eve"]);
    let hidden = format!("/v1/article-comments/{}/hidden", first["id"].as_str().unwrap());
    server.call("PUT", &hidden).token(&bt).once().send().await.expect_problem(403, "not-allowed");
    server.call("PUT", &hidden).token(&eve).once().send().await.expect_problem(403, "forbidden");
    server.call("PUT", &hidden).token(&at).once().send().await.expect(204);
    let read = server.get("/v1/articles/by-slug/first").send().await.expect(200).json();
    assert_eq!((&read["commentCount"], &read["latestComments"][0]["authorName"]), (&json!(1), &json!("bo")));
    let moderator = server.token("mod", &[Role::Moderator]).await;
    server.call("PUT", &hidden).token(&moderator).once().send().await.expect(204);
    let stranger = server.token("not-a-user", &[Role::User]).await;
    say(&stranger, "three").await.expect_problem(403, "forbidden");
}

#[tokio::test]
async fn readings_and_logs_are_noted_and_summed_up_by_window() {
    let server = scene::both().await;
    let collector = server.token("agent", &[Role::Collector]).await;
    let operator = server.token("ops", &[Role::Operator]).await;
    let put = |id: &str, host: &str| {
        let call = server.call("PUT", &format!("/v1/servers/{id}")).token_of(&collector).once();
        call.json(&json!({ "host": host, "region": "north" })).send()
    };
    for id in ["a", "b", "c"] {
        put(id, &format!("host-{id}")).await.expect(200);
    }
    put("d", "host-a").await.expect_problem(409, "already-exists");
    let listed = server.get("/v1/servers?region=north&limit=2").token(&operator).send().await.expect(200);
    assert_eq!(listed.json()["items"][1]["id"], "b");
    let next = listed.header("link").split(['<', '>']).nth(1).unwrap().to_owned();
    assert_eq!(server.get(&next).token(&operator).send().await.expect(200).json()["items"][0]["id"], "c");
    assert_eq!(server.get("/v1/servers/by-host/host-b").token(&operator).send().await.expect(200).json()["id"], "b");
    let at = |minute: i64| json!(format!("2026-03-01T{:02}:{:02}:00Z", minute / 60, minute % 60));
    let readings: Vec<_> = (0..90)
        .map(|minute| json!({ "server": "a", "at": at(minute), "cpu": 0.5, "memory": 0.25, "diskFree": 1000 - minute }))
        .collect();
    let note = |path: &str, body: Value| server.post(path).token_of(&collector).once().json(&body).send();
    note("/v1/readings", json!({ "readings": readings })).await.expect(204);
    let stray = json!({ "readings": [{ "server": "z", "at": at(0), "cpu": 0.5, "memory": 0.5, "diskFree": 1 }] });
    note("/v1/readings", stray).await.expect_problem(422, "unknown-reference");
    let day = "from=2026-03-01T00:00:00Z&to=2026-03-02T00:00:00Z";
    let hours = server.get(&format!("/v1/servers/a/windows?{day}&unit=hour")).token(&operator).send().await.expect(200);
    let hours = hours.json()["items"].clone();
    assert_eq!((&hours[0]["readings"], &hours[0]["leastDiskFree"]), (&json!(60), &json!(941)));
    assert_eq!((&hours[1]["at"], &hours[1]["readings"]), (&json!("2026-03-01T01:00:00Z"), &json!(30)));
    let long = "from=2020-01-01T00:00:00Z&to=2026-03-02T00:00:00Z&unit=minute";
    let refused = server.get(&format!("/v1/servers/a/windows?{long}")).token(&operator).send().await;
    refused.expect_problem(400, "invalid-query");
    let unknown = server.get(&format!("/v1/servers/z/windows?{day}&unit=hour")).token(&operator).send().await;
    unknown.expect_problem(404, "not-found");
    let line = |minute: i64| {
        let level = if minute % 3 == 0 { "error" } else { "info" };
        json!({ "server": "a", "at": at(minute), "level": level, "message": format!("line {minute}") })
    };
    note("/v1/log-lines", json!({ "lines": (0..30).map(line).collect::<Vec<_>>() })).await.expect(204);
    let (mut found, mut path) = (Vec::new(), format!("/v1/servers/a/log?{day}&limit=12"));
    loop {
        let page = server.get(&path).token(&operator).send().await.expect(200);
        found.extend(page.json()["items"].as_array().unwrap().iter().map(|line| line["message"].clone()));
        match page.header("link").split(['<', '>']).nth(1) {
            Some(next) => path = next.to_owned(),
            None => break,
        }
    }
    assert_eq!(found, (0..30).rev().map(|minute| json!(format!("line {minute}"))).collect::<Vec<_>>());
    let counts = server.get(&format!("/v1/servers/a/log/windows?{day}&unit=day")).token(&operator).send().await;
    let counts = counts.expect(200).json()["items"].clone();
    assert_eq!(counts[0], json!({ "at": "2026-03-01T00:00:00Z", "level": "error", "lines": 10 }));
    // Operators look, collectors note.
    let body = json!({ "readings": [] });
    let note = server.post("/v1/readings").token(&operator).once().json(&body).send().await;
    note.expect_problem(403, "forbidden");
}

#[tokio::test]
async fn operations_are_noted_by_operators_and_read_by_their_users() {
    let server = scene::both().await;
    let ((ada, at), (_, bt)) = (user(&server, "ada").await, user(&server, "bob").await);
    let operator = server.token("ops", &[Role::Operator]).await;
    let path = format!("/v1/users/{ada}/operations");
    let note = |token: &str, key: &str, action: &str| {
        let call = server.post(&path).token_of(token).key(key);
        call.json(&json!({ "action": action, "detail": "from a phone" })).send()
    };
    for number in 0..12 {
        let key = number.to_string();
        let first = note(&operator, &key, &format!("login-{number}")).await.expect(201).json();
        assert_eq!(note(&operator, &key, &format!("login-{number}")).await.expect(201).json(), first);
    }
    note(&at, "mine", "login").await.expect_problem(403, "forbidden");
    let nobody = server.post("/v1/users/0123456789abcdef01234567/operations").token(&operator).once();
    nobody.json(&json!({ "action": "login" })).send().await.expect_problem(404, "not-found");
    let latest = server.get("/v1/operations?limit=10").token(&at).send().await.expect(200).json();
    assert_eq!(latest["items"].as_array().unwrap().len(), 10);
    assert_eq!(latest["items"][0]["action"], "login-11");
    assert_eq!(server.get("/v1/operations").token(&bt).send().await.expect(200).json()["items"], json!([]));
    server.get(&path).token(&bt).send().await.expect_problem(403, "forbidden");
    let moderator = server.token("mod", &[Role::Moderator]).await;
    let all = server.get(&format!("{path}?limit=100")).token(&moderator).send().await.expect(200).json();
    assert_eq!(all["items"].as_array().unwrap().len(), 12);
}
