//! Unsafe calls: each has an `Idempotency-Key`, and one key is one call, whatever the client repeats.
//!
//! The key belongs to the caller's subject. A call's fingerprint is its method, path, query, `If-Match` and body. The call
//! runs in a task of its own, so that it comes to its end also when the client goes away in the middle.

use crate::shared::core::Core;
use crate::shared::observe::caught;
use crate::shared::problem::{
    BODY_TOO_LARGE, IDEMPOTENCY_IN_FLIGHT, IDEMPOTENCY_KEY_REQUIRED, IDEMPOTENCY_MISMATCH, INTERNAL, INVALID_HEADER,
    MALFORMED_BODY, Problem, REQUEST_TIMEOUT, Result, TIMEOUT,
};
use crate::shared::record::{Claim, Claimed, Mark, Recorded, Write};
use axum::body::Body;
use axum::extract::{FromRequestParts, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header, response};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::FutureExt;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use sha2::{Digest, Sha256};
use std::sync::Arc;
use tokio::sync::OwnedSemaphorePermit;

/// The header with the key.
pub(crate) const KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// The header that says that an answer is given again.
const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");
/// The longest key.
pub(crate) const MAX_KEY_BYTES: usize = 255;
/// The largest answer that is expected of an unsafe call.
const MAX_ANSWER_BYTES: usize = 4 << 20;
/// The headers of an answer that are kept with it.
const KEPT_HEADERS: [HeaderName; 4] = [header::CONTENT_TYPE, header::LOCATION, header::ETAG, header::LINK];

/// The caller's key as the domain sees it: the same for each repetition of a call, different for all others.
#[derive(Clone, Debug)]
pub(crate) struct OnceKey(pub(crate) String);

impl<S: Send + Sync> FromRequestParts<S> for OnceKey {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<OnceKey> {
        parts.extensions.get::<OnceKey>().cloned().ok_or_else(key_required)
    }
}

/// An unsafe call whose answer the domain keeps in the transaction of the call's effect.
#[derive(Clone)]
pub(crate) struct Once {
    /// See [`OnceKey`].
    pub(crate) key: String,
    mark: Mark,
    core: Arc<Core>,
}

impl<S: Send + Sync> FromRequestParts<S> for Once {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Once> {
        parts.extensions.get::<Once>().cloned().ok_or_else(key_required)
    }
}

impl Once {
    /// The database and the collection of the records.
    pub(crate) fn place(&self) -> (&str, &str) {
        self.core.records.place()
    }

    /// How an answer is to be kept; not at all if it is not the call's last word. The handler then says that it was, by
    /// [`Kept`] in the answer's extensions.
    pub(crate) fn kept(&self, answer: Response) -> Option<Write> {
        let (parts, body) = answer.into_parts();
        // What handlers answer to unsafe calls is in memory, so that it is there at once.
        let body = body.collect().now_or_never()?.ok()?.to_bytes();
        is_final(parts.status).then(|| self.core.records.kept(&self.mark, &recorded(&parts, &body)))
    }
}

/// In an answer's extensions: its record is written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kept;

/// What is kept of an answer instead of its body, where the body holds a secret.
#[derive(Clone, Debug)]
pub(crate) struct KeptBody(pub(crate) Bytes);

fn key_required() -> Problem {
    Problem::new(
        &IDEMPOTENCY_KEY_REQUIRED,
        "send Idempotency-Key with a new random value for each call, and the same one when you repeat it",
    )
}

/// The key of a request, with or without the double quotes of a structured field.
pub(crate) fn key_of(headers: &HeaderMap) -> Result<String> {
    let mut values = headers.get_all(&KEY).iter();
    let Some(value) = values.next() else { return Err(key_required()) };
    let invalid = || {
        Problem::new(
            &INVALID_HEADER,
            format!("Idempotency-Key must be one value of 1 to {MAX_KEY_BYTES} visible ASCII characters"),
        )
    };
    let text = value.to_str().map_err(|_| invalid())?.trim();
    let bare = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text);
    let visible = bare.bytes().all(|byte| byte.is_ascii_graphic());
    if values.next().is_some() || bare.is_empty() || bare.len() > MAX_KEY_BYTES || !visible {
        return Err(invalid());
    }
    Ok(bare.to_owned())
}

/// Runs an unsafe call once for its key.
pub(crate) async fn once(
    core: Arc<Core>,
    scope: &str,
    key: &str,
    permit: OwnedSemaphorePermit,
    request: Request,
    body_limit: usize,
    next: Next,
) -> Result<Response> {
    let (mut parts, body) = request.into_parts();
    let body = read(&core, &parts, body, body_limit).await?;
    let id = key_id(scope, key);
    let fingerprint = fingerprint(&parts, &body);
    let claimed = match core.records.claim(&id, &fingerprint).await? {
        Claim::New(claimed) => claimed,
        Claim::Replay(kept) => {
            core.metrics.replays.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            return Ok(replay(kept));
        }
        Claim::InFlight => {
            let detail = "a call with this key is still at work; repeat it later to get its answer";
            return Err(Problem::new(&IDEMPOTENCY_IN_FLIGHT, detail).retry_after(1));
        }
        Claim::Mismatch => {
            let detail = "this key was used for a call with another method, path, precondition or body; use a new key";
            return Err(Problem::new(&IDEMPOTENCY_MISMATCH, detail));
        }
    };
    parts.extensions.insert(Once { key: id.clone(), mark: claimed.mark.clone(), core: core.clone() });
    parts.extensions.insert(OnceKey(id));
    let request = Request::from_parts(parts, Body::from(body));
    let worker = core.clone();
    to_its_end(&core, permit, async move { run(&worker, claimed, request, next).await }).await
}

/// Runs an unsafe call whose domain does it once for its key by itself.
pub(crate) async fn by_domain(
    core: Arc<Core>,
    scope: &str,
    key: &str,
    permit: OwnedSemaphorePermit,
    request: Request,
    body_limit: usize,
    next: Next,
) -> Result<Response> {
    let (mut parts, body) = request.into_parts();
    let body = read(&core, &parts, body, body_limit).await?;
    parts.extensions.insert(OnceKey(key_id(scope, key)));
    let request = Request::from_parts(parts, Body::from(body));
    let worker = core.clone();
    to_its_end(&core, permit, async move { caught(&worker, next.run(request)).await }).await
}

/// A key as the records and the domain see it.
fn key_id(scope: &str, key: &str) -> String {
    hex::encode(Sha256::digest(format!("{scope}\0{key}")))
}

/// Has a call run to its end, also when its caller goes away or does not wait any longer.
async fn to_its_end(
    core: &Core,
    permit: OwnedSemaphorePermit,
    call: impl Future<Output = Response> + Send + 'static,
) -> Result<Response> {
    let task = core.work.spawn(async move {
        let response = call.await;
        drop(permit);
        response
    });
    match tokio::time::timeout(core.limits.call_timeout, task).await {
        Ok(Ok(response)) => Ok(response),
        Ok(Err(_)) => Err(Problem::new(&INTERNAL, "the server failed while it was at work on the call")),
        Err(_) => {
            let detail = "the call is still at work; repeat it with the same Idempotency-Key to get its answer";
            Err(Problem::new(&TIMEOUT, detail).retry_after(1))
        }
    }
}

/// Reads a request's body.
pub(crate) async fn read(core: &Core, parts: &Parts, body: Body, limit: usize) -> Result<Bytes> {
    let too_large = || Problem::new(&BODY_TOO_LARGE, format!("the body may have {limit} bytes")).with("limit", limit);
    let announced = parts.headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    if announced.is_some_and(|length: u64| length > limit as u64) {
        return Err(too_large());
    }
    let collect = Limited::new(body, limit).collect();
    match tokio::time::timeout(core.limits.body_timeout, collect).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large()),
        Ok(Err(_)) => Err(Problem::new(&MALFORMED_BODY, "the body ended before its end")),
        Err(_) => Err(Problem::new(&REQUEST_TIMEOUT, "the body did not arrive in time")),
    }
}

fn fingerprint(parts: &Parts, body: &[u8]) -> String {
    let if_match = parts.headers.get(header::IF_MATCH).map_or(&[][..], HeaderValue::as_bytes);
    let path = parts.uri.path_and_query().map_or("", |path| path.as_str());
    let mut digest = Sha256::new();
    for part in [parts.method.as_str().as_bytes(), path.as_bytes(), if_match, body] {
        digest.update((part.len() as u64).to_be_bytes());
        digest.update(part);
    }
    hex::encode(digest.finalize())
}

/// Runs the call, keeps its answer, and gives it.
async fn run(core: &Core, claimed: Claimed, request: Request, next: Next) -> Response {
    let response = caught(core, next.run(request)).await;
    let (parts, body) = response.into_parts();
    let body = match Limited::new(body, MAX_ANSWER_BYTES).collect().await {
        Ok(body) => body.to_bytes(),
        Err(error) => {
            tracing::error!(error, "an answer could not be read");
            Bytes::new()
        }
    };
    let settled = if parts.extensions.get::<Kept>().is_some() {
        drop(claimed);
        Ok(())
    } else if is_final(parts.status) {
        core.records.keep(claimed, &recorded(&parts, &body)).await
    } else {
        core.records.release(claimed).await
    };
    if let Err(error) = settled {
        tracing::error!(%error, "the answer of an unsafe call could not be kept");
    }
    Response::from_parts(parts, Body::from(body))
}

/// What is kept of an answer.
fn recorded(parts: &response::Parts, body: &Bytes) -> Recorded {
    let kept = parts.extensions.get::<KeptBody>().map_or(body, |kept| &kept.0);
    let header = |name: &HeaderName| Some((name.to_string(), parts.headers.get(name)?.to_str().ok()?.to_owned()));
    let headers = KEPT_HEADERS.iter().filter_map(header).collect();
    Recorded { status: parts.status.as_u16(), headers, body: kept.clone() }
}

/// Whether an answer is the call's last word; the others shall be tried again with the same key.
fn is_final(status: StatusCode) -> bool {
    !status.is_server_error() && status != StatusCode::TOO_MANY_REQUESTS
}

fn replay(kept: Recorded) -> Response {
    let status = StatusCode::from_u16(kept.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = (status, kept.body).into_response();
    response.headers_mut().remove(header::CONTENT_TYPE);
    for (name, value) in kept.headers {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            response.headers_mut().insert(name, value);
        }
    }
    response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_with_and_without_quotes() {
        let long = "x".repeat(MAX_KEY_BYTES + 1);
        let table =
            [("abc", Some("abc")), ("\"abc\"", Some("abc")), ("\"\"", None), ("a b", None), (long.as_str(), None)];
        for (text, expected) in table {
            let mut headers = HeaderMap::new();
            headers.insert(KEY, HeaderValue::from_str(text).unwrap());
            assert_eq!(key_of(&headers).ok().as_deref(), expected, "{text}");
        }
        assert_eq!(key_of(&HeaderMap::new()).unwrap_err().kind, &IDEMPOTENCY_KEY_REQUIRED);
    }
}
