//! Reviews of products, by who bought them.

use super::{Commerce, error, page, paging, schema};
use crate::shared::auth::Caller;
use crate::shared::cursor::{Page, Paging};
use crate::shared::extract::{Body, Path, Query};
use crate::shared::problem::Result;
use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use commerce::{NewReview, Review};
use serde::Deserialize;
use std::sync::Arc;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes() -> OpenApiRouter<Arc<Commerce>> {
    OpenApiRouter::default().routes(routes!(reviews, write_review)).routes(routes!(show_review))
}

/// A product's visible reviews, the newest first
#[utoipa::path(
    get, path = "/v1/products/{id}/reviews", tag = "reviews", security(()), params(("id" = String, Path), Paging),
    responses((status = 200, description = "A page of them", body = Page<schema::Review>)),
)]
async fn reviews(
    State(commerce): State<Arc<Commerce>>,
    uri: Uri,
    Path(id): Path<String>,
    Query(at): Query<Paging>,
) -> Result<Page<Review>> {
    let found = commerce.shop.reviews(&id, &paging(&at, &uri)?).await.map_err(error::in_query)?;
    page(&uri, &at, found)
}

/// What a buyer says of a product.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ReviewRequest {
    /// The order in which it was bought.
    #[schema(min_length = 1, max_length = 128)]
    order: String,
    #[schema(minimum = 1, maximum = 5)]
    rating: i64,
    #[serde(default)]
    #[schema(max_length = 1000)]
    text: String,
}

/// Review a product that one bought; a second review takes the place of the first
#[utoipa::path(
    post, path = "/v1/products/{id}/reviews", tag = "reviews", security(("bearer" = ["buyer"])),
    params(("id" = String, Path)), request_body = ReviewRequest,
    extensions(("x-problems" = json!(["not-bought", "unknown-reference"]))),
    responses((status = 201, description = "The review", body = schema::Review)),
)]
async fn write_review(
    State(commerce): State<Arc<Commerce>>,
    caller: Caller,
    Path(id): Path<String>,
    Body(body): Body<ReviewRequest>,
) -> Result<Response> {
    super::bounded("text", &body.text, 0, 1000)?;
    let new = NewReview { order: body.order, product: id, rating: body.rating, text: body.text };
    let review = commerce.shop.review(&caller.subject, &new).await.map_err(error::in_body)?;
    Ok((StatusCode::CREATED, Json(review)).into_response())
}

/// Whether it is shown.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ShowRequest {
    visible: bool,
}

/// Show or hide a review
#[utoipa::path(
    put, path = "/v1/reviews/{id}/visible", tag = "reviews", security(("bearer" = ["merchant", "operator"])),
    params(("id" = String, Path)), request_body = ShowRequest,
    responses((status = 200, description = "The review", body = schema::Review)),
)]
async fn show_review(
    State(commerce): State<Arc<Commerce>>,
    Path(id): Path<String>,
    Body(body): Body<ShowRequest>,
) -> Result<Json<Review>> {
    Ok(Json(commerce.shop.show_review(&id, body.visible).await?))
}
