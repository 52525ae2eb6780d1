//! Articles of the blog: everybody reads what is published, authors write, users comment.

use super::authors::{Writer, Writing, writer};
use super::{Listing, schema};
use crate::shared::auth::{Caller, Role};
use crate::shared::cursor::{Page, Paging};
use crate::shared::etag::{IfMatch, Tagged};
use crate::shared::extract::{Body, Path, Query};
use crate::shared::idempotency::OnceKey;
use crate::shared::problem::{INVALID_QUERY, Problem, Result};
use axum::Json;
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use social::{Article, ArticleChange, By, Id, NewArticle, Of, Remark};
use std::sync::Arc;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes() -> OpenApiRouter<Arc<Writing>> {
    OpenApiRouter::default()
        .routes(routes!(articles, write))
        .routes(routes!(article))
        .routes(routes!(edit))
        .routes(routes!(publish))
        .routes(routes!(drafts))
        .routes(routes!(draft))
        .routes(routes!(remarks, add_remark))
        .routes(routes!(hide_remark))
}

/// Which articles.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ArticlesQuery {
    /// Those of a tag alone.
    tag: Option<String>,
    /// Those of an author alone.
    #[param(value_type = Option<String>, pattern = "^[0-9a-f]{24}$")]
    author: Option<Id>,
    /// How many items (default 20, at most 100).
    #[param(minimum = 1, maximum = 100)]
    limit: Option<i64>,
    /// Where to go on: `nextCursor` of the page before.
    cursor: Option<String>,
}

/// An article in a list.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    id: Id,
    author: Id,
    author_name: String,
    title: String,
    slug: String,
    tags: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    published_at: Option<social::Time>,
    comment_count: i64,
    version: i64,
}

impl From<Article> for Entry {
    fn from(article: Article) -> Entry {
        let Article { id, author, author_name, title, slug, tags, published_at, comment_count, version, .. } = article;
        Entry { id, author, author_name, title, slug, tags, published_at, comment_count, version }
    }
}

/// The newest articles
#[utoipa::path(
    get, path = "/v1/articles", tag = "blog", security(()), params(ArticlesQuery),
    responses((status = 200, description = "A page of them", body = Page<schema::ArticleEntry>)),
)]
async fn articles(
    State(writing): State<Arc<Writing>>,
    uri: Uri,
    Query(query): Query<ArticlesQuery>,
) -> Result<Page<Entry>> {
    let list = Listing::new(&uri, &Paging { limit: query.limit, cursor: query.cursor })?;
    let of = match (query.tag, query.author) {
        (None, None) => Of::All,
        (Some(tag), None) => Of::Tag(tag),
        (None, Some(author)) => Of::Author(author),
        (Some(_), Some(_)) => return Err(Problem::new(&INVALID_QUERY, "name a tag or an author, not both")),
    };
    Ok(list.page(writing.blog.newest(&of, &list.wanted).await?).map(Entry::from))
}

/// An article to write.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ArticleRequest {
    #[schema(min_length = 1, max_length = 200)]
    title: String,
    /// Its name in addresses, which no other article has.
    #[schema(min_length = 1, max_length = 100, pattern = "^[a-z0-9-]+$")]
    slug: String,
    #[schema(max_length = 200000)]
    body: String,
    #[serde(default)]
    #[schema(max_items = 10)]
    tags: Vec<String>,
}

/// Write an article: a draft, until it is published
#[utoipa::path(
    post, path = "/v1/articles", tag = "blog", security(("bearer" = ["author"])), request_body = ArticleRequest,
    extensions(("x-problems" = json!(["already-exists", "not-found"]))),
    responses((status = 201, description = "The draft", body = schema::Article, headers(("ETag" = String)))),
)]
async fn write(
    State(writing): State<Arc<Writing>>,
    Writer(author): Writer,
    OnceKey(key): OnceKey,
    Body(body): Body<ArticleRequest>,
) -> Result<Response> {
    let new = NewArticle { title: body.title, slug: body.slug, body: body.body, tags: body.tags };
    let id = writing.blog.write_once(author, &new, &key).await?;
    let article = writing.blog.own_article(author, id).await?;
    let at = HeaderValue::from_str(&format!("/v1/drafts/{id}")).expect("an id is hex digits");
    let tagged = Tagged { status: StatusCode::CREATED, version: article.version, body: article };
    Ok(([(header::LOCATION, at)], tagged).into_response())
}

/// A published article with its newest comments
#[utoipa::path(
    get, path = "/v1/articles/by-slug/{slug}", tag = "blog", security(()), params(("slug" = String, Path)),
    responses((status = 200, description = "It", body = schema::Article)),
)]
async fn article(State(writing): State<Arc<Writing>>, Path(slug): Path<String>) -> Result<Json<Article>> {
    writing.blog.article(&slug).await?.map(Json).ok_or_else(Problem::not_found)
}

/// What changes of an article; what is left out stays.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ArticleEdit {
    #[schema(min_length = 1, max_length = 200)]
    title: Option<String>,
    #[schema(max_length = 200000)]
    body: Option<String>,
    #[schema(max_items = 10)]
    tags: Option<Vec<String>>,
}

/// Edit one's own article, draft or not
#[utoipa::path(
    patch, path = "/v1/articles/{id}", tag = "blog", security(("bearer" = ["author"])), params(("id" = String, Path)),
    request_body = ArticleEdit, extensions(("x-if-match" = json!(true)), ("x-problems" = json!(["not-allowed"]))),
    responses((status = 200, description = "The article", body = schema::Article, headers(("ETag" = String)))),
)]
async fn edit(
    State(writing): State<Arc<Writing>>,
    Writer(author): Writer,
    Path(id): Path<Id>,
    if_match: IfMatch,
    Body(body): Body<ArticleEdit>,
) -> Result<Tagged<Article>> {
    let version = if_match.expected(writing.blog.own_article(author, id).await?.version)?;
    let change = ArticleChange { title: body.title, body: body.body, tags: body.tags, version };
    let article = writing.blog.edit(author, id, &change).await?;
    Ok(Tagged::ok(article.version, article))
}

/// Show one's own draft to everybody
#[utoipa::path(
    put, path = "/v1/articles/{id}/published", tag = "blog", security(("bearer" = ["author"])),
    params(("id" = String, Path)), extensions(("x-problems" = json!(["not-allowed"]))),
    responses((status = 204, description = "It is published")),
)]
async fn publish(
    State(writing): State<Arc<Writing>>,
    Writer(author): Writer,
    Path(id): Path<Id>,
) -> Result<StatusCode> {
    writing.blog.publish(author, id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The caller's drafts, the newest first
#[utoipa::path(
    get, path = "/v1/drafts", tag = "blog", security(("bearer" = ["author"])), params(Paging),
    responses((status = 200, description = "A page of them", body = Page<schema::ArticleEntry>)),
)]
async fn drafts(State(writing): State<Arc<Writing>>, Writer(author): Writer, list: Listing) -> Result<Page<Entry>> {
    Ok(list.page(writing.blog.drafts(author, &list.wanted).await?).map(Entry::from))
}

/// An article of the caller's own, draft or not
#[utoipa::path(
    get, path = "/v1/drafts/{id}", tag = "blog", security(("bearer" = ["author"])), params(("id" = String, Path)),
    extensions(("x-problems" = json!(["not-allowed"]))),
    responses((status = 200, description = "It", body = schema::Article, headers(("ETag" = String)))),
)]
async fn draft(
    State(writing): State<Arc<Writing>>,
    Writer(author): Writer,
    Path(id): Path<Id>,
) -> Result<Tagged<Article>> {
    let article = writing.blog.own_article(author, id).await?;
    Ok(Tagged::ok(article.version, article))
}

/// The comments on a published article, the newest first
#[utoipa::path(
    get, path = "/v1/articles/{id}/comments", tag = "blog", security(()), params(("id" = String, Path), Paging),
    responses((status = 200, description = "A page of them", body = Page<schema::Remark>)),
)]
async fn remarks(State(writing): State<Arc<Writing>>, Path(id): Path<Id>, list: Listing) -> Result<Page<Remark>> {
    Ok(list.page(writing.blog.comments(id, &list.wanted).await?))
}

/// A comment to make.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct RemarkRequest {
    #[schema(min_length = 1, max_length = 1000)]
    text: String,
}

/// What was made.
#[derive(Serialize, ToSchema)]
struct Made {
    /// The comment's id.
    #[schema(value_type = String)]
    id: Id,
}

/// Comment on an article, by the caller's name of the day
#[utoipa::path(
    post, path = "/v1/articles/{id}/comments", tag = "blog", security(("bearer" = ["user", "author"])),
    params(("id" = String, Path)), request_body = RemarkRequest,
    responses((status = 201, description = "The comment", body = Made)),
)]
async fn add_remark(
    State(writing): State<Arc<Writing>>,
    caller: Caller,
    Path(id): Path<Id>,
    OnceKey(key): OnceKey,
    Body(body): Body<RemarkRequest>,
) -> Result<Response> {
    let name = writing.name_of(&caller).await?;
    let id = writing.blog.comment_once(id, &name, &body.text, &key).await?;
    Ok((StatusCode::CREATED, Json(Made { id })).into_response())
}

/// Take a comment out of sight: on one's own article, or as a moderator on all
#[utoipa::path(
    put, path = "/v1/article-comments/{id}/hidden", tag = "blog", security(("bearer" = ["author", "moderator"])),
    params(("id" = String, Path)), extensions(("x-problems" = json!(["not-allowed"]))),
    responses((status = 204, description = "Nobody sees it")),
)]
async fn hide_remark(State(writing): State<Arc<Writing>>, caller: Caller, Path(id): Path<Id>) -> Result<StatusCode> {
    let by = if caller.is_any(&[Role::Moderator]) { By::Moderator } else { By::Author(writer(&caller)?) };
    writing.blog.hide_comment(by, id).await?;
    Ok(StatusCode::NO_CONTENT)
}
