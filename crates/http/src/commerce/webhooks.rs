//! Webhooks to others: the operator says who is told, the server makes the calls.

use super::{All, Commerce, schema};
use crate::shared::extract::{Body, Path};
use crate::shared::idempotency::KeptBody;
use crate::shared::problem::{INVALID_BODY, Problem, Result};
use axum::body::Body as HttpBody;
use axum::extract::State;
use axum::http::{Method, Request, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use commerce::{Shop, WebhookAnswer, WebhookCall, WebhookDelivery, WebhookEndpoint};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// How many deliveries of an endpoint are shown.
const SHOWN: usize = 100;
/// How many calls are made at once.
const CALLS_AT_ONCE: usize = 32;
/// How long a call may take.
const CALL_TIMEOUT: Duration = Duration::from_secs(15);
/// How often to look for deliveries that are due.
const LOOK_PERIOD: Duration = Duration::from_millis(500);
/// How often deliveries that were over long ago are forgotten.
const FORGET_PERIOD: Duration = Duration::from_secs(60 * 60);
/// How long to wait before the change log that broke is opened again.
const REOPEN_PAUSE: Duration = Duration::from_secs(1);

pub(super) fn routes() -> OpenApiRouter<Arc<Commerce>> {
    OpenApiRouter::default()
        .routes(routes!(endpoints, add_endpoint))
        .routes(routes!(remove_endpoint))
        .routes(routes!(deliveries))
        .routes(routes!(resend))
}

/// Whom to tell what.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct EndpointRequest {
    /// Where the calls go: `https`, or `http` in one's own network.
    #[schema(min_length = 8, max_length = 2000, pattern = "^https?://")]
    url: String,
    /// What it is told, such as `order.paid`; everything if there is nothing.
    #[serde(default)]
    #[schema(max_items = 20)]
    events: Vec<String>,
}

/// A new endpoint.
#[derive(Serialize)]
struct NewEndpoint {
    #[serde(flatten)]
    endpoint: WebhookEndpoint,
    #[serde(skip_serializing_if = "Option::is_none")]
    secret: Option<String>,
}

/// Tell an endpoint what happens to orders, by signed calls (Standard Webhooks)
///
/// The secret is in the first answer only; when the call is repeated, the answer comes without it. A call that is not
/// answered with 2xx within 15 seconds is made again, later and later, for three days. An event says which order has a
/// new state, and the version that it had then.
#[utoipa::path(
    post, path = "/v1/webhook-endpoints", tag = "webhooks", security(("bearer" = ["operator"])),
    request_body = EndpointRequest, extensions(("x-problems" = json!(["full"]))),
    responses((status = 201, description = "It is told from now on", body = schema::NewWebhookEndpoint)),
)]
async fn add_endpoint(State(commerce): State<Arc<Commerce>>, Body(body): Body<EndpointRequest>) -> Result<Response> {
    super::bounded("url", &body.url, 8, 2000)?;
    let uri: Option<Uri> = body.url.parse().ok();
    let good = uri.is_some_and(|uri| matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some());
    if !good {
        return Err(Problem::new(&INVALID_BODY, "'url' must be an http or https URL").with("field", "url"));
    }
    let mut secret = [0; 32];
    getrandom::fill(&mut secret).expect("the system gives random bytes");
    let endpoint = commerce.shop.add_webhook_endpoint(&body.url, &body.events, &secret).await?;
    let at = [(header::LOCATION, super::location("/v1/webhook-endpoints", &endpoint.id))];
    let mut new = NewEndpoint { endpoint, secret: None };
    let kept = KeptBody(Bytes::from(json!(new).to_string()));
    new.secret = Some(format!("whsec_{}", STANDARD.encode(secret)));
    Ok((StatusCode::CREATED, at, Extension(kept), Json(new)).into_response())
}

/// Who is told of orders
#[utoipa::path(
    get, path = "/v1/webhook-endpoints", tag = "webhooks", security(("bearer" = ["operator"])),
    responses((status = 200, description = "All", body = All<schema::WebhookEndpoint>)),
)]
async fn endpoints(State(commerce): State<Arc<Commerce>>) -> Result<Json<All<WebhookEndpoint>>> {
    Ok(Json(All { items: commerce.shop.webhook_endpoints().await? }))
}

/// Tell an endpoint no more
#[utoipa::path(
    delete, path = "/v1/webhook-endpoints/{id}", tag = "webhooks", security(("bearer" = ["operator"])),
    params(("id" = String, Path)), responses((status = 204, description = "It is told no more")),
)]
async fn remove_endpoint(State(commerce): State<Arc<Commerce>>, Path(id): Path<String>) -> Result<StatusCode> {
    commerce.shop.remove_webhook_endpoint(&id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The newest hundred deliveries to an endpoint, and what became of them
#[utoipa::path(
    get, path = "/v1/webhook-endpoints/{id}/deliveries", tag = "webhooks", security(("bearer" = ["operator"])),
    params(("id" = String, Path)),
    responses((status = 200, description = "The newest first", body = All<schema::WebhookDelivery>)),
)]
async fn deliveries(
    State(commerce): State<Arc<Commerce>>,
    Path(id): Path<String>,
) -> Result<Json<All<WebhookDelivery>>> {
    Ok(Json(All { items: commerce.shop.webhook_deliveries(&id, SHOWN).await? }))
}

/// Make the calls of a delivery that was given up anew, with the same `webhook-id`
#[utoipa::path(
    post, path = "/v1/webhook-endpoints/{id}/deliveries/{delivery}/resend", tag = "webhooks",
    security(("bearer" = ["operator"])), params(("id" = String, Path), ("delivery" = String, Path)),
    extensions(("x-problems" = json!(["illegal-move"]))),
    responses((status = 200, description = "It is due now", body = schema::WebhookDelivery)),
)]
async fn resend(
    State(commerce): State<Arc<Commerce>>,
    Path((id, delivery)): Path<(String, String)>,
) -> Result<Json<WebhookDelivery>> {
    Ok(Json(commerce.shop.resend_webhook(&id, &delivery).await?))
}

/// Notes what is to be told and makes the calls, for ever.
pub(super) async fn tell(shop: &Shop) {
    tokio::join!(note(shop), deliver(shop), forget(shop));
}

async fn note(shop: &Shop) {
    loop {
        if let Err(error) = shop.note_webhooks().await {
            tracing::warn!(%error, "the change log for webhooks broke; it is opened again");
        }
        tokio::time::sleep(REOPEN_PAUSE).await;
    }
}

async fn forget(shop: &Shop) {
    loop {
        tokio::time::sleep(FORGET_PERIOD).await;
        if let Err(error) = shop.forget_webhooks().await {
            tracing::warn!(%error, "old webhook deliveries could not be forgotten; it is tried again");
        }
    }
}

type Caller = Client<HttpsConnector<HttpConnector>, HttpBody>;

async fn deliver(shop: &Shop) {
    let tls = HttpsConnectorBuilder::new().with_webpki_roots().https_or_http().enable_http1().build();
    let caller: Caller = Client::builder(TokioExecutor::new()).build(tls);
    loop {
        tokio::time::sleep(LOOK_PERIOD).await;
        loop {
            let calls = match shop.claim_webhooks(CALLS_AT_ONCE).await {
                Ok(calls) if calls.is_empty() => break,
                Ok(calls) => calls,
                Err(error) => {
                    tracing::warn!(%error, "webhook deliveries could not be read; it is tried again");
                    break;
                }
            };
            let mut tasks = JoinSet::new();
            for call in calls {
                let (shop, caller) = (shop.clone(), caller.clone());
                tasks.spawn(async move {
                    let delivery = call.delivery.clone();
                    let answer = make(&caller, call).await;
                    shop.webhook_answered(&delivery, answer).await
                });
            }
            while let Some(done) = tasks.join_next().await {
                if let Ok(Err(error)) = done {
                    tracing::warn!(%error, "what became of a webhook delivery could not be noted; it is made again");
                }
            }
        }
    }
}

/// Makes a call; redirects are not followed.
async fn make(caller: &Caller, call: WebhookCall) -> WebhookAnswer {
    let request = Request::builder()
        .method(Method::POST)
        .uri(&call.url)
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::USER_AGENT, concat!("sheaf/", env!("CARGO_PKG_VERSION")))
        .header("webhook-id", &call.signed.id)
        .header("webhook-timestamp", call.signed.timestamp)
        .header("webhook-signature", &call.signed.signature)
        .body(HttpBody::from(call.signed.body));
    let request = match request {
        Ok(request) => request,
        Err(error) => return WebhookAnswer::Failed(error.to_string()),
    };
    match tokio::time::timeout(CALL_TIMEOUT, caller.request(request)).await {
        Ok(Ok(response)) if response.status().is_success() => WebhookAnswer::Taken,
        Ok(Ok(response)) if response.status() == StatusCode::GONE => WebhookAnswer::Gone,
        Ok(Ok(response)) => WebhookAnswer::Failed(format!("it answered {}", response.status())),
        Ok(Err(error)) => WebhookAnswer::Failed(error.to_string()),
        Err(_) => WebhookAnswer::Failed(format!("no answer within {} s", CALL_TIMEOUT.as_secs())),
    }
}
