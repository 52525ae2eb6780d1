//! Conversations of the caller; nobody else's can be told from missing ones.

use super::{Listing, Me, Social, schema};
use crate::shared::cursor::{Page, Paging};
use crate::shared::extract::{Body, Path};
use crate::shared::idempotency::OnceKey;
use crate::shared::problem::{INVALID_BODY, Problem, Result};
use axum::Json;
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use social::{Conversation, Id, Message};
use std::sync::Arc;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes() -> OpenApiRouter<Arc<Social>> {
    OpenApiRouter::default()
        .routes(routes!(conversations, begin_conversation))
        .routes(routes!(conversation))
        .routes(routes!(add_member))
        .routes(routes!(leave))
        .routes(routes!(messages, send_message))
        .routes(routes!(edit_message, recall_message))
        .routes(routes!(read_messages))
}

fn id(text: &str) -> Result<Id> {
    text.parse().map_err(|_| Problem::new(&INVALID_BODY, format!("'{text}' is not a user's id")))
}

/// The caller's conversations, the one with the newest message first
#[utoipa::path(
    get, path = "/v1/conversations", tag = "chat", security(("bearer" = ["user"])), params(Paging),
    responses((status = 200, description = "A page of them", body = Page<schema::Conversation>)),
)]
async fn conversations(State(social): State<Arc<Social>>, Me(me): Me, list: Listing) -> Result<Page<Conversation>> {
    Ok(list.page(social.network.conversations(me, &list.wanted).await?))
}

/// With whom; one user without a title is a conversation between two, of which there is one.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ConversationRequest {
    #[schema(min_items = 1, max_items = 200)]
    members: Vec<String>,
    #[schema(min_length = 1, max_length = 100)]
    title: Option<String>,
}

/// Begin a conversation
#[utoipa::path(
    post, path = "/v1/conversations", tag = "chat", security(("bearer" = ["user"])), request_body = ConversationRequest,
    extensions(("x-problems" = json!(["self-relation", "blocked", "not-found"]))),
    responses((status = 201, description = "The conversation", body = schema::Conversation)),
)]
async fn begin_conversation(
    State(social): State<Arc<Social>>,
    Me(me): Me,
    OnceKey(key): OnceKey,
    Body(body): Body<ConversationRequest>,
) -> Result<Response> {
    let members = body.members.iter().map(|member| id(member)).collect::<Result<Vec<_>>>()?;
    let conversation = match (body.title, members.as_slice()) {
        (None, [other]) => social.network.talk_to(me, *other).await?,
        (Some(title), members) => social.network.begin_group_once(me, &title, members, &key).await?,
        (None, _) => return Err(Problem::new(&INVALID_BODY, "a conversation of several needs a 'title'")),
    };
    let begun = social.network.conversation(me, conversation).await?;
    let at = HeaderValue::from_str(&format!("/v1/conversations/{conversation}")).expect("an id is hex digits");
    Ok((StatusCode::CREATED, [(header::LOCATION, at)], Json(begun)).into_response())
}

/// A conversation of the caller
#[utoipa::path(
    get, path = "/v1/conversations/{id}", tag = "chat", security(("bearer" = ["user"])), params(("id" = String, Path)),
    responses((status = 200, description = "It", body = schema::Conversation)),
)]
async fn conversation(State(social): State<Arc<Social>>, Me(me): Me, Path(id): Path<Id>) -> Result<Json<Conversation>> {
    Ok(Json(social.network.conversation(me, id).await?))
}

/// Add a member to a group
#[utoipa::path(
    put, path = "/v1/conversations/{id}/members/{member}", tag = "chat", security(("bearer" = ["user"])),
    params(("id" = String, Path), ("member" = String, Path)),
    extensions(("x-problems" = json!(["blocked", "not-allowed", "invalid-body"]))),
    responses((status = 204, description = "The member sees what is said from now on")),
)]
async fn add_member(
    State(social): State<Arc<Social>>,
    Me(me): Me,
    Path((id, member)): Path<(Id, Id)>,
) -> Result<StatusCode> {
    social.network.add_member(me, id, member).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Leave a group
#[utoipa::path(
    post, path = "/v1/conversations/{id}/leave", tag = "chat", security(("bearer" = ["user"])),
    params(("id" = String, Path)), extensions(("x-problems" = json!(["not-allowed"]))),
    responses((status = 204, description = "The caller is out of it")),
)]
async fn leave(State(social): State<Arc<Social>>, Me(me): Me, Path(id): Path<Id>) -> Result<StatusCode> {
    social.network.leave(me, id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Messages, the newest first
#[utoipa::path(
    get, path = "/v1/conversations/{id}/messages", tag = "chat", security(("bearer" = ["user"])),
    params(("id" = String, Path), Paging),
    responses((status = 200, description = "A page of them", body = Page<schema::Message>)),
)]
async fn messages(
    State(social): State<Arc<Social>>,
    Me(me): Me,
    Path(id): Path<Id>,
    list: Listing,
) -> Result<Page<Message>> {
    Ok(list.page(social.network.messages(me, id, &list.wanted).await?))
}

/// What to say.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct MessageRequest {
    #[schema(min_length = 1)]
    text: String,
}

/// A message's place.
#[derive(Serialize, ToSchema)]
struct Sent {
    /// Its number in the conversation.
    number: i64,
}

/// Send a message
#[utoipa::path(
    post, path = "/v1/conversations/{id}/messages", tag = "chat", security(("bearer" = ["user"])),
    params(("id" = String, Path)), request_body = MessageRequest, extensions(("x-problems" = json!(["blocked"]))),
    responses((status = 201, description = "Its number", body = Sent)),
)]
async fn send_message(
    State(social): State<Arc<Social>>,
    Me(me): Me,
    Path(id): Path<Id>,
    OnceKey(key): OnceKey,
    Body(body): Body<MessageRequest>,
) -> Result<Response> {
    let number = social.network.send_once(me, id, &body.text, &key).await?;
    Ok((StatusCode::CREATED, Json(Sent { number })).into_response())
}

/// Change what a message of one's own says
#[utoipa::path(
    patch, path = "/v1/conversations/{id}/messages/{number}", tag = "chat", security(("bearer" = ["user"])),
    params(("id" = String, Path), ("number" = i64, Path)), request_body = MessageRequest,
    extensions(("x-problems" = json!(["not-allowed"]))), responses((status = 204, description = "It says so now")),
)]
async fn edit_message(
    State(social): State<Arc<Social>>,
    Me(me): Me,
    Path((id, number)): Path<(Id, i64)>,
    Body(body): Body<MessageRequest>,
) -> Result<StatusCode> {
    social.network.edit_message(me, id, number, &body.text).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Take a message of one's own back
#[utoipa::path(
    delete, path = "/v1/conversations/{id}/messages/{number}", tag = "chat", security(("bearer" = ["user"])),
    params(("id" = String, Path), ("number" = i64, Path)), extensions(("x-problems" = json!(["not-allowed"]))),
    responses((status = 204, description = "Its place is empty")),
)]
async fn recall_message(
    State(social): State<Arc<Social>>,
    Me(me): Me,
    Path((id, number)): Path<(Id, i64)>,
) -> Result<StatusCode> {
    social.network.recall_message(me, id, number).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Up to where.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ReadUpTo {
    /// The last message that was read.
    #[schema(minimum = 0)]
    up_to: i64,
}

/// Mark messages as read
#[utoipa::path(
    post, path = "/v1/conversations/{id}/read", tag = "chat", security(("bearer" = ["user"])),
    params(("id" = String, Path)), request_body = ReadUpTo, responses((status = 204, description = "They are")),
)]
async fn read_messages(
    State(social): State<Arc<Social>>,
    Me(me): Me,
    Path(id): Path<Id>,
    Body(body): Body<ReadUpTo>,
) -> Result<StatusCode> {
    social.network.read_messages(me, id, body.up_to).await?;
    Ok(StatusCode::NO_CONTENT)
}
