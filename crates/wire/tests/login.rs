//! Users, logins and rights against a running server in this process, with a SCRAM-SHA-256 client of its own.

mod support;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bson::spec::BinarySubtype;
use bson::{Binary, Document, doc};
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};
use std::net::SocketAddr;
use support::*;
use tokio::net::TcpStream;
use wire::Config;

fn hmac(key: &[u8], text: &str) -> Vec<u8> {
    let mut mac = <Hmac<Sha256> as KeyInit>::new_from_slice(key).expect("any length");
    mac.update(text.as_bytes());
    mac.finalize().into_bytes().to_vec()
}

fn payload(text: &str) -> Binary {
    Binary { subtype: BinarySubtype::Generic, bytes: text.as_bytes().to_vec() }
}

fn said(reply: &Document) -> String {
    String::from_utf8(reply.get_binary_generic("payload").expect("a payload").clone()).expect("text")
}

/// Logs in; the code of the refusal if it is refused.
async fn log_in(stream: &mut TcpStream, user: &str, password: &str) -> Result<(), i32> {
    let bare = format!("n={user},r=clientnonce");
    let start = doc! {
        "saslStart": 1, "mechanism": "SCRAM-SHA-256", "payload": payload(&format!("n,,{bare}")),
        "options": { "skipEmptyExchange": true }, "$db": "admin"
    };
    let reply = run(stream, start).await;
    if let Ok(code) = reply.get_i32("code") {
        return Err(code);
    }
    let server_first = said(&reply);
    let part =
        |name: &str| server_first.split(',').find_map(|part| part.strip_prefix(name)).expect("a part").to_owned();
    let salt = BASE64.decode(part("s=")).expect("base64");
    let mut salted = [0; 32];
    pbkdf2::pbkdf2_hmac::<Sha256>(password.as_bytes(), &salt, part("i=").parse().expect("a number"), &mut salted);
    let client_key = hmac(&salted, "Client Key");
    let without_proof = format!("c=biws,r={}", part("r="));
    let all = format!("{bare},{server_first},{without_proof}");
    let signature = hmac(&Sha256::digest(&client_key), &all);
    let proof: Vec<u8> = client_key.iter().zip(signature).map(|(key, signature)| key ^ signature).collect();
    let last = format!("{without_proof},p={}", BASE64.encode(proof));
    let next = doc! {
        "saslContinue": 1, "conversationId": reply.get_i32("conversationId").expect("an id"),
        "payload": payload(&last), "$db": "admin"
    };
    let reply = run(stream, next).await;
    if let Ok(code) = reply.get_i32("code") {
        return Err(code);
    }
    assert_eq!(reply.get_bool("done").ok(), Some(true));
    assert_eq!(said(&reply), format!("v={}", BASE64.encode(hmac(&hmac(&salted, "Server Key"), &all))));
    Ok(())
}

async fn guarded() -> (SocketAddr, TcpStream) {
    let address = start(Config { auth: true, ..config() }).await;
    let mut first = TcpStream::connect(address).await.expect("connects");
    let root = doc! { "createUser": "root", "pwd": "secret", "roles": ["root"], "$db": "admin" };
    assert_eq!(run(&mut first, root).await.get_f64("ok").ok(), Some(1.0));
    (address, first)
}

fn code(reply: &Document) -> Option<i32> {
    reply.get_i32("code").ok()
}

#[tokio::test]
async fn the_first_user_may_be_created_without_a_login_and_only_the_first() {
    let (_, mut stream) = guarded().await;
    let second = doc! { "createUser": "b", "pwd": "x", "roles": [], "$db": "admin" };
    assert_eq!(code(&run(&mut stream, second).await), Some(13));
    let status = doc! { "serverStatus": 1, "$db": "admin" };
    assert_eq!(code(&run(&mut stream, status.clone()).await), Some(13));
    assert_eq!(code(&run(&mut stream, doc! { "ping": 1, "$db": "admin" }).await), None);
    assert_eq!(log_in(&mut stream, "root", "wrong").await, Err(18));
    assert_eq!(log_in(&mut stream, "nobody", "secret").await, Err(18));
    assert_eq!(log_in(&mut stream, "root", "secret").await, Ok(()));
    assert_eq!(code(&run(&mut stream, status.clone()).await), None);
    run(&mut stream, doc! { "logout": 1, "$db": "admin" }).await;
    assert_eq!(code(&run(&mut stream, status).await), Some(13));
}

#[tokio::test]
async fn rights_follow_roles_and_their_changes_at_once() {
    let (address, mut root) = guarded().await;
    log_in(&mut root, "root", "secret").await.expect("logs in");
    let privileges = doc! { "resource": { "cluster": true }, "actions": ["serverStatus"] };
    let create = doc! { "createRole": "watcher", "privileges": [privileges], "roles": [], "$db": "admin" };
    assert_eq!(code(&run(&mut root, create).await), None);
    let user = doc! { "createUser": "ann", "pwd": "pw", "roles": ["watcher"], "$db": "admin" };
    assert_eq!(code(&run(&mut root, user.clone()).await), None);
    assert_eq!(code(&run(&mut root, user).await), Some(51003));

    let mut ann = TcpStream::connect(address).await.expect("connects");
    log_in(&mut ann, "ann", "pw").await.expect("logs in");
    let status = doc! { "serverStatus": 1, "$db": "admin" };
    assert_eq!(code(&run(&mut ann, status.clone()).await), None);
    assert_eq!(code(&run(&mut ann, doc! { "hostInfo": 1, "$db": "admin" }).await), Some(13));
    let grant = doc! { "grantRolesToUser": "ann", "roles": ["root"], "$db": "admin" };
    assert_eq!(code(&run(&mut ann, grant).await), Some(13));

    assert_eq!(code(&run(&mut root, doc! { "dropRole": "watcher", "$db": "admin" }).await), None);
    assert_eq!(code(&run(&mut ann, status).await), Some(13));
    let info = run(&mut root, doc! { "usersInfo": "ann", "$db": "admin" }).await;
    let users = info.get_array("users").expect("users");
    assert_eq!(users.len(), 1);
    assert_eq!(users[0].as_document().and_then(|user| user.get_array("roles").ok()).map(Vec::len), Some(0));
}

#[tokio::test]
async fn roles_that_do_not_exist_or_lead_back_to_themselves_are_refused() {
    let (_, mut root) = guarded().await;
    log_in(&mut root, "root", "secret").await.expect("logs in");
    let none = doc! { "createUser": "ann", "pwd": "pw", "roles": ["nonsense"], "$db": "admin" };
    assert_eq!(code(&run(&mut root, none).await), Some(31));
    for (role, inherits) in [("a", None), ("b", Some("a"))] {
        let roles: Vec<&str> = inherits.into_iter().collect();
        let create = doc! { "createRole": role, "privileges": [], "roles": roles, "$db": "admin" };
        assert_eq!(code(&run(&mut root, create).await), None);
    }
    let cycle = doc! { "grantRolesToRole": "a", "roles": ["b"], "$db": "admin" };
    assert_eq!(code(&run(&mut root, cycle).await), Some(93));
    assert_eq!(code(&run(&mut root, doc! { "dropUser": "nobody", "$db": "admin" }).await), Some(11));
}

#[tokio::test]
async fn hello_names_mechanisms_and_starts_a_login() {
    let (_, mut stream) = guarded().await;
    let start =
        doc! { "saslStart": 1, "mechanism": "SCRAM-SHA-256", "payload": payload("n,,n=root,r=x"), "db": "admin" };
    let hello =
        doc! { "hello": 1, "saslSupportedMechs": "admin.root", "speculativeAuthenticate": start, "$db": "admin" };
    let reply = run(&mut stream, hello).await;
    let mechanisms = reply.get_array("saslSupportedMechs").expect("known user");
    assert_eq!(mechanisms.len(), 2);
    let step = reply.get_document("speculativeAuthenticate").expect("started");
    assert_eq!(step.get_bool("done").ok(), Some(false));
    let unknown = doc! { "hello": 1, "saslSupportedMechs": "admin.nobody", "$db": "admin" };
    assert!(!run(&mut stream, unknown).await.contains_key("saslSupportedMechs"));
}
