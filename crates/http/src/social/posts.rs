//! Posts, the feed, likes.

use super::{Listing, Me, Social, schema};
use crate::shared::cursor::{Page, Paging};
use crate::shared::etag::{IfMatch, Tagged};
use crate::shared::extract::{Body, Path};
use crate::shared::idempotency::OnceKey;
use crate::shared::problem::Result;
use axum::Json;
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use social::{Edit, Id, NewPost, Post, PostChange, Related, Visibility};
use std::sync::Arc;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes() -> OpenApiRouter<Arc<Social>> {
    OpenApiRouter::default()
        .routes(routes!(add_post))
        .routes(routes!(post, edit_post, delete_post))
        .routes(routes!(post_history))
        .routes(routes!(posts_of))
        .routes(routes!(feed))
        .routes(routes!(like, unlike))
        .routes(routes!(likers))
}

/// Who may see a post.
#[derive(Clone, Copy, Deserialize, ToSchema, Default)]
#[serde(rename_all = "camelCase")]
enum VisibilityRequest {
    #[default]
    Public,
    Followers,
    Friends,
    Private,
}

impl From<VisibilityRequest> for Visibility {
    fn from(wanted: VisibilityRequest) -> Visibility {
        match wanted {
            VisibilityRequest::Public => Visibility::Public,
            VisibilityRequest::Followers => Visibility::Followers,
            VisibilityRequest::Friends => Visibility::Friends,
            VisibilityRequest::Private => Visibility::Private,
        }
    }
}

/// Something to post.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct PostRequest {
    #[schema(min_length = 1, max_length = 5000)]
    content: String,
    /// Where pictures are.
    #[serde(default)]
    #[schema(max_items = 9)]
    images: Vec<String>,
    #[serde(default)]
    visibility: VisibilityRequest,
}

/// Post
#[utoipa::path(
    post, path = "/v1/posts", tag = "posts", security(("bearer" = ["user"])), request_body = PostRequest,
    extensions(("x-problems" = json!(["not-found"]))),
    responses((status = 201, description = "The post", body = schema::Post, headers(("ETag" = String)))),
)]
async fn add_post(
    State(social): State<Arc<Social>>,
    Me(author): Me,
    OnceKey(key): OnceKey,
    Body(body): Body<PostRequest>,
) -> Result<Response> {
    let new = NewPost { content: body.content, images: body.images, visibility: body.visibility.into() };
    let id = social.network.post_once(author, &new, &key).await?;
    let post = social.network.read_post(author, id).await?;
    let at = HeaderValue::from_str(&format!("/v1/posts/{id}")).expect("an id is hex digits");
    let tagged = Tagged { status: StatusCode::CREATED, version: post.version, body: post };
    Ok(([(header::LOCATION, at)], tagged).into_response())
}

/// A post that the caller may see
#[utoipa::path(
    get, path = "/v1/posts/{id}", tag = "posts", security(("bearer" = ["user"])), params(("id" = String, Path)),
    responses((status = 200, description = "It", body = schema::Post, headers(("ETag" = String)))),
)]
async fn post(State(social): State<Arc<Social>>, Me(me): Me, Path(id): Path<Id>) -> Result<Tagged<Post>> {
    let post = social.network.read_post(me, id).await?;
    Ok(Tagged::ok(post.version, post))
}

/// What changes of a post; what is left out stays.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct PostEdit {
    #[schema(min_length = 1, max_length = 5000)]
    content: Option<String>,
    visibility: Option<VisibilityRequest>,
}

/// Edit one's own post; what it said goes into its history
#[utoipa::path(
    patch, path = "/v1/posts/{id}", tag = "posts", security(("bearer" = ["user"])), params(("id" = String, Path)),
    request_body = PostEdit, extensions(("x-if-match" = json!(true)), ("x-problems" = json!(["not-allowed"]))),
    responses((status = 200, description = "The post", body = schema::Post, headers(("ETag" = String)))),
)]
async fn edit_post(
    State(social): State<Arc<Social>>,
    Me(author): Me,
    Path(id): Path<Id>,
    if_match: IfMatch,
    Body(body): Body<PostEdit>,
) -> Result<Tagged<Post>> {
    let version = if_match.expected(social.network.read_post(author, id).await?.version)?;
    let change = PostChange { content: body.content, visibility: body.visibility.map(Visibility::from), version };
    let post = social.network.edit_post(author, id, &change).await?;
    Ok(Tagged::ok(post.version, post))
}

/// Delete one's own post, for everybody at once
#[utoipa::path(
    delete, path = "/v1/posts/{id}", tag = "posts", security(("bearer" = ["user"])), params(("id" = String, Path)),
    extensions(("x-problems" = json!(["not-allowed"]))), responses((status = 204, description = "It is gone")),
)]
async fn delete_post(State(social): State<Arc<Social>>, Me(me): Me, Path(id): Path<Id>) -> Result<StatusCode> {
    social.network.delete_post(me, id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// What a post said before.
#[derive(Serialize, ToSchema)]
struct History<T> {
    items: Vec<T>,
}

/// What a post said before
#[utoipa::path(
    get, path = "/v1/posts/{id}/history", tag = "posts", security(("bearer" = ["user"])),
    params(("id" = String, Path)),
    responses((status = 200, description = "The last versions", body = History<schema::Edit>)),
)]
async fn post_history(
    State(social): State<Arc<Social>>,
    Me(me): Me,
    Path(id): Path<Id>,
) -> Result<Json<History<Edit>>> {
    Ok(Json(History { items: social.network.post_history(me, id).await? }))
}

/// A user's posts that the caller may see, the newest first
#[utoipa::path(
    get, path = "/v1/users/{id}/posts", tag = "posts", security(("bearer" = ["user"])),
    params(("id" = String, Path), Paging), extensions(("x-problems" = json!(["blocked"]))),
    responses((status = 200, description = "A page of them", body = Page<schema::Post>)),
)]
async fn posts_of(
    State(social): State<Arc<Social>>,
    Me(me): Me,
    Path(id): Path<Id>,
    list: Listing,
) -> Result<Page<Post>> {
    Ok(list.page(social.network.posts_of(me, id, &list.wanted).await?))
}

/// The caller's feed, the newest first
#[utoipa::path(
    get, path = "/v1/feed", tag = "posts", security(("bearer" = ["user"])), params(Paging),
    responses((status = 200, description = "A page of it", body = Page<schema::Post>)),
)]
async fn feed(State(social): State<Arc<Social>>, Me(me): Me, list: Listing) -> Result<Page<Post>> {
    Ok(list.page(social.network.feed(me, &list.wanted).await?))
}

/// Like a post
#[utoipa::path(
    put, path = "/v1/posts/{id}/like", tag = "posts", security(("bearer" = ["user"])), params(("id" = String, Path)),
    responses((status = 204, description = "The caller likes it")),
)]
async fn like(State(social): State<Arc<Social>>, Me(me): Me, Path(id): Path<Id>) -> Result<StatusCode> {
    social.network.like(me, id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Like a post no more
#[utoipa::path(
    delete, path = "/v1/posts/{id}/like", tag = "posts", security(("bearer" = ["user"])), params(("id" = String, Path)),
    responses((status = 204, description = "The caller does not like it")),
)]
async fn unlike(State(social): State<Arc<Social>>, Me(me): Me, Path(id): Path<Id>) -> Result<StatusCode> {
    social.network.unlike(me, id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Who likes a post, the newest first
#[utoipa::path(
    get, path = "/v1/posts/{id}/likers", tag = "posts", security(("bearer" = ["user"])),
    params(("id" = String, Path), Paging),
    responses((status = 200, description = "A page of them", body = Page<schema::Related>)),
)]
async fn likers(
    State(social): State<Arc<Social>>,
    Me(me): Me,
    Path(id): Path<Id>,
    list: Listing,
) -> Result<Page<Related>> {
    Ok(list.page(social.network.likers(me, id, &list.wanted).await?))
}
