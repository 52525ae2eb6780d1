//! Stock: what is there, what comes in and is lost, the ledger, reconciliation.

use super::{All, Commerce, page, paging, schema};
use crate::shared::auth::Caller;
use crate::shared::cursor::{Page, Paging};
use crate::shared::extract::{Body, Path, Query};
use crate::shared::problem::Result;
use axum::Json;
use axum::extract::State;
use axum::http::Uri;
use commerce::{LedgerEntry, Product, ProductList, Reconciliation, StockLevel};
use serde::Deserialize;
use std::sync::Arc;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// How many lines of the ledger are shown.
const LEDGER_LINES: usize = 100;

pub(super) fn routes() -> OpenApiRouter<Arc<Commerce>> {
    OpenApiRouter::default()
        .routes(routes!(stock))
        .routes(routes!(receive))
        .routes(routes!(write_off))
        .routes(routes!(ledger))
        .routes(routes!(low_stock))
        .routes(routes!(reconcile))
}

/// What is there of a SKU
#[utoipa::path(
    get, path = "/v1/skus/{id}/stock", tag = "stock", security(("bearer" = ["buyer", "merchant", "operator"])),
    params(("id" = String, Path)), responses((status = 200, description = "The level", body = schema::StockLevel)),
)]
async fn stock(State(commerce): State<Arc<Commerce>>, Path(id): Path<String>) -> Result<Json<StockLevel>> {
    Ok(Json(commerce.shop.stock(&id).await?))
}

/// A movement of goods.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct MovementRequest {
    #[schema(minimum = 1)]
    quantity: i64,
    /// The delivery or the report; the same one counts once for a SKU.
    #[schema(min_length = 1, max_length = 128)]
    reference: String,
}

/// Goods come in
#[utoipa::path(
    post, path = "/v1/skus/{id}/receipts", tag = "stock", security(("bearer" = ["merchant"])),
    params(("id" = String, Path)), request_body = MovementRequest,
    responses((status = 200, description = "The level now", body = schema::StockLevel)),
)]
async fn receive(
    State(commerce): State<Arc<Commerce>>,
    caller: Caller,
    Path(id): Path<String>,
    Body(body): Body<MovementRequest>,
) -> Result<Json<StockLevel>> {
    super::bounded("reference", &body.reference, 1, 128)?;
    Ok(Json(commerce.shop.receive(&id, body.quantity, &body.reference, &caller.subject).await?))
}

/// Goods are lost or broken
#[utoipa::path(
    post, path = "/v1/skus/{id}/write-offs", tag = "stock", security(("bearer" = ["merchant"])),
    params(("id" = String, Path)), request_body = MovementRequest,
    extensions(("x-problems" = json!(["out-of-stock"]))),
    responses((status = 200, description = "The level now", body = schema::StockLevel)),
)]
async fn write_off(
    State(commerce): State<Arc<Commerce>>,
    caller: Caller,
    Path(id): Path<String>,
    Body(body): Body<MovementRequest>,
) -> Result<Json<StockLevel>> {
    super::bounded("reference", &body.reference, 1, 128)?;
    Ok(Json(commerce.shop.write_off(&id, body.quantity, &body.reference, &caller.subject).await?))
}

/// The newest hundred lines of a SKU's ledger
#[utoipa::path(
    get, path = "/v1/skus/{id}/ledger", tag = "stock", security(("bearer" = ["merchant", "operator"])),
    params(("id" = String, Path)),
    responses((status = 200, description = "The newest first", body = All<schema::LedgerEntry>)),
)]
async fn ledger(State(commerce): State<Arc<Commerce>>, Path(id): Path<String>) -> Result<Json<All<LedgerEntry>>> {
    commerce.shop.stock(&id).await?;
    Ok(Json(All { items: commerce.shop.ledger(&id, LEDGER_LINES).await? }))
}

/// Below which stock.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct LowStockQuery {
    /// Fewer than this.
    below: i64,
    /// How many items (default 20, at most 100).
    #[param(minimum = 1, maximum = 100)]
    limit: Option<i64>,
    /// Where to go on: `nextCursor` of the page before.
    cursor: Option<String>,
}

/// Products of which few are left, the scarcest first
#[utoipa::path(
    get, path = "/v1/stock/low", tag = "stock", security(("bearer" = ["merchant", "operator"])), params(LowStockQuery),
    responses((status = 200, description = "A page of them", body = Page<schema::Product>)),
)]
async fn low_stock(
    State(commerce): State<Arc<Commerce>>,
    uri: Uri,
    Query(query): Query<LowStockQuery>,
) -> Result<Page<Product>> {
    let at = Paging { limit: query.limit, cursor: query.cursor.clone() };
    let list = ProductList::LowStock { below: query.below };
    let found = commerce.shop.products(&list, &paging(&at, &uri)?).await.map_err(super::error::in_query)?;
    page(&uri, &at, found)
}

/// How to reconcile.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ReconcileRequest {
    /// Whether SKUs that differ get what ledger and holds say.
    #[serde(default)]
    repair: bool,
}

/// Compare every SKU with its ledger and its holds
#[utoipa::path(
    post, path = "/v1/stock/reconciliations", tag = "stock", security(("bearer" = ["operator"])),
    request_body = ReconcileRequest,
    responses((status = 200, description = "What was found", body = schema::Reconciliation)),
)]
async fn reconcile(
    State(commerce): State<Arc<Commerce>>,
    Body(body): Body<ReconcileRequest>,
) -> Result<Json<Reconciliation>> {
    Ok(Json(commerce.shop.reconcile(body.repair).await?))
}
