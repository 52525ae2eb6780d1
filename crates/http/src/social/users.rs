//! Users of the network.

use super::{Me, Social, schema, unblocked, user};
use crate::shared::auth::{Caller, Role};
use crate::shared::extract::{Body, Path};
use crate::shared::problem::{Problem, Result};
use axum::Json;
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use social::{Card, Id, Profile, ProfileChange};
use std::sync::Arc;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes() -> OpenApiRouter<Arc<Social>> {
    OpenApiRouter::default()
        .routes(routes!(add_user))
        .routes(routes!(user_page, change_user, leave_network))
        .routes(routes!(user_by_name))
}

/// Somebody to sign up.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct UserRequest {
    #[schema(min_length = 1, max_length = 40)]
    username: String,
}

/// Sign a user up
#[utoipa::path(
    post, path = "/v1/users", tag = "users", security(("bearer" = ["moderator", "operator"])), request_body = UserRequest,
    extensions(("x-problems" = json!(["already-exists"]))),
    responses((status = 201, description = "The user; a token's subject is its id", body = schema::UserProfile)),
)]
async fn add_user(State(social): State<Arc<Social>>, Body(body): Body<UserRequest>) -> Result<Response> {
    let id = social.network.add_user(&body.username).await?;
    let at = HeaderValue::from_str(&format!("/v1/users/{id}")).expect("an id is hex digits");
    let profile = social.network.profile(id).await?;
    Ok((StatusCode::CREATED, [(header::LOCATION, at)], Json(profile)).into_response())
}

/// A user's page
#[utoipa::path(
    get, path = "/v1/users/{id}", tag = "users", security(("bearer" = ["user", "moderator", "operator"])),
    params(("id" = String, Path)), responses((status = 200, description = "It", body = schema::UserProfile)),
)]
async fn user_page(State(social): State<Arc<Social>>, caller: Caller, Path(id): Path<Id>) -> Result<Json<Profile>> {
    if !caller.is_any(&[Role::Moderator, Role::Operator]) {
        unblocked(&social, user(&caller)?, id).await?;
    }
    Ok(Json(social.network.profile(id).await?))
}

/// What changes of one's page; what is left out stays.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct UserChange {
    #[schema(min_length = 1, max_length = 40)]
    username: Option<String>,
    #[schema(max_length = 500)]
    avatar: Option<String>,
    #[schema(max_length = 1000)]
    bio: Option<String>,
}

/// Change one's own page
#[utoipa::path(
    patch, path = "/v1/users/{id}", tag = "users", security(("bearer" = ["user"])), params(("id" = String, Path)),
    request_body = UserChange, extensions(("x-problems" = json!(["already-exists"]))),
    responses((status = 200, description = "The page now", body = schema::UserProfile)),
)]
async fn change_user(
    State(social): State<Arc<Social>>,
    Me(me): Me,
    Path(id): Path<Id>,
    Body(body): Body<UserChange>,
) -> Result<Json<Profile>> {
    if me != id {
        return Err(Problem::not_found());
    }
    let long = |text: &Option<String>, max: usize| text.as_ref().is_some_and(|text| text.chars().count() > max);
    if long(&body.avatar, 500) || long(&body.bio, 1000) {
        let why = "an avatar has at most 500 characters, a bio 1000";
        return Err(Problem::new(&crate::shared::problem::INVALID_BODY, why));
    }
    let change = ProfileChange { username: body.username, avatar: body.avatar, bio: body.bio };
    social.network.change_profile(id, &change).await?;
    Ok(Json(social.network.profile(id).await?))
}

/// Leave the network for good, or take a user out of it
///
/// The user is gone at once; what is left of the user goes soon after.
#[utoipa::path(
    delete, path = "/v1/users/{id}", tag = "users", security(("bearer" = ["user", "moderator", "operator"])),
    params(("id" = String, Path)), responses((status = 204, description = "The user is gone")),
)]
async fn leave_network(State(social): State<Arc<Social>>, caller: Caller, Path(id): Path<Id>) -> Result<StatusCode> {
    if !caller.is_any(&[Role::Moderator, Role::Operator]) && user(&caller)? != id {
        return Err(Problem::not_found());
    }
    social.network.leave_network(id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The user of a name
#[utoipa::path(
    get, path = "/v1/users/by-name/{name}", tag = "users", security(("bearer" = ["user"])),
    params(("name" = String, Path)), responses((status = 200, description = "The user", body = schema::Card)),
)]
async fn user_by_name(State(social): State<Arc<Social>>, Me(me): Me, Path(name): Path<String>) -> Result<Json<Card>> {
    let viewer = me;
    let found = social.network.user_by_name(&name).await?.ok_or_else(Problem::not_found)?;
    unblocked(&social, viewer, found.id).await?;
    Ok(Json(found))
}
