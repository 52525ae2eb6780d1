//! Around every call: its id, its metrics, what browsers must not do with its answer, and what happens when it panics.

use crate::shared::core::Core;
use crate::shared::etag::has_already;
use crate::shared::problem::{INTERNAL, Problem};
use crate::shared::token::random_hex;
use axum::body::Body;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Instant;
use tracing::Instrument;

/// The header with the request's id.
pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const MAX_REQUEST_ID_BYTES: usize = 128;

/// What every answer says to browsers: it is data, not a page.
const SECURITY_HEADERS: [(HeaderName, HeaderValue); 4] = [
    (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
    (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'")),
];

/// Counts up while it lives.
pub(crate) struct Gauge<'a>(&'a AtomicI64);

impl<'a> Gauge<'a> {
    pub(crate) fn new(value: &'a AtomicI64) -> Gauge<'a> {
        value.fetch_add(1, Ordering::Relaxed);
        Gauge(value)
    }
}

impl Drop for Gauge<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Runs a call; a panic becomes a problem.
pub(crate) async fn caught(core: &Core, call: impl Future<Output = Response>) -> Response {
    match AssertUnwindSafe(call).catch_unwind().await {
        Ok(response) => response,
        Err(panic) => {
            let said = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
            let said = said.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
            tracing::error!(panic = said, "a handler panicked");
            core.metrics.panics.fetch_add(1, Ordering::Relaxed);
            Problem::new(&INTERNAL, "the server failed while it was at work on the call").into_response()
        }
    }
}

/// The outermost layer of the routes.
pub(crate) async fn observe(State(core): State<Arc<Core>>, request: Request, next: Next) -> Response {
    let begun = Instant::now();
    let _at_work = Gauge::new(&core.metrics.in_flight);
    let id = request_id(request.headers());
    let method = known(request.method());
    let route = request.extensions().get::<MatchedPath>().map_or("unmatched", MatchedPath::as_str).to_owned();
    let reader = (method == "GET" || method == "HEAD").then(|| request.headers().clone());
    let span = tracing::info_span!("call", id, method, route);
    let mut response = caught(&core, next.run(request)).instrument(span.clone()).await;
    if let Some(headers) = reader
        && response.status() == StatusCode::OK
        && response.headers().get(header::ETAG).is_some_and(|tag| has_already(&headers, tag))
    {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        *response.body_mut() = Body::empty();
        response.headers_mut().remove(header::CONTENT_TYPE);
        response.headers_mut().remove(header::CONTENT_LENGTH);
    }
    finish(response.headers_mut(), &id);
    let (status, took) = (response.status().as_u16(), begun.elapsed());
    core.metrics.answered(method, &route, status, took);
    span.in_scope(|| tracing::debug!(status, took_us = took.as_micros() as u64, "answered"));
    response
}

fn finish(headers: &mut HeaderMap, id: &str) {
    for (name, value) in SECURITY_HEADERS {
        headers.entry(name).or_insert(value);
    }
    let cached = if headers.contains_key(header::ETAG) { "private, no-cache" } else { "no-store" };
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static(cached));
    headers.append(header::VARY, HeaderValue::from_static("authorization"));
    if let Ok(id) = HeaderValue::from_str(id) {
        headers.insert(REQUEST_ID, id);
    }
}

/// The caller's id for the request, if it is one to be logged, or a new one.
fn request_id(headers: &HeaderMap) -> String {
    let harmless = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let given = headers.get(REQUEST_ID).and_then(|id| id.to_str().ok());
    let given = given.filter(|id| !id.is_empty() && id.len() <= MAX_REQUEST_ID_BYTES && id.bytes().all(harmless));
    given.map_or_else(random_hex::<16>, str::to_owned)
}

/// A method's name, if it is one that we know: metrics must not grow with what clients invent.
fn known(method: &Method) -> &'static str {
    const KNOWN: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
    KNOWN.into_iter().find(|known| *known == method.as_str()).unwrap_or("OTHER")
}
