//! What the shop refuses, as problems.

use crate::shared::etag::tag;
use crate::shared::problem::{
    ALREADY_EXISTS, AMOUNT_MISMATCH, AMOUNT_TOO_LARGE, COUPON_REFUSED, CURRENCY_MISMATCH, EMPTY_CART, FULL,
    IDEMPOTENCY_MISMATCH, ILLEGAL_MOVE, INVALID_BODY, INVALID_QUERY, Kind, LIMIT_PER_BUYER, NOT_BOUGHT,
    NOTHING_TO_RETURN, OUT_OF_STOCK, OVERLOADED, PRECONDITION_FAILED, PROVIDER_REFUSED, PROVIDER_SILENT, Problem,
    REFUND_IN_PROGRESS, REFUND_TOO_LARGE, SIGNATURE_INVALID, UNKNOWN_REFERENCE,
};
use axum::http::header;
use commerce::Error;

impl From<Error> for Problem {
    fn from(error: Error) -> Problem {
        let said = error.to_string();
        let because = |kind: &'static Kind| Problem::new(kind, said);
        match error {
            Error::NotFound { .. } | Error::NotYours { .. } => Problem::not_found(),
            Error::OutOfStock { sku, wanted, left } => {
                because(&OUT_OF_STOCK).with("sku", sku).with("wanted", wanted).with("left", left)
            }
            Error::LimitPerBuyer { sku, limit, had } => {
                because(&LIMIT_PER_BUYER).with("sku", sku).with("limit", limit).with("had", had)
            }
            Error::AlreadyExists { what, id } => because(&ALREADY_EXISTS).with("what", what).with("id", id),
            Error::Invalid { field, .. } => because(&INVALID_BODY).with("field", field),
            Error::CurrencyMismatch { .. } => because(&CURRENCY_MISMATCH),
            Error::AmountTooLarge => because(&AMOUNT_TOO_LARGE),
            Error::IllegalMove { from, to, .. } => because(&ILLEGAL_MOVE).with("from", from).with("to", to),
            Error::VersionConflict { found, .. } => because(&PRECONDITION_FAILED).header(header::ETAG, tag(found)),
            Error::KeyReused { .. } => because(&IDEMPOTENCY_MISMATCH),
            Error::EmptyCart => because(&EMPTY_CART),
            Error::Full { what, max } => because(&FULL).with("what", what).with("max", max),
            Error::CouponRefused { coupon, .. } => because(&COUPON_REFUSED).with("coupon", coupon),
            Error::BadSignature => because(&SIGNATURE_INVALID),
            Error::AmountMismatch { .. } => because(&AMOUNT_MISMATCH),
            Error::RefundTooLarge { left, .. } => because(&REFUND_TOO_LARGE).with("left", left),
            Error::RefundInProgress { .. } => because(&REFUND_IN_PROGRESS),
            Error::NothingToReturn { sku, left, .. } => because(&NOTHING_TO_RETURN).with("sku", sku).with("left", left),
            Error::NotBought { product } => because(&NOT_BOUGHT).with("product", product),
            Error::ProviderRefused { .. } => because(&PROVIDER_REFUSED),
            Error::ProviderSilent => because(&PROVIDER_SILENT).retry_after(1),
            Error::Busy | Error::Cache { .. } => because(&OVERLOADED).retry_after(1),
            Error::Store(error) => error.into(),
        }
    }
}

/// A refusal of what a body names: what is not there is then the body's fault, not the path's.
pub(crate) fn in_body(error: Error) -> Problem {
    match error {
        Error::NotFound { what, ref id } => {
            let id = id.clone();
            Problem::new(&UNKNOWN_REFERENCE, error.to_string()).with("what", what).with("id", id)
        }
        other => other.into(),
    }
}

/// A refusal of what a query says.
pub(crate) fn in_query(error: Error) -> Problem {
    match error {
        Error::Invalid { .. } => Problem::new(&INVALID_QUERY, error.to_string()),
        other => other.into(),
    }
}
