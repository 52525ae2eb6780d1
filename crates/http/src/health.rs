//! Whether the server is there and can work, what it counts, and what the API is.

use crate::shared::core::Core;
use crate::shared::problem::{Problem, Result, UNAVAILABLE};
use axum::Json;
use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use serde::Serialize;
use std::sync::Arc;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Prometheus' text format.
const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";

pub(crate) fn routes() -> OpenApiRouter<Arc<Core>> {
    OpenApiRouter::default()
        .routes(routes!(healthz))
        .routes(routes!(readyz))
        .routes(routes!(metrics))
        .routes(routes!(description))
}

/// How it is.
#[derive(Serialize, utoipa::ToSchema)]
struct Health {
    /// `ok`, or the call is refused.
    #[schema(example = "ok")]
    status: &'static str,
}

/// Whether the process answers
#[utoipa::path(
    get, path = "/healthz", tag = "service", security(()),
    responses((status = 200, description = "It does", body = Health)),
)]
async fn healthz() -> Json<Health> {
    Json(Health { status: "ok" })
}

/// Whether the server can work: the store answers and the server is not stopping
#[utoipa::path(
    get, path = "/readyz", tag = "service", security(()),
    responses((status = 200, description = "It can", body = Health)),
)]
async fn readyz(State(core): State<Arc<Core>>) -> Result<Json<Health>> {
    if core.stopping.is_cancelled() {
        return Err(Problem::new(&UNAVAILABLE, "the server is stopping").retry_after(1));
    }
    core.tokens.list(None, 1).await?;
    Ok(Json(Health { status: "ok" }))
}

/// Metrics in Prometheus' text format
#[utoipa::path(
    get, path = "/metrics", tag = "service", security(()),
    responses((status = 200, description = "The metrics", body = String, content_type = "text/plain")),
)]
async fn metrics(State(core): State<Arc<Core>>) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, PROMETHEUS)], core.metrics.text())
}

/// This description
#[utoipa::path(
    get, path = "/openapi.json", tag = "service", security(()),
    responses((status = 200, description = "OpenAPI 3.1", body = Object)),
)]
async fn description(State(core): State<Arc<Core>>) -> impl IntoResponse {
    let text = core.description.get().cloned().unwrap_or_default();
    ([(header::CONTENT_TYPE, "application/json")], text)
}
