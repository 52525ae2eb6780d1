//! Coupons: merchants start campaigns, buyers take one each.

use super::{All, Commerce, error, owned, schema};
use crate::shared::auth::Caller;
use crate::shared::extract::{Body, Path};
use crate::shared::problem::{INVALID_BODY, Problem, Result};
use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use commerce::{Campaign, Coupon, Rate, Reduction, Time};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::Arc;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes() -> OpenApiRouter<Arc<Commerce>> {
    OpenApiRouter::default().routes(routes!(add_campaign)).routes(routes!(coupons, claim_coupon))
}

/// A campaign that gives out coupons; say `amountMinor` or `percent`.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct CampaignRequest {
    #[schema(min_length = 1, max_length = 128)]
    id: String,
    #[schema(min_length = 1, max_length = 200)]
    name: String,
    /// What a coupon takes off, in minor units.
    #[schema(minimum = 1)]
    amount_minor: Option<i64>,
    /// What a coupon takes off, of the goods' value: an exact decimal such as `12.5`.
    #[schema(pattern = "^[0-9]{1,3}(\\.[0-9]{1,6})?$")]
    percent: Option<String>,
    /// The goods' least value, in minor units.
    #[serde(default)]
    #[schema(minimum = 0)]
    threshold_minor: i64,
    /// ISO 4217.
    #[schema(pattern = "^[A-Z]{3}$")]
    currency: String,
    /// How many coupons there are in all.
    #[schema(minimum = 0)]
    total: i64,
    #[schema(format = DateTime)]
    valid_from: String,
    /// Exclusive.
    #[schema(format = DateTime)]
    valid_until: String,
}

impl CampaignRequest {
    fn checked(self) -> Result<Campaign> {
        super::bounded("id", &self.id, 1, 128)?;
        super::bounded("name", &self.name, 1, 200)?;
        let wrong = |why: &str| Problem::new(&INVALID_BODY, why);
        let reduction = match (self.amount_minor, self.percent) {
            (Some(amount), None) => Reduction::Amount(amount),
            (None, Some(percent)) => {
                let rate: Rate = serde_json::from_value(Value::String(percent))
                    .map_err(|_| wrong("'percent' must be a decimal such as 12.5"))?;
                Reduction::Percent(rate)
            }
            _ => return Err(wrong("say either 'amountMinor' or 'percent'")),
        };
        let time =
            |text: String| serde_json::from_value::<Time>(Value::String(text)).map_err(|_| wrong("times are RFC 3339"));
        Ok(Campaign {
            id: self.id,
            name: self.name,
            reduction,
            threshold: self.threshold_minor,
            currency: self.currency.parse()?,
            total: self.total,
            valid_from: time(self.valid_from)?,
            valid_until: time(self.valid_until)?,
        })
    }
}

/// What was started.
#[derive(Serialize, ToSchema)]
struct CampaignView {
    id: String,
}

/// Start a campaign
#[utoipa::path(
    post, path = "/v1/campaigns", tag = "coupons", security(("bearer" = ["merchant"])), request_body = CampaignRequest,
    extensions(("x-problems" = json!(["already-exists"]))),
    responses((status = 201, description = "It is there", body = CampaignView)),
)]
async fn add_campaign(State(commerce): State<Arc<Commerce>>, Body(body): Body<CampaignRequest>) -> Result<Response> {
    let campaign = body.checked()?;
    commerce.shop.add_campaign(&campaign).await.map_err(error::in_body)?;
    Ok((StatusCode::CREATED, Json(CampaignView { id: campaign.id })).into_response())
}

/// The coupons that a buyer holds
#[utoipa::path(
    get, path = "/v1/buyers/{id}/coupons", tag = "coupons", security(("bearer" = ["buyer", "merchant", "operator"])),
    params(("id" = String, Path)), responses((status = 200, description = "All", body = All<schema::Coupon>)),
)]
async fn coupons(
    State(commerce): State<Arc<Commerce>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<All<Coupon>>> {
    owned(&caller, &id)?;
    Ok(Json(All { items: commerce.shop.coupons(&id).await? }))
}

/// Which coupon.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ClaimRequest {
    #[schema(min_length = 1, max_length = 128)]
    campaign: String,
}

/// Take a coupon of a campaign: one each
#[utoipa::path(
    post, path = "/v1/buyers/{id}/coupons", tag = "coupons", security(("bearer" = ["buyer"])),
    params(("id" = String, Path)), request_body = ClaimRequest,
    extensions(("x-problems" = json!(["coupon-refused", "full", "unknown-reference"]))),
    responses((status = 201, description = "The coupon", body = schema::Coupon)),
)]
async fn claim_coupon(
    State(commerce): State<Arc<Commerce>>,
    caller: Caller,
    Path(id): Path<String>,
    Body(body): Body<ClaimRequest>,
) -> Result<Response> {
    owned(&caller, &id)?;
    let coupon = commerce.shop.claim_coupon(&id, &body.campaign).await.map_err(error::in_body)?;
    let at = [(header::LOCATION, super::location("/v1/buyers", &id))];
    Ok((StatusCode::CREATED, at, Json(json!(coupon))).into_response())
}
