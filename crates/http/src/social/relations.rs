//! Follows, blocks and mutes of the caller; who follows whom.

use super::{Social, page, paging, schema, unblocked, user};
use crate::shared::auth::Caller;
use crate::shared::cursor::{Page, Paging};
use crate::shared::extract::{Path, Query};
use crate::shared::problem::{INVALID_QUERY, Problem, Result};
use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, Uri};
use serde::Deserialize;
use social::{Id, Related, Standing};
use std::collections::BTreeMap;
use std::sync::Arc;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// The most users whose standing is asked for at once.
const MAX_STANDINGS: usize = 100;

pub(super) fn routes() -> OpenApiRouter<Arc<Social>> {
    OpenApiRouter::default()
        .routes(routes!(follow, unfollow))
        .routes(routes!(followers))
        .routes(routes!(following))
        .routes(routes!(standings))
        .routes(routes!(block, unblock))
        .routes(routes!(blocks))
        .routes(routes!(mute, unmute))
        .routes(routes!(mutes))
}

/// Follow a user
#[utoipa::path(
    put, path = "/v1/following/{id}", tag = "relations", security(("bearer" = ["user"])), params(("id" = String, Path)),
    extensions(("x-problems" = json!(["self-relation", "blocked"]))),
    responses((status = 204, description = "The caller follows")),
)]
async fn follow(State(social): State<Arc<Social>>, caller: Caller, Path(id): Path<Id>) -> Result<StatusCode> {
    social.network.follow(user(&caller)?, id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Follow a user no more
#[utoipa::path(
    delete, path = "/v1/following/{id}", tag = "relations", security(("bearer" = ["user"])),
    params(("id" = String, Path)), responses((status = 204, description = "The caller does not follow")),
)]
async fn unfollow(State(social): State<Arc<Social>>, caller: Caller, Path(id): Path<Id>) -> Result<StatusCode> {
    social.network.unfollow(user(&caller)?, id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Who follows a user, the newest first
#[utoipa::path(
    get, path = "/v1/users/{id}/followers", tag = "relations", security(("bearer" = ["user"])),
    params(("id" = String, Path), Paging),
    responses((status = 200, description = "A page of them", body = Page<schema::Related>)),
)]
async fn followers(
    State(social): State<Arc<Social>>,
    caller: Caller,
    uri: Uri,
    Path(id): Path<Id>,
    Query(at): Query<Paging>,
) -> Result<Page<Related>> {
    unblocked(&social, user(&caller)?, id).await?;
    page(&uri, &at, social.network.followers(id, &paging(&at, &uri)?).await?)
}

/// Whom a user follows, the newest first
#[utoipa::path(
    get, path = "/v1/users/{id}/following", tag = "relations", security(("bearer" = ["user"])),
    params(("id" = String, Path), Paging),
    responses((status = 200, description = "A page of them", body = Page<schema::Related>)),
)]
async fn following(
    State(social): State<Arc<Social>>,
    caller: Caller,
    uri: Uri,
    Path(id): Path<Id>,
    Query(at): Query<Paging>,
) -> Result<Page<Related>> {
    unblocked(&social, user(&caller)?, id).await?;
    page(&uri, &at, social.network.following(id, &paging(&at, &uri)?).await?)
}

/// Whose standing.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct StandingQuery {
    /// Ids of up to 100 users, with commas between.
    #[param(pattern = "^[0-9a-f]{24}(,[0-9a-f]{24}){0,99}$")]
    users: String,
}

/// What some users are to the caller
#[utoipa::path(
    get, path = "/v1/standings", tag = "relations", security(("bearer" = ["user"])), params(StandingQuery),
    responses((status = 200, description = "By id", body = BTreeMap<String, schema::Standing>)),
)]
async fn standings(
    State(social): State<Arc<Social>>,
    caller: Caller,
    Query(query): Query<StandingQuery>,
) -> Result<Json<BTreeMap<String, Standing>>> {
    let ids: Result<Vec<Id>, _> = query.users.split(',').map(str::parse).collect();
    let ids = ids.ok().filter(|ids| ids.len() <= MAX_STANDINGS);
    let ids = ids.ok_or_else(|| Problem::new(&INVALID_QUERY, "'users' must be up to 100 ids with commas between"))?;
    let found = social.network.standings(user(&caller)?, &ids).await?;
    Ok(Json(found.into_iter().map(|(id, standing)| (id.to_string(), standing)).collect()))
}

/// Block a user: all relations between the two end
#[utoipa::path(
    put, path = "/v1/blocks/{id}", tag = "relations", security(("bearer" = ["user"])), params(("id" = String, Path)),
    extensions(("x-problems" = json!(["self-relation"]))), responses((status = 204, description = "It is so")),
)]
async fn block(State(social): State<Arc<Social>>, caller: Caller, Path(id): Path<Id>) -> Result<StatusCode> {
    social.network.block(user(&caller)?, id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Block a user no more
#[utoipa::path(
    delete, path = "/v1/blocks/{id}", tag = "relations", security(("bearer" = ["user"])), params(("id" = String, Path)),
    responses((status = 204, description = "It is so")),
)]
async fn unblock(State(social): State<Arc<Social>>, caller: Caller, Path(id): Path<Id>) -> Result<StatusCode> {
    social.network.unblock(user(&caller)?, id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Whom the caller has blocked, the newest first
#[utoipa::path(
    get, path = "/v1/blocks", tag = "relations", security(("bearer" = ["user"])), params(Paging),
    responses((status = 200, description = "A page of them", body = Page<schema::Related>)),
)]
async fn blocks(
    State(social): State<Arc<Social>>,
    caller: Caller,
    uri: Uri,
    Query(at): Query<Paging>,
) -> Result<Page<Related>> {
    page(&uri, &at, social.network.blocks(user(&caller)?, &paging(&at, &uri)?).await?)
}

/// Mute a user: the user's posts leave the caller's feed
#[utoipa::path(
    put, path = "/v1/mutes/{id}", tag = "relations", security(("bearer" = ["user"])), params(("id" = String, Path)),
    extensions(("x-problems" = json!(["self-relation"]))), responses((status = 204, description = "It is so")),
)]
async fn mute(State(social): State<Arc<Social>>, caller: Caller, Path(id): Path<Id>) -> Result<StatusCode> {
    social.network.mute(user(&caller)?, id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Mute a user no more
#[utoipa::path(
    delete, path = "/v1/mutes/{id}", tag = "relations", security(("bearer" = ["user"])), params(("id" = String, Path)),
    responses((status = 204, description = "It is so")),
)]
async fn unmute(State(social): State<Arc<Social>>, caller: Caller, Path(id): Path<Id>) -> Result<StatusCode> {
    social.network.unmute(user(&caller)?, id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Whom the caller has muted, the newest first
#[utoipa::path(
    get, path = "/v1/mutes", tag = "relations", security(("bearer" = ["user"])), params(Paging),
    responses((status = 200, description = "A page of them", body = Page<schema::Related>)),
)]
async fn mutes(
    State(social): State<Arc<Social>>,
    caller: Caller,
    uri: Uri,
    Query(at): Query<Paging>,
) -> Result<Page<Related>> {
    page(&uri, &at, social.network.mutes(user(&caller)?, &paging(&at, &uri)?).await?)
}
