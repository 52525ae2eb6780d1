//! Follows, blocks and mutes of the caller; who follows whom.

use super::{Listing, Me, Social, schema, unblocked};
use crate::shared::cursor::{Page, Paging};
use crate::shared::extract::{Path, Query};
use crate::shared::problem::{INVALID_QUERY, Problem, Result};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use social::{Card, Circle, Id, Related, Standing};
use std::collections::BTreeMap;
use std::sync::Arc;
use utoipa::{IntoParams, ToSchema};
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
        .routes(routes!(mutual))
        .routes(routes!(mutual_counts))
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
async fn follow(State(social): State<Arc<Social>>, Me(me): Me, Path(id): Path<Id>) -> Result<StatusCode> {
    social.network.follow(me, id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Follow a user no more
#[utoipa::path(
    delete, path = "/v1/following/{id}", tag = "relations", security(("bearer" = ["user"])),
    params(("id" = String, Path)), responses((status = 204, description = "The caller does not follow")),
)]
async fn unfollow(State(social): State<Arc<Social>>, Me(me): Me, Path(id): Path<Id>) -> Result<StatusCode> {
    social.network.unfollow(me, id).await?;
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
    Me(me): Me,
    Path(id): Path<Id>,
    list: Listing,
) -> Result<Page<Related>> {
    unblocked(&social, me, id).await?;
    Ok(list.page(social.network.followers(id, &list.wanted).await?))
}

/// Whom a user follows, the newest first
#[utoipa::path(
    get, path = "/v1/users/{id}/following", tag = "relations", security(("bearer" = ["user"])),
    params(("id" = String, Path), Paging),
    responses((status = 200, description = "A page of them", body = Page<schema::Related>)),
)]
async fn following(
    State(social): State<Arc<Social>>,
    Me(me): Me,
    Path(id): Path<Id>,
    list: Listing,
) -> Result<Page<Related>> {
    unblocked(&social, me, id).await?;
    Ok(list.page(social.network.following(id, &list.wanted).await?))
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
    Me(me): Me,
    Query(query): Query<StandingQuery>,
) -> Result<Json<BTreeMap<String, Standing>>> {
    let found = social.network.standings(me, &several(&query.users)?).await?;
    Ok(Json(found.into_iter().map(|(id, standing)| (id.to_string(), standing)).collect()))
}

/// The ids of a query.
fn several(users: &str) -> Result<Vec<Id>> {
    let ids: Result<Vec<Id>, _> = users.split(',').map(str::parse).collect();
    let ids = ids.ok().filter(|ids| ids.len() <= MAX_STANDINGS);
    ids.ok_or_else(|| Problem::new(&INVALID_QUERY, "'users' must be up to 100 ids with commas between"))
}

/// Which relation two users' lists are compared in.
#[derive(Clone, Copy, Default, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum CircleRequest {
    #[default]
    Friends,
    Following,
}

impl From<CircleRequest> for Circle {
    fn from(wanted: CircleRequest) -> Circle {
        match wanted {
            CircleRequest::Friends => Circle::Friends,
            CircleRequest::Following => Circle::Following,
        }
    }
}

/// In which relation.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct CircleQuery {
    /// Friends of both (the default), or followed by both.
    #[serde(default)]
    #[param(inline, required = false)]
    circle: CircleRequest,
}

/// Who is in common.
#[derive(Serialize, ToSchema)]
struct Common<T> {
    /// How many.
    count: usize,
    /// The first hundred.
    items: Vec<T>,
}

/// Whom the caller and a user have in common
#[utoipa::path(
    get, path = "/v1/users/{id}/mutual", tag = "relations", security(("bearer" = ["user"])),
    params(("id" = String, Path), CircleQuery),
    responses((status = 200, description = "Who", body = Common<schema::Card>)),
)]
async fn mutual(
    State(social): State<Arc<Social>>,
    Me(me): Me,
    Path(id): Path<Id>,
    Query(query): Query<CircleQuery>,
) -> Result<Json<Common<Card>>> {
    unblocked(&social, me, id).await?;
    let found = social.network.mutual(query.circle.into(), me, id).await?;
    let first = &found[..found.len().min(MAX_STANDINGS)];
    let mut cards = social.network.cards(first).await?;
    Ok(Json(Common { count: found.len(), items: first.iter().filter_map(|id| cards.remove(id)).collect() }))
}

/// With whom, in which relation.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct CountsQuery {
    /// Ids of up to 100 users, with commas between.
    #[param(pattern = "^[0-9a-f]{24}(,[0-9a-f]{24}){0,99}$")]
    users: String,
    /// Friends of both (the default), or followed by both.
    #[serde(default)]
    #[param(inline, required = false)]
    circle: CircleRequest,
}

/// How many the caller has in common with some users; nothing about those with whom there is a block
#[utoipa::path(
    get, path = "/v1/mutual-counts", tag = "relations", security(("bearer" = ["user"])), params(CountsQuery),
    responses((status = 200, description = "By id", body = BTreeMap<String, u64>)),
)]
async fn mutual_counts(
    State(social): State<Arc<Social>>,
    Me(me): Me,
    Query(query): Query<CountsQuery>,
) -> Result<Json<BTreeMap<String, u64>>> {
    let mut ids = several(&query.users)?;
    let standings = social.network.standings(me, &ids).await?;
    ids.retain(|id| standings.get(id).is_some_and(|standing| !standing.blocked));
    let found = social.network.mutual_counts(query.circle.into(), me, &ids).await?;
    Ok(Json(found.into_iter().map(|(id, count)| (id.to_string(), count)).collect()))
}

/// Block a user: all relations between the two end
#[utoipa::path(
    put, path = "/v1/blocks/{id}", tag = "relations", security(("bearer" = ["user"])), params(("id" = String, Path)),
    extensions(("x-problems" = json!(["self-relation"]))), responses((status = 204, description = "It is so")),
)]
async fn block(State(social): State<Arc<Social>>, Me(me): Me, Path(id): Path<Id>) -> Result<StatusCode> {
    social.network.block(me, id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Block a user no more
#[utoipa::path(
    delete, path = "/v1/blocks/{id}", tag = "relations", security(("bearer" = ["user"])), params(("id" = String, Path)),
    responses((status = 204, description = "It is so")),
)]
async fn unblock(State(social): State<Arc<Social>>, Me(me): Me, Path(id): Path<Id>) -> Result<StatusCode> {
    social.network.unblock(me, id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Whom the caller has blocked, the newest first
#[utoipa::path(
    get, path = "/v1/blocks", tag = "relations", security(("bearer" = ["user"])), params(Paging),
    responses((status = 200, description = "A page of them", body = Page<schema::Related>)),
)]
async fn blocks(State(social): State<Arc<Social>>, Me(me): Me, list: Listing) -> Result<Page<Related>> {
    Ok(list.page(social.network.blocks(me, &list.wanted).await?))
}

/// Mute a user: the user's posts leave the caller's feed
#[utoipa::path(
    put, path = "/v1/mutes/{id}", tag = "relations", security(("bearer" = ["user"])), params(("id" = String, Path)),
    extensions(("x-problems" = json!(["self-relation"]))), responses((status = 204, description = "It is so")),
)]
async fn mute(State(social): State<Arc<Social>>, Me(me): Me, Path(id): Path<Id>) -> Result<StatusCode> {
    social.network.mute(me, id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Mute a user no more
#[utoipa::path(
    delete, path = "/v1/mutes/{id}", tag = "relations", security(("bearer" = ["user"])), params(("id" = String, Path)),
    responses((status = 204, description = "It is so")),
)]
async fn unmute(State(social): State<Arc<Social>>, Me(me): Me, Path(id): Path<Id>) -> Result<StatusCode> {
    social.network.unmute(me, id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Whom the caller has muted, the newest first
#[utoipa::path(
    get, path = "/v1/mutes", tag = "relations", security(("bearer" = ["user"])), params(Paging),
    responses((status = 200, description = "A page of them", body = Page<schema::Related>)),
)]
async fn mutes(State(social): State<Arc<Social>>, Me(me): Me, list: Listing) -> Result<Page<Related>> {
    Ok(list.page(social.network.mutes(me, &list.wanted).await?))
}
