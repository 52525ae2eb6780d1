//! Who writes the blog.

use super::schema;
use crate::shared::auth::{Caller, Role, unauthenticated};
use crate::shared::extract::{Body, Path};
use crate::shared::problem::{FORBIDDEN, Problem, Result};
use axum::Json;
use axum::extract::{FromRequestParts, State};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use social::{Author, Blog, Id, Network, Time};
use std::sync::Arc;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// What the blog's routes share.
pub(super) struct Writing {
    pub(super) blog: Blog,
    /// Whose users comment.
    pub(super) network: Option<Network>,
}

pub(super) fn routes() -> OpenApiRouter<Arc<Writing>> {
    OpenApiRouter::default().routes(routes!(add_author)).routes(routes!(author_page, change_author))
}

/// The author who asks, as a handler's argument.
pub(super) struct Writer(pub(super) Id);

impl<S: Send + Sync> FromRequestParts<S> for Writer {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Writer> {
        writer(parts.extensions.get::<Caller>().ok_or_else(unauthenticated)?).map(Writer)
    }
}

/// The author who asks.
pub(super) fn writer(caller: &Caller) -> Result<Id> {
    let refused = || Problem::new(&FORBIDDEN, "the token's subject is not an author of the blog");
    caller.subject.parse().map_err(|_| refused())
}

impl Writing {
    /// By which name a caller comments: a user's in the network, or an author's.
    pub(super) async fn name_of(&self, caller: &Caller) -> Result<String> {
        let id = writer(caller)?;
        if caller.is_any(&[Role::Author]) {
            return Ok(self.blog.author(id).await?.name);
        }
        let refused = || Problem::new(&FORBIDDEN, "there is no network here whose users could comment");
        Ok(self.network.as_ref().ok_or_else(refused)?.profile(id).await?.username)
    }
}

/// Somebody to write.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct AuthorRequest {
    #[schema(min_length = 1, max_length = 40)]
    name: String,
    /// An address that no other author has; it is shown to nobody.
    #[schema(min_length = 3, max_length = 254, pattern = "^[^@]+@.+$")]
    email: String,
}

/// An author, as everybody sees one.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AuthorView {
    id: Id,
    name: String,
    article_count: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_published: Option<Time>,
}

impl From<Author> for AuthorView {
    fn from(author: Author) -> AuthorView {
        let Author { id, name, article_count, last_published, .. } = author;
        AuthorView { id, name, article_count, last_published }
    }
}

/// Sign an author up
#[utoipa::path(
    post, path = "/v1/authors", tag = "blog", security(("bearer" = ["operator"])), request_body = AuthorRequest,
    extensions(("x-problems" = json!(["already-exists"]))),
    responses((status = 201, description = "The author; a token's subject is its id", body = schema::BlogAuthor)),
)]
async fn add_author(State(writing): State<Arc<Writing>>, Body(body): Body<AuthorRequest>) -> Result<Response> {
    let id = writing.blog.add_author(&body.name, &body.email).await?;
    let at = HeaderValue::from_str(&format!("/v1/authors/{id}")).expect("an id is hex digits");
    let author = AuthorView::from(writing.blog.author(id).await?);
    Ok((StatusCode::CREATED, [(header::LOCATION, at)], Json(author)).into_response())
}

/// An author
#[utoipa::path(
    get, path = "/v1/authors/{id}", tag = "blog", security(()), params(("id" = String, Path)),
    responses((status = 200, description = "It", body = schema::BlogAuthor)),
)]
async fn author_page(State(writing): State<Arc<Writing>>, Path(id): Path<Id>) -> Result<Json<AuthorView>> {
    Ok(Json(writing.blog.author(id).await?.into()))
}

/// What changes of an author.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct AuthorChange {
    /// The name, as it stands on all articles from then on.
    #[schema(min_length = 1, max_length = 40)]
    name: String,
}

/// Change one's own name, or an author's
#[utoipa::path(
    patch, path = "/v1/authors/{id}", tag = "blog", security(("bearer" = ["author", "operator"])),
    params(("id" = String, Path)), request_body = AuthorChange,
    responses((status = 200, description = "The author now", body = schema::BlogAuthor)),
)]
async fn change_author(
    State(writing): State<Arc<Writing>>,
    caller: Caller,
    Path(id): Path<Id>,
    Body(body): Body<AuthorChange>,
) -> Result<Json<AuthorView>> {
    if !caller.is_any(&[Role::Operator]) && writer(&caller)? != id {
        return Err(Problem::not_found());
    }
    writing.blog.rename_author(id, &body.name).await?;
    Ok(Json(writing.blog.author(id).await?.into()))
}
