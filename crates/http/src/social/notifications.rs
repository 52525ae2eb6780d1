//! The caller's notifications, and live updates.

use super::{Listing, Me, Social, schema};
use crate::shared::cursor::{Page, Paging};
use crate::shared::extract::Body;
use crate::shared::problem::{INVALID_BODY, INVALID_HEADER, Problem, Result};
use crate::shared::sse;
use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::sse::Event;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use social::{Error, Notification};
use std::sync::Arc;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes() -> OpenApiRouter<Arc<Social>> {
    OpenApiRouter::default()
        .routes(routes!(notifications))
        .routes(routes!(unread))
        .routes(routes!(mark_read))
        .routes(routes!(updates))
}

/// What happened to the caller, the newest first
#[utoipa::path(
    get, path = "/v1/notifications", tag = "notifications", security(("bearer" = ["user"])), params(Paging),
    responses((status = 200, description = "A page of them", body = Page<schema::Notification>)),
)]
async fn notifications(State(social): State<Arc<Social>>, Me(me): Me, list: Listing) -> Result<Page<Notification>> {
    Ok(list.page(social.network.notifications(me, &list.wanted).await?))
}

/// How many.
#[derive(Serialize, ToSchema)]
struct Count {
    count: u64,
}

/// How many notifications were not read
#[utoipa::path(
    get, path = "/v1/notifications/unread", tag = "notifications", security(("bearer" = ["user"])),
    responses((status = 200, description = "The number", body = Count)),
)]
async fn unread(State(social): State<Arc<Social>>, Me(me): Me) -> Result<Json<Count>> {
    Ok(Json(Count { count: social.network.unread_notifications(me).await? }))
}

/// Up to where.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ReadRequest {
    /// The newest notification that was read.
    #[schema(pattern = "^[0-9a-f]{24}$")]
    up_to: String,
}

/// Mark notifications as read, up to one of them
#[utoipa::path(
    post, path = "/v1/notifications/read", tag = "notifications", security(("bearer" = ["user"])),
    request_body = ReadRequest, responses((status = 200, description = "How many are newly read", body = Count)),
)]
async fn mark_read(
    State(social): State<Arc<Social>>,
    Me(me): Me,
    Body(body): Body<ReadRequest>,
) -> Result<Json<Count>> {
    let up_to = body.up_to.parse().map_err(|_| Problem::new(&INVALID_BODY, "'upTo' must be a notification's id"))?;
    Ok(Json(Count { count: social.network.read_notifications(me, up_to).await? }))
}

/// Live updates: notifications, posts and messages, as they come, whichever process made them
///
/// Each has an id; send the last one as `Last-Event-ID` to be told what was missed. An update is a hint: whoever misses one
/// finds everything in the lists. `missed` says that some were dropped.
#[utoipa::path(
    get, path = "/v1/updates", tag = "notifications", security(("bearer" = ["user"])),
    params(("Last-Event-ID" = Option<String>, Header, description = "The last update that was seen")),
    extensions(("x-stream" = json!(true)), ("x-problems" = json!(["invalid-header"]))),
    responses((status = 200, description = "The stream", body = schema::Update, content_type = "text/event-stream")),
)]
async fn updates(State(social): State<Arc<Social>>, Me(me): Me, headers: HeaderMap) -> Result<Response> {
    let after = sse::last_event_id(&headers)?;
    let updates = social.network.updates(me, after).await.map_err(|error| match error {
        Error::InvalidCursor(_) => {
            Problem::new(&INVALID_HEADER, "Last-Event-ID is not the id of an update that was sent")
        }
        other => other.into(),
    })?;
    let stream = futures_util::stream::unfold(updates, |mut updates| async move {
        let update = updates.next().await;
        // An id alone is no event: it only says where the reader is (WHATWG HTML, 9.2.6).
        let event = Event::default().id(update.place);
        let event = match update.change {
            Some(change) => event.event("update").json_data(change).expect("a change is plain data"),
            None => event,
        };
        Some((event, updates))
    });
    Ok(sse::answer(stream).into_response())
}
