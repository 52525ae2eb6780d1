//! Parcels of orders, and what carriers report of them: late, twice and out of order.

use super::orders::visible;
use super::{All, Commerce, error, schema};
use crate::shared::auth::Caller;
use crate::shared::etag::IfMatch;
use crate::shared::extract::{Body, Path};
use crate::shared::idempotency::OnceKey;
use crate::shared::problem::{INVALID_BODY, Problem, Result};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use commerce::{NewParcel, Parcel, Time, TrackEvent};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// How many days of a parcel's track are shown.
const TRACK_DAYS: usize = 30;

pub(super) fn routes() -> OpenApiRouter<Arc<Commerce>> {
    OpenApiRouter::default().routes(routes!(parcels, ship)).routes(routes!(track, report_track))
}

/// A parcel to send.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ParcelRequest {
    #[schema(min_length = 1, max_length = 64)]
    carrier: String,
    #[schema(min_length = 1, max_length = 64)]
    tracking_number: String,
}

/// Send a parcel of an order; the first one makes the order shipped
#[utoipa::path(
    post, path = "/v1/orders/{id}/parcels", tag = "logistics", security(("bearer" = ["merchant"])),
    params(("id" = String, Path)), request_body = ParcelRequest,
    extensions(("x-if-match" = json!(true)), ("x-problems" = json!(["illegal-move", "full", "refund-in-progress"]))),
    responses((status = 201, description = "The parcel", body = schema::Parcel)),
)]
async fn ship(
    State(commerce): State<Arc<Commerce>>,
    caller: Caller,
    Path(id): Path<String>,
    if_match: IfMatch,
    OnceKey(key): OnceKey,
    Body(body): Body<ParcelRequest>,
) -> Result<Response> {
    super::bounded("carrier", &body.carrier, 1, 64)?;
    super::bounded("trackingNumber", &body.tracking_number, 1, 64)?;
    let expected = if_match.expected(visible(&commerce, &caller, &id).await?.version)?;
    let new = NewParcel { key, carrier: body.carrier, tracking_number: body.tracking_number };
    let parcel = commerce.shop.ship(&id, &new, &caller.subject, expected).await?;
    Ok((StatusCode::CREATED, Json(parcel)).into_response())
}

/// The parcels of an order
#[utoipa::path(
    get, path = "/v1/orders/{id}/parcels", tag = "logistics", security(("bearer" = ["buyer", "merchant", "operator"])),
    params(("id" = String, Path)), responses((status = 200, description = "All", body = All<schema::Parcel>)),
)]
async fn parcels(
    State(commerce): State<Arc<Commerce>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<All<Parcel>>> {
    visible(&commerce, &caller, &id).await?;
    Ok(Json(All { items: commerce.shop.parcels_of(&id).await? }))
}

/// Something that happened to a parcel.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct EventRequest {
    /// The carrier's id of the event; the same one is one event.
    #[schema(min_length = 1, max_length = 64)]
    id: String,
    #[schema(format = DateTime)]
    time: String,
    #[schema(min_length = 1, max_length = 64)]
    status: String,
    #[serde(default)]
    #[schema(max_length = 200)]
    location: String,
}

/// What a carrier reports.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct TrackRequest {
    #[schema(min_items = 1, max_items = 100)]
    events: Vec<EventRequest>,
}

/// How many.
#[derive(Serialize, ToSchema)]
struct NewEvents {
    /// How many of the events were new.
    new: u64,
}

/// Note what a carrier reports of a parcel
#[utoipa::path(
    post, path = "/v1/parcels/{id}/track", tag = "logistics", security(("bearer" = ["merchant", "operator"])),
    params(("id" = String, Path)), request_body = TrackRequest, extensions(("x-problems" = json!(["full"]))),
    responses((status = 200, description = "How many were new", body = NewEvents)),
)]
async fn report_track(
    State(commerce): State<Arc<Commerce>>,
    Path(id): Path<String>,
    Body(body): Body<TrackRequest>,
) -> Result<Json<NewEvents>> {
    let mut events = Vec::new();
    for event in body.events {
        super::bounded("id", &event.id, 1, 64)?;
        super::bounded("status", &event.status, 1, 64)?;
        super::bounded("location", &event.location, 0, 200)?;
        let time = serde_json::from_value::<Time>(Value::String(event.time));
        let time = time.map_err(|_| Problem::new(&INVALID_BODY, "'time' must be a time of RFC 3339"))?;
        events.push(TrackEvent { id: event.id, time, status: event.status, location: event.location });
    }
    let new = commerce.shop.track(&id, &events).await?;
    Ok(Json(NewEvents { new: new as u64 }))
}

/// The track of a parcel, the latest event first
#[utoipa::path(
    get, path = "/v1/parcels/{id}/track", tag = "logistics", security(("bearer" = ["buyer", "merchant", "operator"])),
    params(("id" = String, Path)),
    responses((status = 200, description = "The latest thirty days with events", body = All<schema::TrackEvent>)),
)]
async fn track(
    State(commerce): State<Arc<Commerce>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<All<TrackEvent>>> {
    let parcel = commerce.shop.parcel(&id).await?;
    visible(&commerce, &caller, &parcel.order_id).await?;
    let items = commerce.shop.track_of(&id, TRACK_DAYS).await.map_err(error::in_query)?;
    Ok(Json(All { items }))
}
