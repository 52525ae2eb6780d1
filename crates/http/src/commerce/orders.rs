//! Orders: a buyer's own, or all for the shop's staff.

use super::buyers::AddressRequest;
use super::{Commerce, error, owned, page, paging, schema};
use crate::shared::auth::{Caller, Role};
use crate::shared::cursor::{Page, Paging};
use crate::shared::etag::{IfMatch, Tagged};
use crate::shared::extract::{Body, Path, Query};
use crate::shared::idempotency::{Kept, Once};
use crate::shared::problem::{INVALID_QUERY, Problem, Result};
use crate::shared::record::Write;
use axum::extract::State;
use axum::http::{StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use commerce::{Line, Note, NoteWrite, Order, OrderFilter, OrderRequest, OrderSummary, states};
use serde::Deserialize;
use std::sync::Arc;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes() -> OpenApiRouter<Arc<Commerce>> {
    OpenApiRouter::default()
        .routes(routes!(list_orders, place_order))
        .routes(routes!(order))
        .routes(routes!(cancel_order))
        .routes(routes!(sign_order))
}

/// An order as an answer.
pub(super) fn answer(status: StatusCode, order: Order) -> Response {
    let at = [(header::LOCATION, super::location("/v1/orders", &order.id))];
    (at, Tagged { status, version: order.version, body: order }).into_response()
}

/// The answer to a new order, or to one that was refused.
fn placed(outcome: commerce::Result<Order>) -> Response {
    match outcome {
        Ok(order) => answer(StatusCode::CREATED, order),
        Err(refusal) => error::in_body(refusal).into_response(),
    }
}

/// Has an order placed, whose answer is kept in its own transaction.
pub(super) async fn once<F>(once: Once, place: impl FnOnce(Note<Order>) -> F) -> Response
where
    F: Future<Output = commerce::Result<Order>>,
{
    let (database, collection) = once.place();
    let (database, collection) = (database.to_owned(), collection.to_owned());
    let note = Note::new(&database, &collection, move |outcome: &commerce::Result<Order>| {
        Some(match once.kept(placed(outcome.clone()))? {
            Write::Insert(document) => NoteWrite::Insert(document),
            Write::Update { filter, change } => NoteWrite::Update { filter, change },
        })
    });
    let mut answer = placed(place(note.clone()).await);
    if note.is_written() {
        answer.extensions_mut().insert(Kept);
    }
    answer
}

/// So many of a SKU.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct LineRequest {
    #[schema(min_length = 1, max_length = 128)]
    sku: String,
    #[schema(minimum = 1, maximum = 1000000)]
    quantity: i64,
}

impl LineRequest {
    /// The domain's lines.
    pub(super) fn lines(lines: Vec<LineRequest>) -> Vec<Line> {
        lines.into_iter().map(|line| Line { sku: line.sku, quantity: line.quantity }).collect()
    }
}

/// What a buyer wants.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct OrderBody {
    /// Lines for the same SKU are added up.
    #[schema(min_items = 1, max_items = 200)]
    lines: Vec<LineRequest>,
    /// Where to; the default address if it is missing.
    address: Option<AddressRequest>,
    /// A coupon that the buyer holds.
    coupon: Option<String>,
    /// What the buyer wants to say.
    #[serde(default)]
    #[schema(max_length = 500)]
    remark: String,
}

/// Place an order: all lines are held until it is paid, or none
#[utoipa::path(
    post, path = "/v1/orders", tag = "orders", security(("bearer" = ["buyer"])), request_body = OrderBody,
    extensions(("x-problems" = json!([
        "out-of-stock", "limit-per-buyer", "currency-mismatch", "coupon-refused", "unknown-reference", "amount-too-large",
        "full"
    ]))),
    responses((status = 201, description = "The order", body = schema::Order, headers(("ETag" = String)))),
)]
async fn place_order(
    State(commerce): State<Arc<Commerce>>,
    caller: Caller,
    call: Once,
    Body(body): Body<OrderBody>,
) -> Result<Response> {
    super::bounded("remark", &body.remark, 0, 500)?;
    let request = OrderRequest {
        key: Some(call.key.clone()),
        number: None,
        buyer: caller.subject,
        lines: LineRequest::lines(body.lines),
        address: body.address.map(AddressRequest::checked).transpose()?,
        coupon: body.coupon,
        remark: body.remark,
    };
    Ok(once(call, |note| commerce.shop.place_order_noted(&request, Some(note))).await)
}

/// Which orders.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct OrderQuery {
    /// In this state.
    status: Option<String>,
    /// Of this buyer; a buyer sees their own only.
    buyer: Option<String>,
    /// How many items (default 20, at most 100).
    #[param(minimum = 1, maximum = 100)]
    limit: Option<i64>,
    /// Where to go on: `nextCursor` of the page before.
    cursor: Option<String>,
}

/// Orders, the newest first
#[utoipa::path(
    get, path = "/v1/orders", tag = "orders", security(("bearer" = ["buyer", "merchant", "operator"])),
    params(OrderQuery), extensions(("x-problems" = json!(["not-found"]))),
    responses((status = 200, description = "A page of them", body = Page<schema::OrderSummary>)),
)]
async fn list_orders(
    State(commerce): State<Arc<Commerce>>,
    caller: Caller,
    uri: Uri,
    Query(query): Query<OrderQuery>,
) -> Result<Page<OrderSummary>> {
    if let Some(status) = &query.status
        && !states::ORDER.moves.iter().any(|(state, _)| state == status)
    {
        return Err(Problem::new(&INVALID_QUERY, format!("there is no state '{status}' of orders")));
    }
    let staff = caller.is_any(&[Role::Merchant, Role::Operator]);
    let buyer = match query.buyer {
        Some(buyer) if !staff && buyer != caller.subject => return Err(Problem::not_found()),
        None if !staff => Some(caller.subject),
        buyer => buyer,
    };
    let at = Paging { limit: query.limit, cursor: query.cursor };
    let filter = OrderFilter { buyer, status: query.status };
    let found = commerce.shop.orders(&filter, &paging(&at, &uri)?).await.map_err(error::in_query)?;
    page(&uri, &at, found)
}

/// An order of which the caller may know.
pub(super) async fn visible(commerce: &Commerce, caller: &Caller, id: &str) -> Result<Order> {
    let order = commerce.shop.order(id).await?;
    owned(caller, &order.user_id)?;
    Ok(order)
}

/// An order
#[utoipa::path(
    get, path = "/v1/orders/{id}", tag = "orders", security(("bearer" = ["buyer", "merchant", "operator"])),
    params(("id" = String, Path)),
    responses((status = 200, description = "It", body = schema::Order, headers(("ETag" = String)))),
)]
async fn order(State(commerce): State<Arc<Commerce>>, caller: Caller, Path(id): Path<String>) -> Result<Tagged<Order>> {
    let order = visible(&commerce, &caller, &id).await?;
    Ok(Tagged::ok(order.version, order))
}

/// Why.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Reason {
    #[serde(default)]
    #[schema(max_length = 500)]
    why: String,
}

/// Cancel an order that is not paid; what it held can be sold again
#[utoipa::path(
    post, path = "/v1/orders/{id}/cancel", tag = "orders", security(("bearer" = ["buyer", "merchant", "operator"])),
    params(("id" = String, Path)), request_body = Reason,
    extensions(("x-if-match" = json!(true)), ("x-problems" = json!(["illegal-move"]))),
    responses((status = 200, description = "The order", body = schema::Order, headers(("ETag" = String)))),
)]
async fn cancel_order(
    State(commerce): State<Arc<Commerce>>,
    caller: Caller,
    Path(id): Path<String>,
    if_match: IfMatch,
    Body(body): Body<Reason>,
) -> Result<Response> {
    super::bounded("why", &body.why, 0, 500)?;
    let expected = if_match.expected(visible(&commerce, &caller, &id).await?.version)?;
    let order = commerce.shop.cancel_order(&id, &caller.subject, &body.why, expected).await?;
    Ok(answer(StatusCode::OK, order))
}

/// Say that all of an order has arrived
#[utoipa::path(
    post, path = "/v1/orders/{id}/sign", tag = "orders", security(("bearer" = ["buyer", "merchant", "operator"])),
    params(("id" = String, Path)), extensions(("x-if-match" = json!(true)), ("x-problems" = json!(["illegal-move"]))),
    responses((status = 200, description = "The order", body = schema::Order, headers(("ETag" = String)))),
)]
async fn sign_order(
    State(commerce): State<Arc<Commerce>>,
    caller: Caller,
    Path(id): Path<String>,
    if_match: IfMatch,
) -> Result<Response> {
    let expected = if_match.expected(visible(&commerce, &caller, &id).await?.version)?;
    let order = commerce.shop.sign_order(&id, &caller.subject, expected).await?;
    Ok(answer(StatusCode::OK, order))
}
