//! Reports of sales over a half-open period in a named time zone.

use super::{Commerce, error, schema};
use crate::shared::extract::Query;
use crate::shared::problem::Result;
use axum::Json;
use axum::extract::State;
use commerce::{Report, ReportBy, ReportRequest, ReportSource};
use serde::Deserialize;
use std::sync::Arc;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes() -> OpenApiRouter<Arc<Commerce>> {
    OpenApiRouter::default().routes(routes!(report))
}

/// What a report is grouped by.
#[derive(Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
enum By {
    City,
    Product,
    Sku,
}

/// Where the figures come from.
#[derive(Clone, Copy, Deserialize, ToSchema, Default)]
#[serde(rename_all = "camelCase")]
enum Source {
    #[default]
    Either,
    Rollup,
    Aggregation,
}

/// A report.
#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ReportQuery {
    /// What it is grouped by.
    #[param(inline)]
    by: By,
    /// The first day.
    #[param(format = Date)]
    from: String,
    /// The day after the last.
    #[param(format = Date)]
    to: String,
    /// The time zone that days are cut in, such as `Europe/Paris`; the shop's if it is missing.
    zone: Option<String>,
    /// Whether each day has its own rows.
    #[serde(default)]
    #[param(required = false)]
    per_day: bool,
    /// Where the figures come from.
    #[serde(default)]
    #[param(required = false, inline)]
    source: Source,
}

/// Sales by city, product or SKU
#[utoipa::path(
    get, path = "/v1/reports/sales", tag = "reports", security(("bearer" = ["merchant", "operator"])), params(ReportQuery),
    responses((status = 200, description = "The largest sales first", body = schema::Report)),
)]
async fn report(State(commerce): State<Arc<Commerce>>, Query(query): Query<ReportQuery>) -> Result<Json<Report>> {
    let by = match query.by {
        By::City => ReportBy::City,
        By::Product => ReportBy::Product,
        By::Sku => ReportBy::Sku,
    };
    let source = match query.source {
        Source::Either => ReportSource::Either,
        Source::Rollup => ReportSource::Rollup,
        Source::Aggregation => ReportSource::Aggregation,
    };
    let ReportQuery { from, to, zone, per_day, .. } = query;
    let request = ReportRequest { by, from, to, zone, per_day, source };
    Ok(Json(commerce.shop.report(&request).await.map_err(error::in_query)?))
}
