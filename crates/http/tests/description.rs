//! The description at `/openapi.json`: complete, and what it says of permissions is what happens.

#![allow(clippy::unwrap_used, reason = "a test may end at what it did not expect")]

mod client;
mod scene;

use http::{KINDS, Role};
use serde_json::Value;
use std::collections::BTreeSet;

const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];

fn operations(description: &Value) -> Vec<(String, &'static str, &Value)> {
    let mut found = Vec::new();
    for (path, item) in description["paths"].as_object().unwrap() {
        for method in METHODS {
            if let Some(operation) = item.get(method) {
                found.push((path.clone(), method, operation));
            }
        }
    }
    found
}

/// The path with something in each place of a parameter.
fn filled(path: &str) -> String {
    let segments = path.split('/').map(|segment| if segment.starts_with('{') { "x" } else { segment });
    segments.collect::<Vec<_>>().join("/")
}

fn roles(operation: &Value) -> Option<BTreeSet<String>> {
    let roles = operation["security"][0]["bearer"].as_array()?;
    Some(roles.iter().map(|role| role.as_str().unwrap().to_owned()).collect())
}

#[tokio::test]
async fn every_route_is_described_with_its_errors() {
    let server = scene::both().await;
    let description = server.get("/openapi.json").send().await.expect(200).json();
    assert!(description["openapi"].as_str().unwrap().starts_with("3.1"));
    let mut ids = BTreeSet::new();
    for (path, method, operation) in operations(&description) {
        let name = format!("{method} {path}");
        assert!(ids.insert(operation["operationId"].as_str().unwrap().to_owned()), "{name}: its id is taken");
        assert!(operation["summary"].as_str().is_some_and(|text| !text.is_empty()), "{name}: no summary");
        assert!(operation["tags"].as_array().is_some_and(|tags| !tags.is_empty()), "{name}: no tag");
        let responses = operation["responses"].as_object().unwrap();
        assert!(responses.keys().any(|status| status.starts_with('2')), "{name}: no success");
        let mut expected = vec!["500", "503"];
        if roles(operation).is_some() {
            expected.extend(["401", "403", "429"]);
            if method != "get" {
                expected.extend(["400", "409", "413", "422"]);
                let headers: Vec<_> = operation["parameters"].as_array().unwrap().iter().map(|p| &p["name"]).collect();
                assert!(headers.iter().any(|header| *header == "Idempotency-Key"), "{name}: no Idempotency-Key");
            }
        }
        if path.contains('{') {
            expected.push("404");
        }
        if operation.get("requestBody").is_some() {
            expected.push("415");
        }
        for status in expected {
            assert!(responses.contains_key(status), "{name}: {status} is not described");
        }
        for (status, response) in responses.iter().filter(|(status, _)| status.as_str() >= "400") {
            assert!(response["content"]["application/problem+json"].is_object(), "{name}: {status} is no problem");
        }
    }
}

fn references(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) => {
            found.extend(members.get("$ref").and_then(Value::as_str).map(str::to_owned));
            members.values().for_each(|member| references(member, found));
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        _ => {}
    }
}

#[tokio::test]
async fn every_reference_leads_somewhere() {
    let server = scene::both().await;
    let description = server.get("/openapi.json").send().await.expect(200).json();
    let mut found = BTreeSet::new();
    references(&description, &mut found);
    assert!(!found.is_empty());
    for reference in found {
        let target = reference.strip_prefix('#').and_then(|pointer| description.pointer(pointer));
        assert!(target.is_some(), "{reference} leads nowhere");
    }
}

#[tokio::test]
async fn roles_are_what_the_description_says() {
    let server = scene::both().await;
    let description = server.get("/openapi.json").send().await.json();
    let mut tokens = Vec::new();
    for role in Role::ALL {
        tokens.push((role.name(), server.token("0123456789abcdef01234567", &[role]).await));
    }
    for (path, method, operation) in operations(&description) {
        let Some(allowed) = roles(operation) else { continue };
        let (name, path) = (format!("{method} {path}"), filled(&path));
        let method = method.to_uppercase();
        server.call(&method, &path).send().await.expect_problem(401, "unauthenticated");
        for (role, token) in &tokens {
            if operation["x-stream"] == true && allowed.contains(*role) {
                continue;
            }
            let status = server.call(&method, &path).token(token).send().await.status;
            assert_eq!(status == 403, !allowed.contains(*role), "{name} as {role} gave {status}");
            assert_ne!(status, 401, "{name} as {role}");
        }
    }
}

#[test]
fn problems_are_documented() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/problems.md");
    let mut text = String::from(
        "# Problems\n\nEvery refusal of the HTTP API is a problem of RFC 9457. Its `type` is the address of a section of this \
         file and never changes.\n",
    );
    for kind in KINDS {
        text.push_str(&format!("\n## {}\n\n{}. Status {}.\n", kind.slug, kind.title, kind.status));
    }
    if std::env::var_os("SHEAF_UPDATE_DOCS").is_some() {
        std::fs::write(path, &text).unwrap();
    }
    let written = std::fs::read_to_string(path).unwrap();
    assert_eq!(written, text, "docs/problems.md is not the table's: run this test with SHEAF_UPDATE_DOCS=1");
}
