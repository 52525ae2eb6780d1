//! Entity tags: a resource's version, what a change says it is a change to, and what a reader has already.

use crate::shared::problem::{INVALID_HEADER, PRECONDITION_FAILED, PRECONDITION_REQUIRED, Problem, Result};
use axum::Json;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

/// The tag of a version.
pub(crate) fn tag(version: i64) -> HeaderValue {
    HeaderValue::from_str(&format!("\"{version}\"")).expect("digits are a header value")
}

/// A resource with its version.
pub(crate) struct Tagged<T> {
    pub(crate) status: StatusCode,
    pub(crate) version: i64,
    pub(crate) body: T,
}

impl<T> Tagged<T> {
    pub(crate) fn ok(version: i64, body: T) -> Tagged<T> {
        Tagged { status: StatusCode::OK, version, body }
    }
}

impl<T: Serialize> IntoResponse for Tagged<T> {
    fn into_response(self) -> Response {
        (self.status, [(header::ETAG, tag(self.version))], Json(self.body)).into_response()
    }
}

/// `If-Match`: what a change is a change to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum IfMatch {
    /// Whatever is there.
    Any,
    /// One of these versions.
    Versions(Vec<i64>),
}

impl IfMatch {
    fn parse(text: &str) -> Result<IfMatch> {
        if text.trim() == "*" {
            return Ok(IfMatch::Any);
        }
        let mut versions = Vec::new();
        for tag in text.split(',').map(str::trim) {
            let quoted = tag.strip_prefix("W/").unwrap_or(tag);
            let opaque = quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
            let Some(opaque) = opaque else {
                return Err(Problem::new(
                    &INVALID_HEADER,
                    "If-Match must hold entity tags in double quotes, or *; send the ETag that you were given",
                ));
            };
            // A weak tag never matches (RFC 9110, 13.1.1), nor does one that was never given.
            if quoted.len() == tag.len()
                && let Ok(version) = opaque.parse()
            {
                versions.push(version);
            }
        }
        Ok(IfMatch::Versions(versions))
    }

    /// The version that a change is a change to, for the domain to compare again; `None` for whatever is there.
    pub(crate) fn expected(&self, current: i64) -> Result<Option<i64>> {
        self.check(current).map(|version| (*self != IfMatch::Any).then_some(version))
    }

    /// Refuses a change to another version than the one that is there; gives the one that is.
    fn check(&self, current: i64) -> Result<i64> {
        match self {
            IfMatch::Any => Ok(current),
            IfMatch::Versions(versions) if versions.contains(&current) => Ok(current),
            IfMatch::Versions(_) => {
                let why = "the resource has changed since; read it again and decide anew";
                Err(Problem::new(&PRECONDITION_FAILED, why).header(header::ETAG, tag(current)))
            }
        }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for IfMatch {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<IfMatch> {
        match joined(&parts.headers, &header::IF_MATCH) {
            Some(text) => IfMatch::parse(&text),
            None => Err(Problem::new(
                &PRECONDITION_REQUIRED,
                "send If-Match with the ETag of the version that you mean to change",
            )),
        }
    }
}

fn joined(headers: &HeaderMap, name: &header::HeaderName) -> Option<String> {
    let values: Vec<&str> = headers.get_all(name).iter().filter_map(|value| value.to_str().ok()).collect();
    if values.is_empty() { None } else { Some(values.join(",")) }
}

/// Whether the reader has this tag already (`If-None-Match`, weak comparison).
pub(crate) fn has_already(headers: &HeaderMap, tag: &HeaderValue) -> bool {
    let (Some(known), Ok(tag)) = (joined(headers, &header::IF_NONE_MATCH), tag.to_str()) else { return false };
    let bare = tag.trim_start_matches("W/");
    known.split(',').map(str::trim).any(|known| known == "*" || known.trim_start_matches("W/") == bare)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strong_tags_match_and_weak_ones_never_do() {
        let table = [
            ("\"3\"", true),
            ("\"1\", \"3\"", true),
            ("*", true),
            ("\"4\"", false),
            ("W/\"3\"", false),
            ("\"abc\"", false),
        ];
        for (text, matches) in table {
            assert_eq!(IfMatch::parse(text).unwrap().check(3).is_ok(), matches, "{text}");
        }
        assert_eq!(IfMatch::parse("3").unwrap_err().kind, &INVALID_HEADER);
    }

    #[test]
    fn a_reader_that_has_it_is_recognised() {
        let mut headers = HeaderMap::new();
        assert!(!has_already(&headers, &tag(3)));
        headers.insert(header::IF_NONE_MATCH, HeaderValue::from_static("\"2\", W/\"3\""));
        assert!(has_already(&headers, &tag(3)));
        assert!(!has_already(&headers, &tag(4)));
    }
}
