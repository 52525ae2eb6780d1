//! The caller's cart, and what becomes of it.

use super::buyers::AddressRequest;
use super::orders::once;
use super::{Commerce, schema};
use crate::shared::auth::Caller;
use crate::shared::etag::{IfMatch, Tagged};
use crate::shared::extract::{Body, Path};
use crate::shared::idempotency::Once;
use crate::shared::problem::Result;
use axum::extract::State;
use axum::response::Response;
use commerce::{Cart, Checkout};
use serde::Deserialize;
use std::sync::Arc;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes() -> OpenApiRouter<Arc<Commerce>> {
    OpenApiRouter::default().routes(routes!(cart)).routes(routes!(put_in_cart)).routes(routes!(checkout))
}

/// One's cart
#[utoipa::path(
    get, path = "/v1/cart", tag = "cart", security(("bearer" = ["buyer"])),
    responses((status = 200, description = "It", body = schema::Cart, headers(("ETag" = String)))),
)]
async fn cart(State(commerce): State<Arc<Commerce>>, caller: Caller) -> Result<Tagged<Cart>> {
    let cart = commerce.shop.cart(&caller.subject).await?;
    Ok(Tagged::ok(cart.version, cart))
}

/// How many of a SKU.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct QuantityRequest {
    /// In place of what was there; zero takes it out.
    #[schema(minimum = 0, maximum = 1000000)]
    quantity: i64,
}

/// Put so many of a SKU into one's cart
#[utoipa::path(
    put, path = "/v1/cart/lines/{sku}", tag = "cart", security(("bearer" = ["buyer"])),
    params(("sku" = String, Path)), request_body = QuantityRequest,
    extensions(("x-if-match" = json!(true)), ("x-problems" = json!(["full"]))),
    responses((status = 200, description = "The cart", body = schema::Cart, headers(("ETag" = String)))),
)]
async fn put_in_cart(
    State(commerce): State<Arc<Commerce>>,
    caller: Caller,
    Path(sku): Path<String>,
    if_match: IfMatch,
    Body(body): Body<QuantityRequest>,
) -> Result<Tagged<Cart>> {
    let expected = if_match.expected(commerce.shop.cart(&caller.subject).await?.version)?;
    let cart = commerce.shop.put_in_cart(&caller.subject, &sku, body.quantity, expected).await?;
    Ok(Tagged::ok(cart.version, cart))
}

/// How a cart becomes an order.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct CheckoutRequest {
    /// Where to; the default address if it is missing.
    address: Option<AddressRequest>,
    /// A coupon that the buyer holds.
    coupon: Option<String>,
    /// What the buyer wants to say.
    #[serde(default)]
    #[schema(max_length = 500)]
    remark: String,
}

/// Make an order of one's cart: once, however often it is asked for
#[utoipa::path(
    post, path = "/v1/cart/checkout", tag = "cart", security(("bearer" = ["buyer"])), request_body = CheckoutRequest,
    extensions(("x-problems" = json!([
        "empty-cart", "out-of-stock", "limit-per-buyer", "currency-mismatch", "coupon-refused", "unknown-reference",
        "amount-too-large", "full"
    ]))),
    responses((status = 201, description = "The order", body = schema::Order, headers(("ETag" = String)))),
)]
async fn checkout(
    State(commerce): State<Arc<Commerce>>,
    caller: Caller,
    call: Once,
    Body(body): Body<CheckoutRequest>,
) -> Result<Response> {
    super::bounded("remark", &body.remark, 0, 500)?;
    let address = body.address.map(AddressRequest::checked).transpose()?;
    let checkout = Checkout { key: call.key.clone(), address, coupon: body.coupon, remark: body.remark };
    Ok(once(call, |note| commerce.shop.checkout_noted(&caller.subject, &checkout, Some(note))).await)
}
