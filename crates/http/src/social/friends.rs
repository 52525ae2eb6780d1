//! Friends and friend requests of the caller.

use super::{Listing, Me, Social, schema};
use crate::shared::cursor::{Page, Paging};
use crate::shared::extract::{Body, Path, Query};
use crate::shared::problem::{INVALID_BODY, Problem, Result};
use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, Uri};
use serde::{Deserialize, Serialize};
use social::{FriendRequest, Id, Related, Suggestion};
use std::sync::Arc;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// How many users are suggested.
const SUGGESTIONS: usize = 20;

pub(super) fn routes() -> OpenApiRouter<Arc<Social>> {
    OpenApiRouter::default()
        .routes(routes!(friends))
        .routes(routes!(unfriend))
        .routes(routes!(suggestions))
        .routes(routes!(friend_requests, ask_friend))
        .routes(routes!(withdraw_friend))
        .routes(routes!(accept_friend))
        .routes(routes!(decline_friend))
}

/// The caller's friends
#[utoipa::path(
    get, path = "/v1/friends", tag = "friends", security(("bearer" = ["user"])), params(Paging),
    responses((status = 200, description = "A page of them", body = Page<schema::Related>)),
)]
async fn friends(State(social): State<Arc<Social>>, Me(me): Me, list: Listing) -> Result<Page<Related>> {
    Ok(list.page(social.network.friends(me, &list.wanted).await?))
}

/// End a friendship
#[utoipa::path(
    delete, path = "/v1/friends/{id}", tag = "friends", security(("bearer" = ["user"])), params(("id" = String, Path)),
    extensions(("x-problems" = json!(["self-relation"]))), responses((status = 204, description = "It is over")),
)]
async fn unfriend(State(social): State<Arc<Social>>, Me(me): Me, Path(id): Path<Id>) -> Result<StatusCode> {
    social.network.unfriend(me, id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Suggestions, those with the most common friends first.
#[derive(Serialize, ToSchema)]
struct Suggestions<T> {
    items: Vec<T>,
}

/// Friends of friends who are no friends yet
#[utoipa::path(
    get, path = "/v1/friends/suggestions", tag = "friends", security(("bearer" = ["user"])),
    responses((status = 200, description = "Up to 20", body = Suggestions<schema::Suggestion>)),
)]
async fn suggestions(State(social): State<Arc<Social>>, Me(me): Me) -> Result<Json<Suggestions<Suggestion>>> {
    Ok(Json(Suggestions { items: social.network.friends_of_friends(me, SUGGESTIONS).await? }))
}

/// Which way.
#[derive(Clone, Copy, Deserialize, ToSchema, PartialEq)]
#[serde(rename_all = "lowercase")]
enum Direction {
    Incoming,
    Outgoing,
}

/// Which requests.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct RequestQuery {
    /// To the caller, or by the caller.
    #[param(inline)]
    direction: Direction,
    /// How many items (default 20, at most 100).
    #[param(minimum = 1, maximum = 100)]
    limit: Option<i64>,
    /// Where to go on: `nextCursor` of the page before.
    cursor: Option<String>,
}

/// The caller's open friend requests
#[utoipa::path(
    get, path = "/v1/friend-requests", tag = "friends", security(("bearer" = ["user"])), params(RequestQuery),
    responses((status = 200, description = "A page of them", body = Page<schema::FriendRequest>)),
)]
async fn friend_requests(
    State(social): State<Arc<Social>>,
    Me(me): Me,
    uri: Uri,
    Query(query): Query<RequestQuery>,
) -> Result<Page<FriendRequest>> {
    let list = Listing::new(&uri, &Paging { limit: query.limit, cursor: query.cursor })?;
    let found = match query.direction {
        Direction::Incoming => social.network.incoming_requests(me, &list.wanted).await?,
        Direction::Outgoing => social.network.outgoing_requests(me, &list.wanted).await?,
    };
    Ok(list.page(found))
}

/// Whom to ask.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct AskRequest {
    #[schema(pattern = "^[0-9a-f]{24}$")]
    to: String,
}

/// Ask a user for friendship
#[utoipa::path(
    post, path = "/v1/friend-requests", tag = "friends", security(("bearer" = ["user"])), request_body = AskRequest,
    extensions(("x-problems" = json!(["self-relation", "blocked", "request-pending", "already-friends", "not-found"]))),
    responses((status = 204, description = "It is open")),
)]
async fn ask_friend(State(social): State<Arc<Social>>, Me(me): Me, Body(body): Body<AskRequest>) -> Result<StatusCode> {
    let to = body.to.parse().map_err(|_| Problem::new(&INVALID_BODY, "'to' must be a user's id"))?;
    social.network.ask_friend(me, to).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Take a friend request back
#[utoipa::path(
    delete, path = "/v1/friend-requests/{id}", tag = "friends", security(("bearer" = ["user"])),
    params(("id" = String, Path)), extensions(("x-problems" = json!(["no-pending-request"]))),
    responses((status = 204, description = "It is gone")),
)]
async fn withdraw_friend(State(social): State<Arc<Social>>, Me(me): Me, Path(to): Path<Id>) -> Result<StatusCode> {
    social.network.withdraw_friend(me, to).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Accept a user's friend request
#[utoipa::path(
    post, path = "/v1/friend-requests/{id}/accept", tag = "friends", security(("bearer" = ["user"])),
    params(("id" = String, Path)), extensions(("x-problems" = json!(["no-pending-request", "already-friends", "blocked"]))),
    responses((status = 204, description = "The two are friends")),
)]
async fn accept_friend(State(social): State<Arc<Social>>, Me(me): Me, Path(from): Path<Id>) -> Result<StatusCode> {
    social.network.accept_friend(me, from).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Decline a user's friend request
#[utoipa::path(
    post, path = "/v1/friend-requests/{id}/decline", tag = "friends", security(("bearer" = ["user"])),
    params(("id" = String, Path)), extensions(("x-problems" = json!(["no-pending-request"]))),
    responses((status = 204, description = "It is gone")),
)]
async fn decline_friend(State(social): State<Arc<Social>>, Me(me): Me, Path(from): Path<Id>) -> Result<StatusCode> {
    social.network.decline_friend(me, from).await?;
    Ok(StatusCode::NO_CONTENT)
}
