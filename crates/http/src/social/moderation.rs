//! What moderators take down, and put back.

use super::Social;
use crate::shared::auth::Caller;
use crate::shared::extract::{Body, Path};
use crate::shared::problem::Result;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Deserialize;
use social::Id;
use std::sync::Arc;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes() -> OpenApiRouter<Arc<Social>> {
    OpenApiRouter::default().routes(routes!(hide_post, restore_post)).routes(routes!(remove_comment))
}

/// Why something is taken down.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Reason {
    #[schema(min_length = 1, max_length = 500)]
    why: String,
}

/// Hide a post from everybody
#[utoipa::path(
    put, path = "/v1/posts/{id}/hidden", tag = "moderation", security(("bearer" = ["moderator"])),
    params(("id" = String, Path)), request_body = Reason, responses((status = 204, description = "Nobody sees it")),
)]
async fn hide_post(
    State(social): State<Arc<Social>>,
    caller: Caller,
    Path(id): Path<Id>,
    Body(reason): Body<Reason>,
) -> Result<StatusCode> {
    social.network.hide_post(&caller.subject, id, &reason.why).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Show a hidden post again
#[utoipa::path(
    delete, path = "/v1/posts/{id}/hidden", tag = "moderation", security(("bearer" = ["moderator"])),
    params(("id" = String, Path)), responses((status = 204, description = "It is as it was")),
)]
async fn restore_post(State(social): State<Arc<Social>>, caller: Caller, Path(id): Path<Id>) -> Result<StatusCode> {
    social.network.restore_post(&caller.subject, id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Take a comment down with its replies
#[utoipa::path(
    post, path = "/v1/comments/{id}/removal", tag = "moderation", security(("bearer" = ["moderator"])),
    params(("id" = String, Path)), request_body = Reason, responses((status = 204, description = "It is gone")),
)]
async fn remove_comment(
    State(social): State<Arc<Social>>,
    caller: Caller,
    Path(id): Path<Id>,
    Body(reason): Body<Reason>,
) -> Result<StatusCode> {
    social.network.remove_comment(&caller.subject, id, &reason.why).await?;
    Ok(StatusCode::NO_CONTENT)
}
