//! Buyers: the shop's users, each of whom sees only themselves.

use super::{All, Commerce, error, owned, schema};
use crate::shared::auth::Caller;
use crate::shared::extract::{Body, Path};
use crate::shared::problem::Result;
use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use commerce::{Address, NewUser, Profile, Spending, User};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes() -> OpenApiRouter<Arc<Commerce>> {
    OpenApiRouter::default()
        .routes(routes!(add_buyer))
        .routes(routes!(buyer))
        .routes(routes!(spending))
        .routes(routes!(set_default_address))
        .routes(routes!(profile, set_profile))
}

/// Where goods go.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct AddressRequest {
    #[serde(default)]
    #[schema(max_length = 200)]
    receiver: String,
    #[serde(default)]
    #[schema(max_length = 40)]
    phone: String,
    /// Reports count by it.
    #[schema(min_length = 1, max_length = 100)]
    city: String,
    #[serde(default)]
    #[schema(max_length = 200)]
    street: String,
    #[serde(default)]
    #[schema(max_length = 20)]
    postal_code: String,
}

impl AddressRequest {
    /// The domain's address, within its bounds.
    pub(super) fn checked(self) -> Result<Address> {
        let AddressRequest { receiver, phone, city, street, postal_code } = self;
        super::bounded("city", &city, 1, 100)?;
        for (name, text, max) in [
            ("receiver", &receiver, 200),
            ("phone", &phone, 40),
            ("street", &street, 200),
            ("postalCode", &postal_code, 20),
        ] {
            super::bounded(name, text, 0, max)?;
        }
        Ok(Address { receiver, phone, city, street, postal_code })
    }
}

/// Somebody to sign up.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct BuyerRequest {
    /// Their id, as in their token's subject; a fresh one unless given.
    #[schema(min_length = 1, max_length = 128)]
    id: Option<String>,
    #[schema(min_length = 1, max_length = 128)]
    username: String,
    #[serde(default)]
    #[schema(max_length = 40)]
    phone: String,
    default_address: Option<AddressRequest>,
}

/// Sign a buyer up
#[utoipa::path(
    post, path = "/v1/buyers", tag = "buyers", security(("bearer" = ["merchant", "operator"])),
    request_body = BuyerRequest, extensions(("x-problems" = json!(["already-exists"]))),
    responses((status = 201, description = "The buyer", body = schema::Buyer)),
)]
async fn add_buyer(State(commerce): State<Arc<Commerce>>, Body(body): Body<BuyerRequest>) -> Result<Response> {
    if let Some(id) = &body.id {
        super::bounded("id", id, 1, 128)?;
    }
    super::bounded("phone", &body.phone, 0, 40)?;
    let default_address = body.default_address.map(AddressRequest::checked).transpose()?;
    let new = NewUser { id: body.id, username: body.username, phone: body.phone, default_address };
    let id = commerce.shop.add_user(&new).await.map_err(error::in_body)?;
    let user = commerce.shop.user(&id).await?;
    Ok((StatusCode::CREATED, [(header::LOCATION, super::location("/v1/buyers", &id))], Json(user)).into_response())
}

/// A buyer: oneself, or any for the shop's staff
#[utoipa::path(
    get, path = "/v1/buyers/{id}", tag = "buyers", security(("bearer" = ["buyer", "merchant", "operator"])),
    params(("id" = String, Path)), responses((status = 200, description = "The buyer", body = schema::Buyer)),
)]
async fn buyer(State(commerce): State<Arc<Commerce>>, caller: Caller, Path(id): Path<String>) -> Result<Json<User>> {
    owned(&caller, &id)?;
    Ok(Json(commerce.shop.user(&id).await?))
}

/// What a buyer's orders that are paid, shipped or signed come to, by currency
#[utoipa::path(
    get, path = "/v1/buyers/{id}/spending", tag = "buyers", security(("bearer" = ["buyer", "merchant", "operator"])),
    params(("id" = String, Path)), responses((status = 200, description = "All", body = All<schema::Spending>)),
)]
async fn spending(
    State(commerce): State<Arc<Commerce>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<All<Spending>>> {
    owned(&caller, &id)?;
    Ok(Json(All { items: commerce.shop.spending(&id).await? }))
}

/// Set where one's goods go unless said otherwise
#[utoipa::path(
    put, path = "/v1/buyers/{id}/default-address", tag = "buyers",
    security(("bearer" = ["buyer", "merchant", "operator"])), params(("id" = String, Path)),
    request_body = AddressRequest, responses((status = 204, description = "It is set")),
)]
async fn set_default_address(
    State(commerce): State<Arc<Commerce>>,
    caller: Caller,
    Path(id): Path<String>,
    Body(body): Body<AddressRequest>,
) -> Result<StatusCode> {
    owned(&caller, &id)?;
    commerce.shop.set_default_address(&id, &body.checked()?).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// What is known of a buyer that hardly anybody reads.
#[derive(Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ProfileView {
    #[schema(max_length = 200)]
    real_name: String,
    #[schema(max_length = 40)]
    id_number: String,
    /// By their last four digits.
    #[schema(max_items = 20)]
    cards: Vec<String>,
    #[schema(max_length = 200)]
    insurance: String,
}

/// The rarely read part of a buyer
#[utoipa::path(
    get, path = "/v1/buyers/{id}/profile", tag = "buyers", security(("bearer" = ["buyer", "operator"])),
    params(("id" = String, Path)), responses((status = 200, description = "It", body = ProfileView)),
)]
async fn profile(
    State(commerce): State<Arc<Commerce>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<ProfileView>> {
    owned(&caller, &id)?;
    let Profile { real_name, id_number, cards, insurance } = commerce.shop.profile(&id).await?;
    Ok(Json(ProfileView { real_name, id_number, cards, insurance }))
}

/// Write the rarely read part of a buyer
#[utoipa::path(
    put, path = "/v1/buyers/{id}/profile", tag = "buyers", security(("bearer" = ["buyer", "operator"])),
    params(("id" = String, Path)), request_body = ProfileView, extensions(("x-problems" = json!(["full"]))),
    responses((status = 204, description = "It is written")),
)]
async fn set_profile(
    State(commerce): State<Arc<Commerce>>,
    caller: Caller,
    Path(id): Path<String>,
    Body(body): Body<ProfileView>,
) -> Result<StatusCode> {
    owned(&caller, &id)?;
    let ProfileView { real_name, id_number, cards, insurance } = body;
    for text in [&real_name, &id_number, &insurance].into_iter().chain(&cards) {
        super::bounded("profile", text, 0, 200)?;
    }
    commerce.shop.set_profile(&id, &Profile { real_name, id_number, cards, insurance }).await?;
    Ok(StatusCode::NO_CONTENT)
}
