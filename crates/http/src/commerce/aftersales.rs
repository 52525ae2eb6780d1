//! Returns, exchanges and complaints.

use super::orders::{LineRequest, visible};
use super::{Commerce, error, owned, page, paging, schema};
use crate::shared::auth::{Caller, Role};
use crate::shared::cursor::{Page, Paging};
use crate::shared::etag::{IfMatch, Tagged};
use crate::shared::extract::{Body, Path, Query};
use crate::shared::idempotency::OnceKey;
use crate::shared::problem::{FORBIDDEN, Problem, Result};
use axum::extract::State;
use axum::http::{StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use commerce::{AfterSale, AfterSaleKind, AfterSaleRequest};
use serde::Deserialize;
use std::sync::Arc;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// The steps that a buyer takes; all others are the shop's.
const BUYER_STEPS: [&str; 3] = ["withdrawn", "reopened", "closed"];

pub(super) fn routes() -> OpenApiRouter<Arc<Commerce>> {
    OpenApiRouter::default()
        .routes(routes!(ask_after_sale))
        .routes(routes!(list_after_sales))
        .routes(routes!(after_sale))
        .routes(routes!(move_after_sale))
}

/// What is wanted.
#[derive(Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
enum Wanted {
    Return,
    Exchange,
    Complaint,
}

/// What a buyer asks for; complaints name no goods, the others do.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct AfterSaleBody {
    kind: Wanted,
    #[serde(default)]
    #[schema(max_items = 200)]
    lines: Vec<LineRequest>,
    #[serde(default)]
    #[schema(max_length = 1000)]
    why: String,
}

fn answer(status: StatusCode, found: AfterSale) -> Response {
    let at = [(header::LOCATION, super::location("/v1/after-sales", &found.id))];
    (at, Tagged { status, version: found.version, body: found }).into_response()
}

/// Ask for a return, an exchange or an answer
#[utoipa::path(
    post, path = "/v1/orders/{id}/after-sales", tag = "after-sales", security(("bearer" = ["buyer"])),
    params(("id" = String, Path)), request_body = AfterSaleBody,
    extensions(("x-problems" = json!(["illegal-move", "nothing-to-return", "full"]))),
    responses((status = 201, description = "It", body = schema::AfterSale, headers(("ETag" = String)))),
)]
async fn ask_after_sale(
    State(commerce): State<Arc<Commerce>>,
    caller: Caller,
    Path(id): Path<String>,
    OnceKey(key): OnceKey,
    Body(body): Body<AfterSaleBody>,
) -> Result<Response> {
    super::bounded("why", &body.why, 0, 1000)?;
    visible(&commerce, &caller, &id).await?;
    let kind = match body.kind {
        Wanted::Return => AfterSaleKind::Return,
        Wanted::Exchange => AfterSaleKind::Exchange,
        Wanted::Complaint => AfterSaleKind::Complaint,
    };
    let lines = LineRequest::lines(body.lines);
    let request = AfterSaleRequest { key, kind, order: id, lines, why: body.why };
    Ok(answer(StatusCode::CREATED, commerce.shop.ask_after_sale(&caller.subject, &request).await?))
}

/// Which ones.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct AfterSaleQuery {
    /// In this state; for the shop's staff.
    status: Option<String>,
    /// How many items (default 20, at most 100).
    #[param(minimum = 1, maximum = 100)]
    limit: Option<i64>,
    /// Where to go on: `nextCursor` of the page before.
    cursor: Option<String>,
}

/// A buyer's own, or those in a state, the newest first
#[utoipa::path(
    get, path = "/v1/after-sales", tag = "after-sales", security(("bearer" = ["buyer", "merchant", "operator"])),
    params(AfterSaleQuery), responses((status = 200, description = "A page of them", body = Page<schema::AfterSale>)),
)]
async fn list_after_sales(
    State(commerce): State<Arc<Commerce>>,
    caller: Caller,
    uri: Uri,
    Query(query): Query<AfterSaleQuery>,
) -> Result<Page<AfterSale>> {
    let at = Paging { limit: query.limit, cursor: query.cursor };
    let staff = caller.is_any(&[Role::Merchant, Role::Operator]) && query.status.is_some();
    if !staff && query.status.is_some() {
        return Err(Problem::new(&FORBIDDEN, "lists by state are for the shop's staff; leave 'status' out"));
    }
    let buyer = (!staff).then_some(caller.subject.as_str());
    let wanted = paging(&at, &uri)?;
    let found = commerce.shop.after_sales(query.status.as_deref(), buyer, &wanted).await;
    page(&uri, &at, found.map_err(error::in_query)?)
}

/// A return, exchange or complaint
#[utoipa::path(
    get, path = "/v1/after-sales/{id}", tag = "after-sales", security(("bearer" = ["buyer", "merchant", "operator"])),
    params(("id" = String, Path)),
    responses((status = 200, description = "It", body = schema::AfterSale, headers(("ETag" = String)))),
)]
async fn after_sale(
    State(commerce): State<Arc<Commerce>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Tagged<AfterSale>> {
    let found = commerce.shop.after_sale(&id).await?;
    owned(&caller, &found.user_id)?;
    Ok(Tagged::ok(found.version, found))
}

/// The next step.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct StepRequest {
    /// `approved`, `received`, `replaced`, `rejected`, `answered` by the shop; `withdrawn`, `reopened`, `closed` by the buyer.
    #[schema(min_length = 1, max_length = 32)]
    to: String,
    #[serde(default)]
    #[schema(max_length = 1000)]
    why: String,
}

/// Move a return, exchange or complaint on
#[utoipa::path(
    post, path = "/v1/after-sales/{id}/steps", tag = "after-sales",
    security(("bearer" = ["buyer", "merchant", "operator"])), params(("id" = String, Path)), request_body = StepRequest,
    extensions(
        ("x-if-match" = json!(true)),
        ("x-problems" = json!(["illegal-move", "out-of-stock", "full", "refund-too-large", "nothing-to-return"]))
    ),
    responses((status = 200, description = "It", body = schema::AfterSale, headers(("ETag" = String)))),
)]
async fn move_after_sale(
    State(commerce): State<Arc<Commerce>>,
    caller: Caller,
    Path(id): Path<String>,
    if_match: IfMatch,
    Body(body): Body<StepRequest>,
) -> Result<Response> {
    super::bounded("why", &body.why, 0, 1000)?;
    let found = commerce.shop.after_sale(&id).await?;
    owned(&caller, &found.user_id)?;
    let staff = caller.is_any(&[Role::Merchant, Role::Operator]);
    if !staff && !BUYER_STEPS.contains(&body.to.as_str()) {
        return Err(Problem::new(&FORBIDDEN, format!("a buyer may say: {}", BUYER_STEPS.join(", "))));
    }
    let expected = if_match.expected(found.version)?;
    let moved = commerce.shop.move_after_sale(&id, &body.to, &caller.subject, &body.why, expected).await?;
    Ok(answer(StatusCode::OK, moved))
}
