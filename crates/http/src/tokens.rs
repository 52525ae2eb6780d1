//! `/v1/tokens`: the operator makes tokens, looks at them and takes them back; `/v1/me`: who am I.

use crate::shared::auth::{Caller, Role};
use crate::shared::core::Core;
use crate::shared::cursor::{Page, Paging};
use crate::shared::extract::{Body, Path, Query};
use crate::shared::idempotency::KeptBody;
use crate::shared::problem::{INVALID_BODY, Problem, Result};
use crate::shared::time;
use crate::shared::token::{NewToken, Token, TokenError};
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// The longest life of a token: ten years.
const MAX_LIFE_SECONDS: u64 = 10 * 366 * 24 * 60 * 60;

pub(crate) fn routes() -> OpenApiRouter<Arc<Core>> {
    OpenApiRouter::default().routes(routes!(issue_token, list_tokens)).routes(routes!(revoke_token)).routes(routes!(me))
}

/// A role.
#[derive(Clone, Copy, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum RoleName {
    Buyer,
    Merchant,
    Operator,
    User,
    Moderator,
    Author,
    Collector,
}

impl From<RoleName> for Role {
    fn from(name: RoleName) -> Role {
        match name {
            RoleName::Buyer => Role::Buyer,
            RoleName::Merchant => Role::Merchant,
            RoleName::Operator => Role::Operator,
            RoleName::User => Role::User,
            RoleName::Moderator => Role::Moderator,
            RoleName::Author => Role::Author,
            RoleName::Collector => Role::Collector,
        }
    }
}

/// A token to make.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct TokenRequest {
    /// On whose behalf it calls: a user's id.
    #[schema(min_length = 1, max_length = 128)]
    subject: String,
    /// What it may do.
    #[schema(min_items = 1, max_items = 7)]
    roles: Vec<RoleName>,
    /// For how long; without end if it is missing.
    #[schema(minimum = 1, maximum = 316224000)]
    expires_in_seconds: Option<u64>,
    /// What it is for.
    #[serde(default)]
    #[schema(max_length = 200)]
    label: String,
}

/// A token.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct TokenView {
    id: String,
    subject: String,
    roles: Vec<String>,
    label: String,
    #[schema(format = DateTime)]
    created_at: String,
    #[schema(format = DateTime)]
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<String>,
    #[schema(format = DateTime)]
    #[serde(skip_serializing_if = "Option::is_none")]
    revoked_at: Option<String>,
    /// What to send after `Bearer `; shown once, when it is made.
    #[serde(skip_serializing_if = "Option::is_none")]
    secret: Option<String>,
}

impl From<Token> for TokenView {
    fn from(token: Token) -> TokenView {
        TokenView {
            id: token.id,
            subject: token.subject,
            roles: token.roles.iter().map(|role| role.name().to_owned()).collect(),
            label: token.label,
            created_at: time::text(token.created_at),
            expires_at: token.expires_at.map(time::text),
            revoked_at: token.revoked_at.map(time::text),
            secret: None,
        }
    }
}

impl From<TokenError> for Problem {
    fn from(error: TokenError) -> Problem {
        match error {
            TokenError::Invalid(why) => Problem::new(&INVALID_BODY, why),
            TokenError::Store(error) => error.into(),
        }
    }
}

/// Make a token
///
/// The secret is in the first answer only; when the call is repeated, the answer comes without it.
#[utoipa::path(
    post, path = "/v1/tokens", tag = "tokens", security(("bearer" = ["operator"])), request_body = TokenRequest,
    responses((status = 201, description = "It was made", body = TokenView)),
)]
async fn issue_token(State(core): State<Arc<Core>>, Body(body): Body<TokenRequest>) -> Result<Response> {
    let lives = body.expires_in_seconds;
    if lives.is_some_and(|seconds| seconds == 0 || seconds > MAX_LIFE_SECONDS) || body.label.len() > 200 {
        return Err(Problem::new(
            &INVALID_BODY,
            "a token lives 1 second to ten years; its label has at most 200 bytes",
        ));
    }
    let roles: Vec<Role> = body.roles.into_iter().map(Role::from).collect();
    let lives = lives.map(Duration::from_secs);
    let issued = core.tokens.issue(&NewToken { subject: body.subject, roles, lives, label: body.label }).await?;
    let location = HeaderValue::from_str(&format!("/v1/tokens/{}", issued.token.id)).expect("an id is hex digits");
    let mut view = TokenView::from(issued.token);
    let kept = KeptBody(Bytes::from(json!(view).to_string()));
    view.secret = Some(issued.secret);
    Ok((StatusCode::CREATED, [(header::LOCATION, location)], Extension(kept), Json(view)).into_response())
}

/// Tokens, without their secrets
#[utoipa::path(
    get, path = "/v1/tokens", tag = "tokens", security(("bearer" = ["operator"])), params(Paging),
    responses((status = 200, description = "A page of them", body = Page<TokenView>)),
)]
async fn list_tokens(State(core): State<Arc<Core>>, uri: Uri, Query(paging): Query<Paging>) -> Result<Page<TokenView>> {
    let limit = paging.limit()?;
    let found = core.tokens.list(paging.after(&uri)?, limit + 1).await?;
    Ok(Page::of(&uri, limit, found, |token| token.id.clone()).map(TokenView::from))
}

/// Take a token back; its next call is refused
#[utoipa::path(
    delete, path = "/v1/tokens/{id}", tag = "tokens", security(("bearer" = ["operator"])),
    params(("id" = String, Path)), responses((status = 204, description = "It is over")),
)]
async fn revoke_token(State(core): State<Arc<Core>>, Path(id): Path<String>) -> Result<StatusCode> {
    if core.tokens.revoke(&id).await? { Ok(StatusCode::NO_CONTENT) } else { Err(Problem::not_found()) }
}

/// Who calls.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Me {
    subject: String,
    roles: Vec<String>,
    token_id: String,
}

/// Who the token says that I am
#[utoipa::path(
    get, path = "/v1/me", tag = "tokens",
    security(("bearer" = ["buyer", "merchant", "operator", "user", "moderator"])),
    responses((status = 200, description = "The caller", body = Me)),
)]
async fn me(caller: Caller) -> Json<Me> {
    let roles = caller.roles.iter().map(|role| role.name().to_owned()).collect();
    Json(Me { subject: caller.subject, roles, token_id: caller.token })
}
