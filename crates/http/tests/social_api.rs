//! The network from the outside: feeds, and what nobody else may see.

#![allow(clippy::unwrap_used, reason = "a test may end at what it did not expect")]

mod client;
mod scene;

use client::{Events, Running};
use scene::user;
use serde_json::{Value, json};

async fn post(server: &Running, token: &str, content: &str, visibility: &str) -> Value {
    let body = json!({ "content": content, "visibility": visibility });
    server.post("/v1/posts").token(token).once().json(&body).send().await.expect(201).json()
}

async fn talk(server: &Running, token: &str, with: &[&str]) -> String {
    let body = match with {
        [one] => json!({ "members": [one] }),
        several => json!({ "members": several, "title": "all of us" }),
    };
    let reply = server.post("/v1/conversations").token(token).once().json(&body).send().await.expect(201);
    reply.json()["id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_conversation_is_its_members_alone() {
    let server = scene::both().await;
    let ((_, at), (bob, bt), (_, et)) =
        (user(&server, "ada").await, user(&server, "bob").await, user(&server, "eve").await);
    let path = format!("/v1/conversations/{}", talk(&server, &at, &[&bob]).await);
    let (at, bt, et) = (at.as_str(), bt.as_str(), et.as_str());
    let say = async |token: &str, text: &str| {
        let call = server.post(&format!("{path}/messages")).token(token).once();
        call.json(&json!({ "text": text })).send().await
    };
    assert_eq!(say(at, "hello").await.expect(201).json()["number"], 1);
    assert_eq!(say(bt, "hi").await.expect(201).json()["number"], 2);
    let read = server.get(&format!("{path}/messages?limit=1")).token(bt).send().await.expect(200);
    assert_eq!(read.json()["items"][0]["text"], "hi");
    assert!(read.header("link").contains("rel=\"next\""));
    assert_eq!(server.get(&path).token(bt).send().await.expect(200).json()["unread"], 0);
    for rest in ["", "/messages"] {
        server.get(&format!("{path}{rest}")).token(et).send().await.expect_problem(404, "not-found");
    }
    say(et, "let me in").await.expect_problem(404, "not-found");
    let change = server.call("PATCH", &format!("{path}/messages/1")).token(et).once();
    change.json(&json!({ "text": "changed" })).send().await.expect_problem(404, "not-found");
    let change = server.call("PATCH", &format!("{path}/messages/1")).token(bt).once();
    change.json(&json!({ "text": "changed" })).send().await.expect_problem(403, "not-allowed");
    server.call("DELETE", &format!("{path}/messages/1")).token(at).once().send().await.expect(204);
    assert_eq!(server.get("/v1/conversations").token(et).send().await.expect(200).json()["items"], json!([]));
}

#[tokio::test]
async fn files_are_uploaded_in_parts_and_read_by_ranges_by_who_may() {
    let server = scene::both().await;
    let ((_, at), (_, bt)) = (user(&server, "ada").await, user(&server, "bob").await);
    let content: Vec<u8> = (0..600_000_u32).map(|number| (number % 251) as u8).collect();
    let begin = |readers: &str| {
        let body = json!({ "name": format!("{readers}.bin"), "contentType": "image/png", "length": content.len(), "readers": readers });
        server.post("/v1/uploads").token(&at).once().json(&body).send()
    };
    for (readers, seen) in [("public", true), ("owner", false)] {
        let upload = begin(readers).await.expect(201).json();
        let (path, file) = (
            format!("/v1/uploads/{}", upload["id"].as_str().unwrap()),
            format!("/v1/files/{}", upload["id"].as_str().unwrap()),
        );
        let send = |offset: usize, end: usize| {
            let call = server.call("PATCH", &format!("{path}?offset={offset}")).token(&at).once();
            call.header("content-type", "application/octet-stream").bytes(&content[offset..end]).send()
        };
        let received = send(0, 300_000).await.expect(200).json()["received"].as_u64().unwrap();
        assert_eq!(received, 255 * 1024);
        send(5, 300_000).await.expect_problem(412, "precondition-failed");
        server.get(&path).token(&bt).send().await.expect_problem(404, "not-found");
        server.get(&file).token(&at).send().await.expect_problem(404, "not-found");
        send(received as usize, content.len()).await.expect(200);
        server.post(&format!("{path}/finish")).token(&at).once().send().await.expect(201);
        let whole = server.get(&file).token(&at).send().await.expect(200);
        assert_eq!((whole.body.as_ref(), whole.header("content-type")), (content.as_slice(), "image/png"));
        let part = server.get(&file).token(&at).header("range", "bytes=261110-261129").send().await.expect(206);
        assert_eq!(part.body.as_ref(), &content[261_110..261_130]);
        assert_eq!(part.header("content-range"), "bytes 261110-261129/600000");
        let stale =
            server.get(&file).token(&at).header("range", "bytes=0-0").header("if-range", "\"old\"").send().await;
        assert_eq!(stale.expect(200).body.len(), content.len());
        let beyond = server.get(&file).token(&at).header("range", "bytes=600000-").send().await;
        assert_eq!(beyond.expect_problem(416, "range-not-satisfiable").header("content-range"), "bytes */600000");
        server.get(&file).token(&at).header("if-none-match", whole.header("etag")).send().await.expect(304);
        let theirs = server.get(&file).token(&bt).send().await;
        assert_eq!(theirs.status, if seen { 200 } else { 404 });
        let about = server.get(&format!("{file}/about")).token(&bt).send().await;
        assert_eq!(about.status, if seen { 200 } else { 404 });
        let delete = server.call("DELETE", &file).token(&bt).once().send().await;
        assert_eq!(delete.status, if seen { 403 } else { 404 });
    }
}

async fn put(server: &Running, token: &str, path: &str) {
    server.call("PUT", path).token(token).once().send().await.expect(204);
}

/// The contents of the first page of a feed, once it has so many.
async fn feed(server: &Running, token: &str, count: usize) -> Vec<String> {
    for _ in 0..200 {
        let page = server.get("/v1/feed").token(token).send().await.expect(200).json();
        let items = page["items"].as_array().unwrap().clone();
        if items.len() == count {
            return items.iter().map(|item| item["content"].as_str().unwrap().to_owned()).collect();
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    panic!("the feed does not come to {count} posts");
}

#[tokio::test]
async fn posts_reach_feeds_and_live_updates() {
    let server = scene::both().await;
    let ((ada, at), (bob, bt)) = (user(&server, "ada").await, user(&server, "bob").await);
    let mut updates = Events::open(server.get("/v1/updates").token(&at)).await;
    put(&server, &bt, &format!("/v1/following/{ada}")).await;
    let first = post(&server, &at, "hello", "public").await;
    assert_eq!(feed(&server, &bt, 1).await, ["hello"]);
    let update = updates.next().await.unwrap().data;
    assert_eq!(
        (&update["type"], &update["event"], &update["from"]),
        (&json!("notification"), &json!("follow"), &json!(bob))
    );
    let path = format!("/v1/posts/{}", first["id"].as_str().unwrap());
    put(&server, &bt, &format!("{path}/like")).await;
    put(&server, &bt, &format!("{path}/like")).await;
    let comment = server.post(&format!("{path}/comments")).token(&bt).once().json(&json!({ "text": "hi" }));
    comment.send().await.expect(201);
    let read = server.get(&path).token(&at).send().await.expect(200);
    assert_eq!((read.json()["likeCount"].as_i64(), read.json()["commentCount"].as_i64()), (Some(1), Some(1)));
    let edit = |etag: &str, content: &str| {
        let call = server.call("PATCH", &path).token(&at).once().header("if-match", etag);
        call.json(&json!({ "content": content })).send()
    };
    let edited = edit(read.header("etag"), "hello again").await.expect(200);
    edit(read.header("etag"), "hello late").await.expect_problem(412, "precondition-failed");
    assert_ne!(edited.header("etag"), read.header("etag"));
    let history = server.get(&format!("{path}/history")).token(&bt).send().await.expect(200).json();
    assert_eq!(history["items"][0]["content"], "hello");
    let told = server.get("/v1/notifications").token(&at).send().await.expect(200).json();
    let events: Vec<_> = told["items"].as_array().unwrap().iter().map(|told| told["event"].as_str().unwrap()).collect();
    assert!(["follow", "like", "comment"].iter().all(|event| events.contains(event)), "{events:?}");
}

#[tokio::test]
async fn nobody_sees_what_is_not_for_them() {
    let server = scene::both().await;
    let (ada, at) = user(&server, "ada").await;
    let (follower, ft) = user(&server, "follower").await;
    let (friend, rt) = user(&server, "friend").await;
    let (stranger, st) = user(&server, "stranger").await;
    let (blocked, bt) = user(&server, "blocked").await;
    put(&server, &ft, &format!("/v1/following/{ada}")).await;
    put(&server, &bt, &format!("/v1/following/{ada}")).await;
    let ask = server.post("/v1/friend-requests").token(&rt).once().json(&json!({ "to": ada }));
    ask.send().await.expect(204);
    let accept = server.post(&format!("/v1/friend-requests/{friend}/accept")).token(&at).once();
    accept.send().await.expect(204);
    put(&server, &at, &format!("/v1/blocks/{blocked}")).await;
    // One line a visibility: who sees it.
    let table = [
        ("public", [true, true, true, true, false]),
        ("followers", [true, true, false, false, false]),
        ("friends", [true, false, true, false, false]),
        ("private", [true, false, false, false, false]),
    ];
    let readers = [&at, &ft, &rt, &st, &bt];
    for (visibility, seen) in table {
        let post = post(&server, &at, visibility, visibility).await;
        let path = format!("/v1/posts/{}", post["id"].as_str().unwrap());
        for (reader, seen) in readers.iter().zip(seen) {
            for rest in ["", "/comments", "/likers", "/history"] {
                let reply = server.get(&format!("{path}{rest}")).token(reader).send().await;
                assert_eq!(reply.status, if seen { 200 } else { 404 }, "{visibility}{rest} for reader {reader}");
            }
            if !seen {
                server.call("PUT", &format!("{path}/like")).token(reader).once().send().await.expect(404);
                let comment = server.post(&format!("{path}/comments")).token(reader).once();
                comment.json(&json!({ "text": "hi" })).send().await.expect(404);
                let edit = server.call("PATCH", &path).token(reader).once().header("if-match", "*");
                edit.json(&json!({ "content": "mine" })).send().await.expect(404);
                server.call("DELETE", &path).token(reader).once().send().await.expect(404);
            } else if *reader != &at {
                let edit = server.call("PATCH", &path).token(reader).once().header("if-match", "*");
                edit.json(&json!({ "content": "mine" })).send().await.expect_problem(403, "not-allowed");
                let delete = server.call("DELETE", &path).token(reader).once();
                delete.send().await.expect_problem(403, "not-allowed");
            }
        }
    }
    for path in ["", "/followers", "/following"] {
        server.get(&format!("/v1/users/{ada}{path}")).token(&bt).send().await.expect_problem(404, "not-found");
    }
    server.get(&format!("/v1/users/{ada}/posts")).token(&bt).send().await.expect_problem(403, "blocked");
    server.get("/v1/users/by-name/ada").token(&bt).send().await.expect_problem(404, "not-found");
    assert_eq!(feed(&server, &bt, 0).await, Vec::<String>::new());
    let follow = server.call("PUT", &format!("/v1/following/{ada}")).token(&bt).once();
    follow.send().await.expect_problem(403, "blocked");
    let rename = server.call("PATCH", &format!("/v1/users/{ada}")).token(&st).once();
    rename.json(&json!({ "bio": "mine now" })).send().await.expect_problem(404, "not-found");
    for (id, token) in [(&stranger, &st), (&follower, &ft)] {
        let notifications = server.get("/v1/notifications").token(token).send().await.expect(200).json();
        assert_eq!(notifications["items"], json!([]), "{id} was told what was not theirs");
    }
    let buyer = server.token("not-a-user", &[http::Role::User]).await;
    server.get("/v1/feed").token(&buyer).send().await.expect_problem(403, "forbidden");
}

#[tokio::test]
async fn moderators_take_down_and_nobody_else() {
    let server = scene::both().await;
    let ((_, at), (_, bt)) = (user(&server, "ada").await, user(&server, "bob").await);
    let moderator = server.token("mod", &[http::Role::Moderator]).await;
    let made = post(&server, &at, "rude", "public").await;
    let path = format!("/v1/posts/{}", made["id"].as_str().unwrap());
    let hidden = format!("{path}/hidden");
    let why = json!({ "why": "rude" });
    for token in [&at, &bt] {
        server.call("PUT", &hidden).token(token).once().json(&why).send().await.expect_problem(403, "forbidden");
    }
    server.call("PUT", &hidden).token(&moderator).once().json(&why).send().await.expect(204);
    server.get(&path).token(&at).send().await.expect_problem(404, "not-found");
    let told = server.get("/v1/operations").token(&at).send().await.expect(200).json();
    assert_eq!(told["items"][0]["action"], "postHidden");
    assert_eq!(server.get("/v1/operations").token(&bt).send().await.expect(200).json()["items"], json!([]));
    server.call("DELETE", &hidden).token(&moderator).once().send().await.expect(204);
    server.get(&path).token(&bt).send().await.expect(200);
    let comment = server.post(&format!("{path}/comments")).token(&bt).once().json(&json!({ "text": "rude" }));
    let comment = comment.send().await.expect(201).json();
    let removal = format!("/v1/comments/{}/removal", comment["id"].as_str().unwrap());
    server.post(&removal).token(&at).once().json(&why).send().await.expect_problem(403, "forbidden");
    server.post(&removal).token(&moderator).once().json(&why).send().await.expect(204);
    assert_eq!(server.get(&path).token(&at).send().await.expect(200).json()["commentCount"], 0);
}

#[tokio::test]
async fn common_friends_are_shown_and_not_to_the_blocked() {
    let server = scene::both().await;
    let (ada, at) = user(&server, "ada").await;
    let (bob, bt) = user(&server, "bob").await;
    let (eve, et) = user(&server, "eve").await;
    for token in [&at, &bt] {
        put(&server, token, &format!("/v1/following/{eve}")).await;
        let ask = server.post("/v1/friend-requests").token(token).once().json(&json!({ "to": eve }));
        ask.send().await.expect(204);
    }
    for from in [&ada, &bob] {
        server.post(&format!("/v1/friend-requests/{from}/accept")).token(&et).once().send().await.expect(204);
    }
    for query in ["", "?circle=following"] {
        let found = server.get(&format!("/v1/users/{bob}/mutual{query}")).token(&at).send().await.expect(200).json();
        assert_eq!((&found["count"], &found["items"][0]["id"]), (&json!(1), &json!(eve)));
    }
    let counts = format!("/v1/mutual-counts?users={bob},{eve}");
    let found = server.get(&counts).token(&at).send().await.expect(200).json();
    assert_eq!(found, json!({ bob.as_str(): 1, eve.as_str(): 0 }));
    put(&server, &bt, &format!("/v1/blocks/{ada}")).await;
    server.get(&format!("/v1/users/{bob}/mutual")).token(&at).send().await.expect_problem(404, "not-found");
    let found = server.get(&counts).token(&at).send().await.expect(200).json();
    assert_eq!(found, json!({ eve.as_str(): 0 }));
}

#[tokio::test]
async fn a_user_leaves_alone_and_is_gone() {
    let server = scene::both().await;
    let ((ada, at), (_, bt)) = (user(&server, "ada").await, user(&server, "bob").await);
    let made = post(&server, &at, "hello", "public").await;
    put(&server, &bt, &format!("/v1/following/{ada}")).await;
    let path = format!("/v1/users/{ada}");
    server.call("DELETE", &path).token(&bt).once().send().await.expect_problem(404, "not-found");
    server.call("DELETE", &path).token(&at).once().send().await.expect(204);
    server.get(&path).token(&bt).send().await.expect_problem(404, "not-found");
    assert_eq!(feed(&server, &bt, 0).await, Vec::<String>::new());
    let read =
        async || server.get(&format!("/v1/posts/{}", made["id"].as_str().unwrap())).token(&bt).send().await.status;
    for _ in 0..200 {
        if read().await == 404 {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    assert_eq!(read().await, 404, "the posts go soon after");
    // The name is free again.
    user(&server, "ada").await;
}
