//! Problems (RFC 9457): the one shape of every refusal, with a stable type for each reason.

use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};

/// What the handlers return.
pub(crate) type Result<T, E = Problem> = std::result::Result<T, E>;

/// The media type of a problem.
pub(crate) const MEDIA_TYPE: &str = "application/problem+json";

/// Where the types are described; a type's URI is this and its slug.
const TYPE_BASE: &str = "https://github.com/sheafdb/sheaf/blob/main/docs/problems.md#";

/// A reason for refusals.
#[derive(Debug, PartialEq, Eq)]
pub struct Kind {
    /// The last part of its URI. It never changes.
    pub slug: &'static str,
    /// The status that goes with it.
    pub status: u16,
    /// What it means, whatever the occurrence.
    pub title: &'static str,
}

impl Kind {
    /// The type's URI.
    pub fn uri(&self) -> String {
        format!("{TYPE_BASE}{}", self.slug)
    }

    /// The reason of a slug.
    pub fn of(slug: &str) -> Option<&'static Kind> {
        KINDS.iter().copied().find(|kind| kind.slug == slug)
    }
}

/// Declares the reasons and the table of all of them.
macro_rules! kinds {
    ($($name:ident = $status:literal $slug:literal $title:literal;)*) => {
        $(pub(crate) static $name: Kind = Kind { slug: $slug, status: $status, title: $title };)*
        /// All reasons.
        pub static KINDS: &[&Kind] = &[$(&$name),*];
    };
}

kinds! {
    // The shared layer's.
    MALFORMED_BODY = 400 "malformed-body" "The request's body is not JSON";
    INVALID_QUERY = 400 "invalid-query" "A query parameter is missing, unknown or out of bounds";
    INVALID_CURSOR = 400 "invalid-cursor" "The cursor is not one of this list";
    INVALID_HEADER = 400 "invalid-header" "A header can't be read";
    IDEMPOTENCY_KEY_REQUIRED = 400 "idempotency-key-required" "An unsafe call needs an Idempotency-Key";
    UNAUTHENTICATED = 401 "unauthenticated" "The call needs a valid bearer token";
    SIGNATURE_INVALID = 401 "signature-invalid" "The webhook's signature does not fit";
    FORBIDDEN = 403 "forbidden" "The caller's roles do not allow this";
    NOT_FOUND = 404 "not-found" "There is nothing here, or nothing that the caller may see";
    METHOD_NOT_ALLOWED = 405 "method-not-allowed" "The resource does not know this method";
    REQUEST_TIMEOUT = 408 "request-timeout" "The request did not arrive in time";
    CONFLICT = 409 "conflict" "It is at odds with what is there";
    IDEMPOTENCY_IN_FLIGHT = 409 "idempotency-in-flight" "A call with this Idempotency-Key is still at work";
    PRECONDITION_FAILED = 412 "precondition-failed" "The resource is no longer what If-Match names";
    BODY_TOO_LARGE = 413 "body-too-large" "The request's body is larger than allowed";
    UNSUPPORTED_MEDIA_TYPE = 415 "unsupported-media-type" "The body's media type is not one that the resource takes";
    RANGE_NOT_SATISFIABLE = 416 "range-not-satisfiable" "The range lies outside of the content";
    INVALID_BODY = 422 "invalid-body" "The body is JSON, but not what the call takes";
    IDEMPOTENCY_MISMATCH = 422 "idempotency-mismatch" "The Idempotency-Key was used for another call";
    PRECONDITION_REQUIRED = 428 "precondition-required" "The change must say by If-Match what it is a change to";
    RATE_LIMITED = 429 "rate-limited" "The caller is calling too often";
    INTERNAL = 500 "internal" "The server failed";
    OVERLOADED = 503 "overloaded" "The server has too much to do; nothing was done";
    UNAVAILABLE = 503 "unavailable" "The store can't answer now";
    TIMEOUT = 503 "timeout" "The call took too long; it may still take effect";
    // Both domains'.
    ALREADY_EXISTS = 409 "already-exists" "There is one of that id or name already";
    FULL = 409 "full" "There is no room for more";
    UNKNOWN_REFERENCE = 422 "unknown-reference" "The body names something that is not there";
    // Commerce.
    OUT_OF_STOCK = 409 "out-of-stock" "There is less on the shelf than is wanted";
    LIMIT_PER_BUYER = 409 "limit-per-buyer" "A buyer wants more of a SKU than one buyer may have";
    CURRENCY_MISMATCH = 422 "currency-mismatch" "Two amounts are in different currencies";
    AMOUNT_TOO_LARGE = 422 "amount-too-large" "An amount is larger than can be counted";
    ILLEGAL_MOVE = 409 "illegal-move" "The state that it is in does not allow this";
    EMPTY_CART = 409 "empty-cart" "The cart is empty";
    COUPON_REFUSED = 409 "coupon-refused" "The coupon can't be used for this";
    AMOUNT_MISMATCH = 409 "amount-mismatch" "Another amount was reported than was asked for";
    REFUND_TOO_LARGE = 409 "refund-too-large" "More would be refunded than was captured";
    REFUND_IN_PROGRESS = 409 "refund-in-progress" "The order's money is on its way back";
    NOTHING_TO_RETURN = 409 "nothing-to-return" "More would be returned than was bought";
    NOT_BOUGHT = 403 "not-bought" "Only who bought a product can review it";
    PROVIDER_REFUSED = 409 "provider-refused" "The payment provider said no";
    // Social.
    SELF_RELATION = 409 "self-relation" "A relation of a user to the same user";
    BLOCKED = 403 "blocked" "One of the two users has blocked the other";
    REQUEST_PENDING = 409 "request-pending" "A friend request between the two is open already";
    ALREADY_FRIENDS = 409 "already-friends" "The two are friends already";
    NO_PENDING_REQUEST = 409 "no-pending-request" "There is no open friend request between the two";
    NOT_ALLOWED = 403 "not-allowed" "It belongs to another user";
    TOO_DEEP = 409 "too-deep" "Replies are nested no deeper";
    CORRUPT = 422 "corrupt" "The content's checksum is another one";
    // Payments.
    PROVIDER_SILENT = 503 "provider-silent" "The payment provider gave no answer; it will be asked again";
}

/// A refusal.
#[derive(Clone, Debug)]
pub struct Problem {
    /// Why.
    pub kind: &'static Kind,
    detail: String,
    members: Map<String, Value>,
    // Boxed: results are passed around by value, and few problems have headers.
    headers: Box<HeaderMap>,
}

impl Problem {
    pub(crate) fn new(kind: &'static Kind, detail: impl Into<String>) -> Problem {
        Problem { kind, detail: detail.into(), members: Map::new(), headers: Box::default() }
    }

    /// What is missing, or what the caller may not see: the two must not be told apart.
    pub(crate) fn not_found() -> Problem {
        Problem::new(&NOT_FOUND, "there is no such resource, or you may not see it")
    }

    /// Adds a member beside RFC 9457's.
    pub(crate) fn with(mut self, name: &str, value: impl Into<Value>) -> Problem {
        self.members.insert(name.to_owned(), value.into());
        self
    }

    /// Adds a header to the answer.
    pub(crate) fn header(mut self, name: HeaderName, value: HeaderValue) -> Problem {
        self.headers.insert(name, value);
        self
    }

    /// Says when to try again.
    pub(crate) fn retry_after(self, seconds: u64) -> Problem {
        self.header(header::RETRY_AFTER, HeaderValue::from(seconds.max(1)))
    }

    fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.kind.status).expect("the table holds valid statuses")
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = self.status();
        let mut body = json!({
            "type": self.kind.uri(),
            "title": self.kind.title,
            "status": self.kind.status,
            "detail": self.detail,
        });
        let members = body.as_object_mut().expect("it was made an object");
        members.extend(self.members);
        let mut response = (status, body.to_string()).into_response();
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
        response.headers_mut().extend(*self.headers);
        response.extensions_mut().insert(self.kind);
        response
    }
}

/// MongoDB's codes for what another try may heal.
const TRANSIENT_CODES: &[i32] = &[6, 7, 89, 91, 112, 189, 251, 10107, 11600, 11602, 13435, 13436];

impl From<store::Error> for Problem {
    fn from(error: store::Error) -> Problem {
        if error.is_duplicate_key() {
            return Problem::new(&CONFLICT, "it is there already, or another call made it first");
        }
        let transient = error.code.is_none_or(|code| TRANSIENT_CODES.contains(&code));
        if transient || error.has_label("TransientTransactionError") {
            tracing::warn!(%error, "the store can't answer");
            return Problem::new(&UNAVAILABLE, "the store can't answer now; try again").retry_after(1);
        }
        tracing::error!(%error, "the store failed");
        Problem::new(&INTERNAL, "the store refused what the server asked of it")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn slugs_are_unique_and_statuses_are_errors() {
        let slugs: BTreeSet<_> = KINDS.iter().map(|kind| kind.slug).collect();
        assert_eq!(slugs.len(), KINDS.len());
        assert!(KINDS.iter().all(|kind| (400..=599).contains(&kind.status)));
    }

    #[test]
    fn a_problem_has_the_members_of_rfc_9457() {
        let problem = Problem::new(&RATE_LIMITED, "slow down").with("limit", 5).retry_after(0).into_response();
        assert_eq!(problem.status(), 429);
        assert_eq!(problem.headers()[header::CONTENT_TYPE], "application/problem+json");
        assert_eq!(problem.headers()[header::RETRY_AFTER], "1");
    }
}
