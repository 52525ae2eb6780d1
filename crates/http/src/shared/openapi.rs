//! The API's description: what the routes say of themselves, completed by what holds for all, and the policies in it.
//!
//! A route's `#[utoipa::path]` says:
//! - `security(("bearer" = ["buyer"]))`: the roles that may call it; `security(())`: everybody; `security(("webhook" = []))`;
//! - `extensions(("x-problems" = json!(["out-of-stock"])))`: the problems of its own;
//! - `("x-if-match" = json!(true))`: that it is a change to a version; `("x-stream" = json!(true))`: that its answer has no end;
//!   `("x-body-limit" = json!(8388608))`: the largest body, if it is not the general one;
//!   `("x-once-by-domain" = json!(true))`: that the domain alone knows what was asked for under a key, without a record.
//!
//! Everything else follows: the header of unsafe calls, what authentication, bodies and parameters may answer.

use crate::config::Limits;
use crate::shared::auth::Role;
use crate::shared::guard::{Access, Policies, Policy};
use crate::shared::idempotency::MAX_KEY_BYTES;
use crate::shared::problem::{KINDS, Kind, MEDIA_TYPE};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use utoipa::openapi::OpenApi;

/// The description, and the policies that it holds.
pub(crate) struct Described {
    pub(crate) document: Value,
    pub(crate) policies: Policies,
}

const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];

/// Completes the description and reads the policies from it.
pub(crate) fn describe(openapi: &OpenApi, limits: &Limits) -> Described {
    let mut document = serde_json::to_value(openapi).expect("a description is plain data");
    let mut policies = Policies::new();
    let paths = document["paths"].as_object_mut().expect("a description has paths");
    for (path, item) in paths {
        for method in METHODS {
            if let Some(operation) = item.get_mut(method) {
                let policy = complete(path, method, operation, limits);
                policies.insert((method.to_uppercase(), path.clone()), policy);
            }
        }
    }
    if document["components"].is_null() {
        document["components"] = json!({});
    }
    document["components"]["schemas"]["Problem"] = problem_schema();
    document["components"]["securitySchemes"] = json!({
        "bearer": { "type": "http", "scheme": "bearer", "description": "A token; its roles decide what it may call." },
        "webhook": {
            "type": "apiKey", "in": "header", "name": "webhook-signature",
            "description": "Standard Webhooks: HMAC-SHA256 over webhook-id, webhook-timestamp and body.",
        },
    });
    Described { document, policies }
}

/// Completes an operation and reads its policy.
fn complete(path: &str, method: &str, operation: &mut Value, limits: &Limits) -> Policy {
    let access = access(path, method, operation);
    let slugs = problems(path, method, operation, &access);
    let operation = operation.as_object_mut().expect("an operation is an object");
    parameters(operation, method, &access, limits);
    let with_etag = operation["responses"].pointer("/200/headers/ETag").is_some();
    let responses = operation["responses"].as_object_mut().expect("an operation has responses");
    let mut by_status: BTreeMap<u16, Vec<&'static Kind>> = BTreeMap::new();
    for slug in &slugs {
        let kind = Kind::of(slug).expect("each slug is in the table");
        by_status.entry(kind.status).or_default().push(kind);
    }
    for (status, kinds) in by_status {
        responses.insert(status.to_string(), response(&kinds));
    }
    if with_etag && method == "get" {
        responses.insert("304".to_owned(), json!({ "description": "The reader has it already (If-None-Match)" }));
    }
    let statuses = responses.keys().filter_map(|status| status.parse().ok()).collect();
    let flag = |name: &str| operation.get(name).and_then(Value::as_bool).unwrap_or(false);
    let body_size_bytes =
        operation.get("x-body-limit").and_then(Value::as_u64).and_then(|limit| usize::try_from(limit).ok());
    Policy {
        access,
        stream: flag("x-stream"),
        once_by_domain: flag("x-once-by-domain"),
        body_size_bytes,
        statuses,
        problems: slugs,
    }
}

/// Who may call it.
fn access(path: &str, method: &str, operation: &Value) -> Access {
    let security = operation["security"].as_array();
    let security = security.unwrap_or_else(|| panic!("{method} {path} does not say who may call it"));
    let requirement = security.first().and_then(Value::as_object);
    let requirement = requirement.unwrap_or_else(|| panic!("{method} {path} does not say who may call it"));
    match requirement.iter().next() {
        None => Access::Public,
        Some((scheme, _)) if scheme == "webhook" => Access::Webhook,
        Some((_, roles)) => {
            let names = roles.as_array().into_iter().flatten().filter_map(Value::as_str);
            let roles: Vec<Role> = names.map(|name| Role::of(name).expect("each role is in the table")).collect();
            assert!(!roles.is_empty(), "{method} {path} names no role");
            Access::Roles(roles)
        }
    }
}

/// The problems that it may answer: its own, and those that follow from what it is.
fn problems(path: &str, method: &str, operation: &Value, access: &Access) -> BTreeSet<&'static str> {
    let mut slugs: BTreeSet<&'static str> = BTreeSet::new();
    for slug in operation["x-problems"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        let kind = Kind::of(slug).unwrap_or_else(|| panic!("{method} {path} names the unknown problem {slug}"));
        slugs.insert(kind.slug);
    }
    slugs.extend(["internal", "overloaded", "timeout", "unavailable"]);
    match access {
        Access::Public => {}
        Access::Roles(_) => slugs.extend(["unauthenticated", "forbidden", "rate-limited"]),
        Access::Webhook => slugs.extend(["signature-invalid", "rate-limited"]),
    }
    if method != "get" {
        slugs.extend(["request-timeout", "malformed-body", "body-too-large"]);
        if !matches!(access, Access::Webhook) {
            slugs.extend([
                "idempotency-in-flight",
                "idempotency-mismatch",
                "idempotency-key-required",
                "invalid-header",
            ]);
        }
    }
    if operation.get("requestBody").is_some() {
        slugs.insert("unsupported-media-type");
        slugs.insert("invalid-body");
    }
    let parameters = operation["parameters"].as_array().into_iter().flatten();
    for parameter in parameters {
        match parameter["in"].as_str() {
            Some("path") => slugs.insert("not-found"),
            Some("query") => slugs.insert("invalid-query"),
            _ => continue,
        };
        if parameter["name"] == "cursor" {
            slugs.insert("invalid-cursor");
        }
    }
    if operation["x-if-match"] == true {
        slugs.extend(["precondition-required", "precondition-failed", "invalid-header"]);
    }
    slugs
}

/// Adds the headers that it takes.
fn parameters(operation: &mut Map<String, Value>, method: &str, access: &Access, limits: &Limits) {
    let if_match = operation.get("x-if-match") == Some(&Value::Bool(true));
    let parameters = operation.entry("parameters").or_insert_with(|| json!([]));
    let parameters = parameters.as_array_mut().expect("parameters are an array");
    if method != "get" && matches!(access, Access::Roles(_)) {
        let hours = limits.idempotency_kept.as_secs() / 3600;
        parameters.push(json!({
            "name": "Idempotency-Key", "in": "header", "required": true,
            "description": format!("A new random value for each call; the same one when it is repeated. The answer is kept for {hours} hours."),
            "schema": { "type": "string", "minLength": 1, "maxLength": MAX_KEY_BYTES, "pattern": "^[A-Za-z0-9_.:-]+$" },
        }));
    }
    if matches!(access, Access::Webhook) {
        for name in ["webhook-id", "webhook-timestamp", "webhook-signature"] {
            parameters.push(json!({ "name": name, "in": "header", "required": true, "schema": { "type": "string" } }));
        }
    }
    if if_match {
        parameters.push(json!({
            "name": "If-Match", "in": "header", "required": true,
            "description": "The ETag of the version that the change is a change to, or *.",
            "schema": { "type": "string", "pattern": "^(\\*|\"[0-9]+\")$" },
        }));
    }
    if parameters.is_empty() {
        operation.remove("parameters");
    }
}

/// The response of a status: one of some problems.
fn response(kinds: &[&'static Kind]) -> Value {
    let titles: Vec<&str> = kinds.iter().map(|kind| kind.title).collect();
    let example = |kind: &&'static Kind| {
        let value = json!({ "type": kind.uri(), "title": kind.title, "status": kind.status });
        (kind.slug.to_owned(), json!({ "value": value }))
    };
    let examples: Map<String, Value> = kinds.iter().map(example).collect();
    json!({
        "description": titles.join("; "),
        "content": { MEDIA_TYPE: { "schema": { "$ref": "#/components/schemas/Problem" }, "examples": examples } },
    })
}

fn problem_schema() -> Value {
    let uris: Vec<String> = KINDS.iter().map(|kind| kind.uri()).collect();
    json!({
        "type": "object",
        "description": "A refusal (RFC 9457). Some types have members of their own.",
        "required": ["type", "title", "status", "detail"],
        "properties": {
            "type": { "type": "string", "format": "uri", "enum": uris },
            "title": { "type": "string" },
            "status": { "type": "integer", "minimum": 400, "maximum": 599 },
            "detail": { "type": "string" },
        },
    })
}
