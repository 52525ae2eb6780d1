//! Flash sales with their stock in Redis, for a shop on a deployment. (On the embedded store buyers simply place orders.)
//!
//! A reservation is answered by Redis alone: no record of the call is written, since the reservation itself is made once
//! for its key. What is reserved becomes an order behind it, in this process or in another one.

use super::buyers::AddressRequest;
use super::{All, Commerce, error, schema};
use crate::shared::auth::Caller;
use crate::shared::extract::{Body, Path};
use crate::shared::idempotency::OnceKey;
use crate::shared::problem::{CONFLICT, Problem, Result};
use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use commerce::{
    FlashSale, Line, MAX_OPEN_SALES, NewFlashSale, OpenSale, OrderRequest, Reserved, SaleLevel, Shop, Time, Written,
};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// How long to wait when nothing was to be written down.
const WRITE_PAUSE: Duration = Duration::from_millis(100);
/// How often to look for sales that others opened.
const LOOK_PERIOD: Duration = Duration::from_secs(5);
/// How often a sale is compared with the store, and put right.
const RECONCILE_PERIOD: Duration = Duration::from_secs(60);

pub(super) fn routes() -> OpenApiRouter<Arc<Commerce>> {
    OpenApiRouter::default()
        .routes(routes!(sales, open_sale))
        .routes(routes!(sale))
        .routes(routes!(reserve))
        .routes(routes!(reserved))
        .routes(routes!(reconcile_sale))
        .routes(routes!(close_sale))
}

/// The sales that this process knows.
pub(crate) struct Sales {
    redis: Option<String>,
    known: Mutex<BTreeMap<String, FlashSale>>,
}

impl Sales {
    pub(super) fn new(redis: Option<String>) -> Sales {
        Sales { redis, known: Mutex::default() }
    }

    fn redis(&self) -> Result<&str> {
        let none = "this server has no Redis: start it with --redis, or sell on the embedded store by plain orders";
        self.redis.as_deref().ok_or_else(|| Problem::new(&CONFLICT, none))
    }

    /// A sale, taken up if this process does not know it yet.
    async fn get(&self, shop: &Shop, id: &str) -> Result<FlashSale> {
        if let Some(known) = self.known.lock().get(id) {
            return Ok(known.clone());
        }
        let sale = shop.flash_sale(self.redis()?, id).await?;
        self.keep(&sale);
        Ok(sale)
    }

    fn keep(&self, sale: &FlashSale) {
        let mut known = self.known.lock();
        if known.len() < MAX_OPEN_SALES || known.contains_key(sale.id()) {
            known.insert(sale.id().to_owned(), sale.clone());
        }
    }

    /// Writes down what is reserved and puts right what drifted, for ever.
    pub(super) async fn go_on(&self, shop: &Shop) {
        if self.redis.is_none() {
            return std::future::pending().await;
        }
        let (mut looked, mut reconciled) = (None::<Instant>, Instant::now());
        loop {
            if looked.is_none_or(|looked| looked.elapsed() >= LOOK_PERIOD) {
                looked = Some(Instant::now());
                self.look(shop).await;
            }
            let repair = reconciled.elapsed() >= RECONCILE_PERIOD;
            if repair {
                reconciled = Instant::now();
            }
            let known: Vec<FlashSale> = self.known.lock().values().cloned().collect();
            let mut idle = true;
            for sale in known {
                match sale.write_down().await {
                    Ok(written) => idle &= written == Written::default(),
                    Err(error) => tracing::warn!(sale = sale.id(), %error, "reservations wait to be written down"),
                }
                if repair && let Err(error) = sale.reconcile(true).await {
                    tracing::warn!(sale = sale.id(), %error, "a flash sale could not be reconciled; it is tried again");
                }
            }
            if idle {
                tokio::time::sleep(WRITE_PAUSE).await;
            }
        }
    }

    /// Takes up sales that others opened, and forgets those that are over.
    async fn look(&self, shop: &Shop) {
        let open = match shop.open_sales().await {
            Ok(open) => open,
            Err(error) => return tracing::warn!(%error, "flash sales could not be listed; it is tried again"),
        };
        self.known.lock().retain(|id, _| open.iter().any(|sale| sale.id == *id));
        for sale in open {
            if let Err(problem) = self.get(shop, &sale.id).await {
                tracing::warn!(sale = sale.id, ?problem, "a flash sale could not be taken up; it is tried again");
            }
        }
    }
}

/// A sale to open.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct SaleRequest {
    /// Letters, digits, `-` and `_`; used once.
    #[schema(min_length = 1, max_length = 128, pattern = "^[A-Za-z0-9_-]+$")]
    id: String,
    #[schema(min_length = 1, max_length = 128)]
    sku: String,
    #[schema(minimum = 1, maximum = 1000000)]
    quantity: i64,
    /// Until when.
    #[schema(value_type = String, format = DateTime)]
    until: Time,
}

/// Open a flash sale: its units are set aside, and Redis answers for them
#[utoipa::path(
    post, path = "/v1/flash-sales", tag = "flash sales", security(("bearer" = ["merchant", "operator"])),
    request_body = SaleRequest,
    extensions(("x-problems" = json!(["conflict", "out-of-stock", "illegal-move", "unknown-reference"]))),
    responses((status = 201, description = "It is open", body = schema::OpenSale)),
)]
async fn open_sale(
    State(commerce): State<Arc<Commerce>>,
    caller: Caller,
    Body(body): Body<SaleRequest>,
) -> Result<Response> {
    let SaleRequest { id, sku, quantity, until } = body;
    let new = NewFlashSale { id, sku, quantity, until, operator: caller.subject };
    let redis = commerce.sales.redis()?;
    let sale = commerce.shop.open_flash_sale(redis, &new).await.map_err(error::in_body)?;
    commerce.sales.keep(&sale);
    let opened = commerce.shop.open_sale(&new.id).await?;
    let at = [(header::LOCATION, super::location("/v1/flash-sales", &opened.id))];
    Ok((StatusCode::CREATED, at, Json(opened)).into_response())
}

/// The flash sales that are not over
#[utoipa::path(
    get, path = "/v1/flash-sales", tag = "flash sales", security(("bearer" = ["buyer", "merchant", "operator"])),
    responses((status = 200, description = "All", body = All<schema::OpenSale>)),
)]
async fn sales(State(commerce): State<Arc<Commerce>>) -> Result<Json<All<OpenSale>>> {
    Ok(Json(All { items: commerce.shop.open_sales().await? }))
}

/// A flash sale that is not over
#[utoipa::path(
    get, path = "/v1/flash-sales/{id}", tag = "flash sales",
    security(("bearer" = ["buyer", "merchant", "operator"])), params(("id" = String, Path)),
    responses((status = 200, description = "It", body = schema::OpenSale)),
)]
async fn sale(State(commerce): State<Arc<Commerce>>, Path(id): Path<String>) -> Result<Json<OpenSale>> {
    Ok(Json(commerce.shop.open_sale(&id).await?))
}

/// What a buyer wants of a sale.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ReservationRequest {
    #[schema(minimum = 1, maximum = 1000000)]
    quantity: i64,
    /// Where to; the default address if it is missing.
    address: Option<AddressRequest>,
    /// What the buyer wants to say.
    #[serde(default)]
    #[schema(max_length = 500)]
    remark: String,
}

/// How far a reservation is.
#[derive(Serialize, ToSchema)]
struct ReservationView {
    /// The id that its order has, or will have.
    order: String,
    /// `waiting`, `placed` or `refused`.
    status: &'static str,
    /// Why it was refused: the last part of a problem's type.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    why: Option<String>,
}

/// Reserve units of a sale, or be refused, at once; the order follows
#[utoipa::path(
    post, path = "/v1/flash-sales/{id}/reservations", tag = "flash sales", security(("bearer" = ["buyer"])),
    params(("id" = String, Path)), request_body = ReservationRequest,
    extensions(
        ("x-once-by-domain" = json!(true)),
        ("x-problems" = json!(["conflict", "out-of-stock", "limit-per-buyer", "illegal-move"]))
    ),
    responses((status = 202, description = "It is promised", body = ReservationView)),
)]
async fn reserve(
    State(commerce): State<Arc<Commerce>>,
    caller: Caller,
    Path(id): Path<String>,
    OnceKey(key): OnceKey,
    Body(body): Body<ReservationRequest>,
) -> Result<Response> {
    super::bounded("remark", &body.remark, 0, 500)?;
    let sale = commerce.sales.get(&commerce.shop, &id).await?;
    let request = OrderRequest {
        key: Some(key),
        buyer: caller.subject,
        lines: vec![Line { sku: sale.sku().to_owned(), quantity: body.quantity }],
        address: body.address.map(AddressRequest::checked).transpose()?,
        remark: body.remark,
        ..OrderRequest::default()
    };
    let promised = sale.reserve(&request).await?;
    let path = format!("/v1/flash-sales/{id}/reservations");
    let at = [(header::LOCATION, super::location(&path, &promised.order))];
    let view = ReservationView { order: promised.order, status: "waiting", why: None };
    Ok((StatusCode::ACCEPTED, at, Json(view)).into_response())
}

/// What became of a reservation
#[utoipa::path(
    get, path = "/v1/flash-sales/{id}/reservations/{order}", tag = "flash sales", security(("bearer" = ["buyer"])),
    params(("id" = String, Path), ("order" = String, Path)), extensions(("x-problems" = json!(["conflict"]))),
    responses((status = 200, description = "How far it is", body = ReservationView)),
)]
async fn reserved(
    State(commerce): State<Arc<Commerce>>,
    caller: Caller,
    Path((id, order)): Path<(String, String)>,
) -> Result<Json<ReservationView>> {
    let sale = commerce.sales.get(&commerce.shop, &id).await?;
    let (status, why) = match sale.reserved(&order).await? {
        Reserved::Waiting => ("waiting", None),
        Reserved::Refused(why) => ("refused", Some(why)),
        Reserved::Placed(placed) => {
            super::owned(&caller, &placed.user_id)?;
            ("placed", None)
        }
    };
    Ok(Json(ReservationView { order, status, why }))
}

/// How to reconcile.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct SaleRepair {
    /// Whether Redis gets what the store says.
    #[serde(default)]
    repair: bool,
}

/// Compare what Redis would let through with the store
#[utoipa::path(
    post, path = "/v1/flash-sales/{id}/reconciliations", tag = "flash sales", security(("bearer" = ["operator"])),
    params(("id" = String, Path)), request_body = SaleRepair,
    extensions(("x-problems" = json!(["conflict", "illegal-move"]))),
    responses((status = 200, description = "What was found", body = schema::SaleLevel)),
)]
async fn reconcile_sale(
    State(commerce): State<Arc<Commerce>>,
    Path(id): Path<String>,
    Body(body): Body<SaleRepair>,
) -> Result<Json<SaleLevel>> {
    let sale = commerce.sales.get(&commerce.shop, &id).await?;
    Ok(Json(sale.reconcile(body.repair).await?))
}

/// What a sale left over.
#[derive(Serialize, ToSchema)]
struct Closed {
    /// How many units can be sold again.
    released: i64,
}

/// End a sale: what is reserved becomes orders, what is left can be sold again
#[utoipa::path(
    post, path = "/v1/flash-sales/{id}/close", tag = "flash sales", security(("bearer" = ["merchant", "operator"])),
    params(("id" = String, Path)), extensions(("x-problems" = json!(["conflict"]))),
    responses((status = 200, description = "It is over", body = Closed)),
)]
async fn close_sale(
    State(commerce): State<Arc<Commerce>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<Closed>> {
    let sale = commerce.sales.get(&commerce.shop, &id).await?;
    let released = sale.close(&caller.subject).await?;
    commerce.sales.known.lock().remove(&id);
    Ok(Json(Closed { released }))
}
