//! Comments on posts, and replies to them.

use super::{Listing, Me, Social, schema};
use crate::shared::cursor::{Page, Paging};
use crate::shared::extract::{Body, Path, Query};
use crate::shared::idempotency::OnceKey;
use crate::shared::problem::{INVALID_BODY, Problem, Result};
use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use social::{Comment, Id};
use std::sync::Arc;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes() -> OpenApiRouter<Arc<Social>> {
    OpenApiRouter::default().routes(routes!(comments, add_comment)).routes(routes!(delete_comment))
}

/// Which comments.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct CommentQuery {
    /// Replies to this comment instead.
    #[param(value_type = Option<String>, pattern = "^[0-9a-f]{24}$")]
    of: Option<Id>,
    /// How many items (default 20, at most 100).
    #[param(minimum = 1, maximum = 100)]
    limit: Option<i64>,
    /// Where to go on: `nextCursor` of the page before.
    cursor: Option<String>,
}

/// Comments on a post, the newest first
#[utoipa::path(
    get, path = "/v1/posts/{id}/comments", tag = "comments", security(("bearer" = ["user"])),
    params(("id" = String, Path), CommentQuery),
    responses((status = 200, description = "A page of them", body = Page<schema::Comment>)),
)]
async fn comments(
    State(social): State<Arc<Social>>,
    Me(me): Me,
    uri: Uri,
    Path(id): Path<Id>,
    Query(query): Query<CommentQuery>,
) -> Result<Page<Comment>> {
    let list = Listing::new(&uri, &Paging { limit: query.limit, cursor: query.cursor })?;
    Ok(list.page(social.network.comments(me, id, query.of, &list.wanted).await?))
}

/// A comment to make.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct CommentRequest {
    #[schema(min_length = 1, max_length = 1000)]
    text: String,
    /// The comment that this replies to.
    #[schema(pattern = "^[0-9a-f]{24}$")]
    parent: Option<String>,
}

/// Comment on a post
#[utoipa::path(
    post, path = "/v1/posts/{id}/comments", tag = "comments", security(("bearer" = ["user"])),
    params(("id" = String, Path)), request_body = CommentRequest, extensions(("x-problems" = json!(["too-deep"]))),
    responses((status = 201, description = "The comment", body = schema::Comment)),
)]
async fn add_comment(
    State(social): State<Arc<Social>>,
    Me(me): Me,
    Path(id): Path<Id>,
    OnceKey(key): OnceKey,
    Body(body): Body<CommentRequest>,
) -> Result<Response> {
    let parent = body.parent.map(|parent| parent.parse()).transpose();
    let parent = parent.map_err(|_| Problem::new(&INVALID_BODY, "'parent' must be a comment's id"))?;
    let comment = social.network.comment_once(me, id, &body.text, parent, &key).await?;
    Ok((StatusCode::CREATED, Json(comment)).into_response())
}

/// Delete a comment with its replies: one's own, or on one's own post
#[utoipa::path(
    delete, path = "/v1/comments/{id}", tag = "comments", security(("bearer" = ["user"])),
    params(("id" = String, Path)), extensions(("x-problems" = json!(["not-allowed"]))),
    responses((status = 204, description = "It is gone")),
)]
async fn delete_comment(State(social): State<Arc<Social>>, Me(me): Me, Path(id): Path<Id>) -> Result<StatusCode> {
    social.network.delete_comment(me, id).await?;
    Ok(StatusCode::NO_CONTENT)
}
