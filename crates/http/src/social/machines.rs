//! Machines, their readings and logs, and what those come to by window.
//!
//! Readings and lines are noted by collectors, some thousands with one call. A time series has no unique key, so a call that
//! lost its answer in a crash of the server may be noted twice when it is repeated; every other repetition is answered from
//! its record, as with all unsafe calls.

use super::{Listing, schema};
use crate::shared::cursor::{Page, Paging};
use crate::shared::extract::{Body, Path, Query};
use crate::shared::problem::{INVALID_QUERY, Problem, Result, UNKNOWN_REFERENCE};
use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, Uri};
use serde::{Deserialize, Serialize};
use social::{Error, LogLine, LogWindow, Metrics, Reading, Server, Time, Unit, Window};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes() -> OpenApiRouter<Metrics> {
    OpenApiRouter::default()
        .routes(routes!(servers))
        .routes(routes!(server, put_server))
        .routes(routes!(server_by_host))
        .routes(routes!(record))
        .routes(routes!(windows))
        .routes(routes!(log))
        .routes(routes!(lines))
        .routes(routes!(log_windows))
}

/// What a body names and nobody knows is the body's fault, not the path's.
fn of_body(error: Error) -> Problem {
    match error {
        Error::UnknownServer(_) => Problem::new(&UNKNOWN_REFERENCE, error.to_string()),
        other => other.into(),
    }
}

/// What a query asks too much of is the query's fault, not the body's.
fn of_query(error: Error) -> Problem {
    match error {
        Error::Invalid(why) => Problem::new(&INVALID_QUERY, why),
        other => other.into(),
    }
}

/// Facts of a machine.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ServerRequest {
    /// Its name in the network, which no other has.
    #[schema(min_length = 1, max_length = 100)]
    host: String,
    /// Where it stands.
    #[schema(min_length = 1, max_length = 100)]
    region: String,
}

/// Note a machine, or what is new of it
#[utoipa::path(
    put, path = "/v1/servers/{id}", tag = "machines", security(("bearer" = ["operator", "collector"])),
    params(("id" = String, Path)), request_body = ServerRequest, extensions(("x-problems" = json!(["already-exists"]))),
    responses((status = 200, description = "It", body = schema::Server)),
)]
async fn put_server(
    State(metrics): State<Metrics>,
    Path(id): Path<String>,
    Body(body): Body<ServerRequest>,
) -> Result<Json<Server>> {
    let server = Server { id, host: body.host, region: body.region };
    metrics.put_server(&server).await?;
    Ok(Json(server))
}

/// A machine
#[utoipa::path(
    get, path = "/v1/servers/{id}", tag = "machines", security(("bearer" = ["operator", "collector"])),
    params(("id" = String, Path)), responses((status = 200, description = "It", body = schema::Server)),
)]
async fn server(State(metrics): State<Metrics>, Path(id): Path<String>) -> Result<Json<Server>> {
    Ok(Json(metrics.server(&id).await?))
}

/// The machine of a host's name
#[utoipa::path(
    get, path = "/v1/servers/by-host/{host}", tag = "machines", security(("bearer" = ["operator", "collector"])),
    params(("host" = String, Path)), responses((status = 200, description = "It", body = schema::Server)),
)]
async fn server_by_host(State(metrics): State<Metrics>, Path(host): Path<String>) -> Result<Json<Server>> {
    metrics.server_by_host(&host).await?.map(Json).ok_or_else(Problem::not_found)
}

/// Which machines.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ServersQuery {
    /// Where they stand.
    region: String,
    /// How many items (default 20, at most 100).
    #[param(minimum = 1, maximum = 100)]
    limit: Option<i64>,
    /// Where to go on: `nextCursor` of the page before.
    cursor: Option<String>,
}

/// The machines of a region, by their ids
#[utoipa::path(
    get, path = "/v1/servers", tag = "machines", security(("bearer" = ["operator", "collector"])), params(ServersQuery),
    responses((status = 200, description = "A page of them", body = Page<schema::Server>)),
)]
async fn servers(State(metrics): State<Metrics>, uri: Uri, Query(query): Query<ServersQuery>) -> Result<Page<Server>> {
    let list = Listing::new(&uri, &Paging { limit: query.limit, cursor: query.cursor })?;
    Ok(list.page(metrics.servers(&query.region, &list.wanted).await?))
}

/// Readings of machines.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ReadingsRequest {
    #[schema(value_type = Vec<schema::Reading>, min_items = 1, max_items = 10000)]
    readings: Vec<Reading>,
}

/// Note readings, all or none
#[utoipa::path(
    post, path = "/v1/readings", tag = "machines", security(("bearer" = ["collector"])), request_body = ReadingsRequest,
    extensions(("x-problems" = json!(["unknown-reference"])), ("x-body-limit" = json!(4194304))),
    responses((status = 204, description = "They are noted")),
)]
async fn record(State(metrics): State<Metrics>, Body(body): Body<ReadingsRequest>) -> Result<StatusCode> {
    metrics.record(&body.readings).await.map_err(of_body)?;
    Ok(StatusCode::NO_CONTENT)
}

/// How long a window is.
#[derive(Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum UnitRequest {
    Minute,
    Hour,
    Day,
}

impl From<UnitRequest> for Unit {
    fn from(wanted: UnitRequest) -> Unit {
        match wanted {
            UnitRequest::Minute => Unit::Minute,
            UnitRequest::Hour => Unit::Hour,
            UnitRequest::Day => Unit::Day,
        }
    }
}

/// Which windows: at most 5,000.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct WindowsQuery {
    /// The first moment.
    #[param(value_type = String, format = DateTime)]
    from: Time,
    /// The moment after the last.
    #[param(value_type = String, format = DateTime)]
    to: Time,
    /// How long a window is; days are cut in UTC.
    #[param(inline)]
    unit: UnitRequest,
}

/// What was found, the oldest first.
#[derive(Serialize, ToSchema)]
struct Series<T> {
    items: Vec<T>,
}

/// What a machine's readings come to by window, the oldest first; windows without readings are left out
#[utoipa::path(
    get, path = "/v1/servers/{id}/windows", tag = "machines", security(("bearer" = ["operator", "collector"])),
    params(("id" = String, Path), WindowsQuery),
    responses((status = 200, description = "The windows", body = Series<schema::Window>)),
)]
async fn windows(
    State(metrics): State<Metrics>,
    Path(id): Path<String>,
    Query(query): Query<WindowsQuery>,
) -> Result<Json<Series<Window>>> {
    let found = metrics.windows(&id, query.from, query.to, query.unit.into()).await;
    Ok(Json(Series { items: found.map_err(of_query)? }))
}

/// How many lines of each level a machine's log has by window, the oldest first
#[utoipa::path(
    get, path = "/v1/servers/{id}/log/windows", tag = "machines", security(("bearer" = ["operator", "collector"])),
    params(("id" = String, Path), WindowsQuery),
    responses((status = 200, description = "The windows", body = Series<schema::LogWindow>)),
)]
async fn log_windows(
    State(metrics): State<Metrics>,
    Path(id): Path<String>,
    Query(query): Query<WindowsQuery>,
) -> Result<Json<Series<LogWindow>>> {
    let found = metrics.log_windows(&id, query.from, query.to, query.unit.into()).await;
    Ok(Json(Series { items: found.map_err(of_query)? }))
}

/// Lines of machines' logs.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct LinesRequest {
    #[schema(value_type = Vec<schema::LogLine>, min_items = 1, max_items = 10000)]
    lines: Vec<LogLine>,
}

/// Note lines of logs, all or none
#[utoipa::path(
    post, path = "/v1/log-lines", tag = "machines", security(("bearer" = ["collector"])), request_body = LinesRequest,
    extensions(("x-problems" = json!(["unknown-reference"])), ("x-body-limit" = json!(4194304))),
    responses((status = 204, description = "They are noted")),
)]
async fn log(State(metrics): State<Metrics>, Body(body): Body<LinesRequest>) -> Result<StatusCode> {
    metrics.log(&body.lines).await.map_err(of_body)?;
    Ok(StatusCode::NO_CONTENT)
}

/// Which lines.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct LinesQuery {
    /// The first moment.
    #[param(value_type = String, format = DateTime)]
    from: Time,
    /// The moment after the last.
    #[param(value_type = String, format = DateTime)]
    to: Time,
    /// How many items (default 20, at most 100).
    #[param(minimum = 1, maximum = 100)]
    limit: Option<i64>,
    /// Where to go on: `nextCursor` of the page before.
    cursor: Option<String>,
}

/// The lines of a machine's log in a time, the newest first
#[utoipa::path(
    get, path = "/v1/servers/{id}/log", tag = "machines", security(("bearer" = ["operator", "collector"])),
    params(("id" = String, Path), LinesQuery),
    responses((status = 200, description = "A page of them", body = Page<schema::LogLine>)),
)]
async fn lines(
    State(metrics): State<Metrics>,
    uri: Uri,
    Path(id): Path<String>,
    Query(query): Query<LinesQuery>,
) -> Result<Page<LogLine>> {
    let list = Listing::new(&uri, &Paging { limit: query.limit, cursor: query.cursor })?;
    Ok(list.page(metrics.lines(&id, query.from, query.to, &list.wanted).await?))
}
