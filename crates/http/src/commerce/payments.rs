//! Payments and refunds of an order, and the provider's signed callbacks (Standard Webhooks).

use super::orders::visible;
use super::{All, Commerce, error, schema};
use crate::shared::auth::Caller;
use crate::shared::extract::{Body, Path};
use crate::shared::idempotency::OnceKey;
use crate::shared::problem::{Problem, Result, SIGNATURE_INVALID};
use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use commerce::{Accepted, Payment, RefundOptions, Signed};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes() -> OpenApiRouter<Arc<Commerce>> {
    OpenApiRouter::default().routes(routes!(payments, pay)).routes(routes!(refund)).routes(routes!(payment_callback))
}

/// How to pay.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum Method {
    Card,
    Wallet,
    Transfer,
}

/// An attempt to pay.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct PaymentRequest {
    method: Method,
}

/// Begin to pay an order: the provider's callback says whether the money came
#[utoipa::path(
    post, path = "/v1/orders/{id}/payments", tag = "payments", security(("bearer" = ["buyer"])),
    params(("id" = String, Path)), request_body = PaymentRequest,
    extensions(("x-problems" = json!(["illegal-move", "full", "provider-refused"]))),
    responses((status = 201, description = "The attempt", body = schema::Payment)),
)]
async fn pay(
    State(commerce): State<Arc<Commerce>>,
    caller: Caller,
    Path(id): Path<String>,
    OnceKey(key): OnceKey,
    Body(body): Body<PaymentRequest>,
) -> Result<Response> {
    visible(&commerce, &caller, &id).await?;
    let method = match body.method {
        Method::Card => "card",
        Method::Wallet => "wallet",
        Method::Transfer => "transfer",
    };
    let payment = match &commerce.provider {
        Some(provider) => commerce.shop.pay(&id, method, Some(&key), &**provider).await?,
        None => commerce.shop.begin_payment(&id, method, Some(&key)).await?,
    };
    Ok((StatusCode::CREATED, Json(payment)).into_response())
}

/// The attempts to pay an order
#[utoipa::path(
    get, path = "/v1/orders/{id}/payments", tag = "payments", security(("bearer" = ["buyer", "merchant", "operator"])),
    params(("id" = String, Path)), responses((status = 200, description = "All", body = All<schema::Payment>)),
)]
async fn payments(
    State(commerce): State<Arc<Commerce>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<All<Payment>>> {
    visible(&commerce, &caller, &id).await?;
    Ok(Json(All { items: commerce.shop.payments_of(&id).await? }))
}

/// Money to give back.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RefundBody {
    /// In minor units; all that is left if it is missing.
    #[schema(minimum = 1)]
    amount_minor: Option<i64>,
    #[serde(default)]
    #[schema(max_length = 500)]
    why: String,
}

/// Give money of an order back, whole or in part
#[utoipa::path(
    post, path = "/v1/orders/{id}/refunds", tag = "payments", security(("bearer" = ["merchant", "operator"])),
    params(("id" = String, Path)), request_body = RefundBody,
    extensions(("x-problems" = json!(["illegal-move", "full", "refund-too-large"]))),
    responses((status = 201, description = "The refund", body = schema::Refund)),
)]
async fn refund(
    State(commerce): State<Arc<Commerce>>,
    caller: Caller,
    Path(id): Path<String>,
    OnceKey(key): OnceKey,
    Body(body): Body<RefundBody>,
) -> Result<Response> {
    super::bounded("why", &body.why, 0, 500)?;
    let options = RefundOptions { key, amount: body.amount_minor, why: body.why, by: caller.subject };
    let refund = commerce.shop.refund_order(&id, &options).await?;
    Ok((StatusCode::CREATED, Json(refund)).into_response())
}

/// What became of a callback.
#[derive(Serialize, ToSchema)]
struct AcceptedView {
    /// `done`, `known` for a repetition or what came too late to matter, `sent-back` when the money goes back.
    accepted: String,
}

/// The payment provider reports: signed, accepted once, in any order
#[utoipa::path(
    post, path = "/v1/webhooks/payments", tag = "payments", security(("webhook" = [])),
    request_body = schema::Callback, extensions(("x-problems" = json!(["unknown-reference", "currency-mismatch", "amount-mismatch"]))),
    responses((status = 200, description = "What became of it", body = AcceptedView)),
)]
async fn payment_callback(
    State(commerce): State<Arc<Commerce>>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Json<AcceptedView>> {
    let refused = || Problem::new(&SIGNATURE_INVALID, "send webhook-id, webhook-timestamp and webhook-signature");
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).ok_or_else(refused);
    let signed = Signed {
        id: header("webhook-id")?.to_owned(),
        timestamp: header("webhook-timestamp")?.parse().map_err(|_| refused())?,
        signature: header("webhook-signature")?.to_owned(),
        body: body.to_vec(),
    };
    let accepted = match commerce.shop.accept_callback(&signed).await.map_err(error::in_body)? {
        Accepted::Done => "done",
        Accepted::Known => "known",
        Accepted::SentBack => "sent-back",
    };
    Ok(Json(AcceptedView { accepted: accepted.to_owned() }))
}
