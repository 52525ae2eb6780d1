//! The log of what users did: their own to read, the service's to write.

use super::{Listing, Me, Social, schema};
use crate::shared::cursor::{Page, Paging};
use crate::shared::extract::{Body, Path};
use crate::shared::idempotency::OnceKey;
use crate::shared::problem::Result;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use social::{Id, Operation};
use std::sync::Arc;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes() -> OpenApiRouter<Arc<Social>> {
    OpenApiRouter::default().routes(routes!(operations)).routes(routes!(operations_of, note_operation))
}

/// What the caller did, and what was done to what is the caller's, the latest first
#[utoipa::path(
    get, path = "/v1/operations", tag = "operations", security(("bearer" = ["user"])), params(Paging),
    responses((status = 200, description = "A page of it", body = Page<schema::Operation>)),
)]
async fn operations(State(social): State<Arc<Social>>, Me(me): Me, list: Listing) -> Result<Page<Operation>> {
    Ok(list.page(social.network.operations(me, &list.wanted).await?))
}

/// What a user did, and what was done to what is the user's, the latest first
#[utoipa::path(
    get, path = "/v1/users/{id}/operations", tag = "operations", security(("bearer" = ["moderator", "operator"])),
    params(("id" = String, Path), Paging),
    responses((status = 200, description = "A page of it", body = Page<schema::Operation>)),
)]
async fn operations_of(
    State(social): State<Arc<Social>>,
    Path(id): Path<Id>,
    list: Listing,
) -> Result<Page<Operation>> {
    Ok(list.page(social.network.operations(id, &list.wanted).await?))
}

/// Something that a user did.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct OperationRequest {
    /// What kind of thing, e.g. `login`.
    #[schema(min_length = 1, max_length = 50)]
    action: String,
    /// More about it.
    #[serde(default)]
    #[schema(max_length = 500)]
    detail: String,
}

/// What was noted.
#[derive(Serialize, ToSchema)]
struct Noted {
    /// The entry's id.
    #[schema(value_type = String)]
    id: Id,
}

/// Note what a user did
#[utoipa::path(
    post, path = "/v1/users/{id}/operations", tag = "operations", security(("bearer" = ["operator"])),
    params(("id" = String, Path)), request_body = OperationRequest,
    responses((status = 201, description = "It is noted", body = Noted)),
)]
async fn note_operation(
    State(social): State<Arc<Social>>,
    Path(user): Path<Id>,
    OnceKey(key): OnceKey,
    Body(body): Body<OperationRequest>,
) -> Result<Response> {
    let id = social.network.log_operation_once(user, &body.action, &body.detail, &key).await?;
    Ok((StatusCode::CREATED, Json(Noted { id })).into_response())
}
