//! The catalogue: everybody browses, merchants change it.

use super::{Commerce, error, page, paging, schema};
use crate::shared::cursor::{Page, Paging};
use crate::shared::etag::{IfMatch, Tagged};
use crate::shared::extract::{Body, Path, Query};
use crate::shared::problem::{INVALID_QUERY, Problem, Result};
use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use commerce::{Category, Money, NewProduct, NewSku, Product, ProductList};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes() -> OpenApiRouter<Arc<Commerce>> {
    OpenApiRouter::default()
        .routes(routes!(list_products, add_product))
        .routes(routes!(product, change_product))
        .routes(routes!(set_product_status))
        .routes(routes!(categories))
        .routes(routes!(set_category))
        .routes(routes!(add_sku))
        .routes(routes!(set_price))
}

/// Which products.
#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ProductQuery {
    /// Of this category.
    category: Option<String>,
    /// From this price on, in minor units; with a category, and the cheapest first.
    #[param(minimum = 0)]
    min_price: Option<i64>,
    /// Below this price, in minor units; with a category, and the cheapest first.
    #[param(minimum = 0)]
    max_price: Option<i64>,
    /// With an attribute, such as `colour:red`; the cheapest first.
    #[param(pattern = "^[^:]+:.+$")]
    attribute: Option<String>,
    /// How many items (default 20, at most 100).
    #[param(minimum = 1, maximum = 100)]
    limit: Option<i64>,
    /// Where to go on: `nextCursor` of the page before.
    cursor: Option<String>,
}

impl ProductQuery {
    fn list(&self) -> Result<ProductList> {
        let wrong = |why: &str| Err(Problem::new(&INVALID_QUERY, why));
        let priced = self.min_price.is_some() || self.max_price.is_some();
        match (&self.category, &self.attribute) {
            (_, Some(_)) if priced => wrong("'attribute' goes without 'minPrice' and 'maxPrice'"),
            (category, Some(attribute)) => match attribute.split_once(':') {
                Some((name, value)) if !name.is_empty() && !value.is_empty() => Ok(ProductList::Attribute {
                    name: name.to_owned(),
                    value: value.to_owned(),
                    category: category.clone(),
                }),
                _ => wrong("'attribute' must be a name, a colon and a value, such as colour:red"),
            },
            (Some(category), None) if priced => Ok(ProductList::CategoryByPrice {
                category: category.clone(),
                from: self.min_price,
                to: self.max_price,
            }),
            (Some(category), None) => Ok(ProductList::Category(category.clone())),
            (None, None) => wrong("name a 'category' or an 'attribute'; there is no list of all products"),
        }
    }
}

/// Products on sale
#[utoipa::path(
    get, path = "/v1/products", tag = "catalogue", security(()), params(ProductQuery),
    responses((status = 200, description = "A page of them", body = Page<schema::Product>)),
)]
async fn list_products(
    State(commerce): State<Arc<Commerce>>,
    uri: Uri,
    Query(query): Query<ProductQuery>,
) -> Result<Page<Product>> {
    let at = Paging { limit: query.limit, cursor: query.cursor.clone() };
    let found = commerce.shop.products(&query.list()?, &paging(&at, &uri)?).await.map_err(error::in_query)?;
    page(&uri, &at, found)
}

/// A product
#[utoipa::path(
    get, path = "/v1/products/{id}", tag = "catalogue", security(()), params(("id" = String, Path)),
    responses((status = 200, description = "It", body = schema::Product, headers(("ETag" = String)))),
)]
async fn product(State(commerce): State<Arc<Commerce>>, Path(id): Path<String>) -> Result<Tagged<Product>> {
    let product = commerce.shop.product(&id).await?;
    Ok(Tagged::ok(product.version, product))
}

/// Categories, by their ids
#[utoipa::path(
    get, path = "/v1/categories", tag = "catalogue", security(()), params(Paging),
    responses((status = 200, description = "A page of them", body = Page<schema::Category>)),
)]
async fn categories(
    State(commerce): State<Arc<Commerce>>,
    uri: Uri,
    Query(at): Query<Paging>,
) -> Result<Page<Category>> {
    let wanted = paging(&at, &uri)?;
    let limit = wanted.limit.unwrap_or_default() + 1;
    let found = commerce.shop.categories(wanted.after.as_deref(), limit).await?;
    Ok(Page::of(&uri, at.limit()?, found, |category| category.id.clone()))
}

/// A category's facts.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct CategoryFacts {
    #[schema(min_length = 1, max_length = 128)]
    name: String,
    /// The category above it.
    #[serde(default)]
    #[schema(max_length = 128)]
    parent: String,
}

/// Put a category there, or rename it: the copies that products carry follow
#[utoipa::path(
    put, path = "/v1/categories/{id}", tag = "catalogue", security(("bearer" = ["merchant"])),
    params(("id" = String, Path)), request_body = CategoryFacts,
    responses((status = 200, description = "It", body = schema::Category)),
)]
async fn set_category(
    State(commerce): State<Arc<Commerce>>,
    Path(id): Path<String>,
    Body(body): Body<CategoryFacts>,
) -> Result<Json<Category>> {
    super::bounded("id", &id, 1, 128)?;
    super::bounded("name", &body.name, 1, 128)?;
    super::bounded("parent", &body.parent, 0, 128)?;
    let category = Category { id, name: body.name, parent: body.parent };
    commerce.shop.set_category(&category).await?;
    Ok(Json(category))
}

/// A price.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Price {
    /// In minor units.
    #[schema(minimum = 0)]
    amount_minor: i64,
    /// ISO 4217.
    #[schema(pattern = "^[A-Z]{3}$")]
    currency: String,
}

/// A category, as products carry it.
#[derive(Deserialize, ToSchema, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct CategoryRequest {
    id: String,
    name: String,
    parent: String,
}

/// A product's facts.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ProductFacts {
    #[schema(min_length = 1, max_length = 200)]
    name: String,
    price: Price,
    #[serde(default)]
    #[schema(max_length = 100)]
    brand: String,
    #[serde(default)]
    #[schema(max_length = 500)]
    image_url: String,
    #[serde(default)]
    #[schema(max_length = 100000)]
    description: String,
    #[serde(default)]
    category: CategoryRequest,
    /// What it can be found by, such as `colour` and `red`.
    #[serde(default)]
    attributes: BTreeMap<String, String>,
    #[serde(default)]
    #[schema(max_items = 20)]
    tags: Vec<String>,
}

/// A product to put on sale. It lists the facts itself: flattened, they would let unknown members pass, and their schema
/// would forbid `id`.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ProductRequest {
    #[schema(min_length = 1, max_length = 128)]
    id: String,
    #[schema(min_length = 1, max_length = 200)]
    name: String,
    price: Price,
    #[serde(default)]
    #[schema(max_length = 100)]
    brand: String,
    #[serde(default)]
    #[schema(max_length = 500)]
    image_url: String,
    #[serde(default)]
    #[schema(max_length = 100000)]
    description: String,
    #[serde(default)]
    category: CategoryRequest,
    /// What it can be found by, such as `colour` and `red`.
    #[serde(default)]
    attributes: BTreeMap<String, String>,
    #[serde(default)]
    #[schema(max_items = 20)]
    tags: Vec<String>,
}

impl ProductRequest {
    fn split(self) -> (String, ProductFacts) {
        let ProductRequest { id, name, price, brand, image_url, description, category, attributes, tags } = self;
        (id, ProductFacts { name, price, brand, image_url, description, category, attributes, tags })
    }
}

impl ProductFacts {
    fn of(self, id: String) -> Result<NewProduct> {
        super::bounded("name", &self.name, 1, 200)?;
        super::bounded("brand", &self.brand, 0, 100)?;
        super::bounded("imageUrl", &self.image_url, 0, 500)?;
        super::bounded("description", &self.description, 0, 100_000)?;
        let short = self.tags.iter().chain(self.attributes.keys()).chain(self.attributes.values());
        for text in short.chain([&self.category.id, &self.category.name, &self.category.parent]) {
            super::bounded("tags, attributes and category", text, 0, 128)?;
        }
        if self.tags.len() > 20 || self.attributes.len() > 100 {
            return Err(Problem::new(&crate::shared::problem::INVALID_BODY, "at most 20 tags and 100 attributes"));
        }
        let currency = self.price.currency.parse()?;
        let CategoryRequest { id: category, name, parent } = self.category;
        Ok(NewProduct {
            id,
            name: self.name,
            price: Money::new(self.price.amount_minor, currency),
            brand: self.brand,
            image_url: self.image_url,
            description: self.description,
            category: Category { id: category, name, parent },
            attributes: self.attributes,
            tags: self.tags,
        })
    }
}

/// Put a product on sale
#[utoipa::path(
    post, path = "/v1/products", tag = "catalogue", security(("bearer" = ["merchant"])), request_body = ProductRequest,
    extensions(("x-problems" = json!(["already-exists"]))),
    responses((status = 201, description = "It", body = schema::Product, headers(("ETag" = String)))),
)]
async fn add_product(State(commerce): State<Arc<Commerce>>, Body(body): Body<ProductRequest>) -> Result<Response> {
    let (id, facts) = body.split();
    super::bounded("id", &id, 1, 128)?;
    let new = facts.of(id)?;
    commerce.shop.add_product(&new).await.map_err(error::in_body)?;
    let product = commerce.shop.product(&new.id).await?;
    let at = [(header::LOCATION, super::location("/v1/products", &new.id))];
    let tagged = Tagged { status: StatusCode::CREATED, version: product.version, body: product };
    Ok((at, tagged).into_response())
}

/// Change a product's facts; orders keep what they were
#[utoipa::path(
    put, path = "/v1/products/{id}", tag = "catalogue", security(("bearer" = ["merchant"])),
    params(("id" = String, Path)), request_body = ProductFacts,
    extensions(("x-if-match" = json!(true)), ("x-problems" = json!(["currency-mismatch"]))),
    responses((status = 200, description = "It", body = schema::Product, headers(("ETag" = String)))),
)]
async fn change_product(
    State(commerce): State<Arc<Commerce>>,
    Path(id): Path<String>,
    if_match: IfMatch,
    Body(body): Body<ProductFacts>,
) -> Result<Tagged<Product>> {
    let facts = body.of(id.clone())?;
    let expected = if_match.expected(commerce.shop.product(&id).await?.version)?;
    commerce.shop.update_product(&facts, expected).await?;
    let product = commerce.shop.product(&id).await?;
    Ok(Tagged::ok(product.version, product))
}

/// Whether a product can be seen and bought.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum ProductStatus {
    Active,
    Draft,
    Retired,
}

/// A product's new status.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct StatusRequest {
    status: ProductStatus,
}

/// Put a product on or off sale
#[utoipa::path(
    put, path = "/v1/products/{id}/status", tag = "catalogue", security(("bearer" = ["merchant"])),
    params(("id" = String, Path)), request_body = StatusRequest,
    responses((status = 204, description = "It is so")),
)]
async fn set_product_status(
    State(commerce): State<Arc<Commerce>>,
    Path(id): Path<String>,
    Body(body): Body<StatusRequest>,
) -> Result<StatusCode> {
    let status = match body.status {
        ProductStatus::Active => "active",
        ProductStatus::Draft => "draft",
        ProductStatus::Retired => "retired",
    };
    commerce.shop.set_product_status(&id, status).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// A variant, with its first stock.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct SkuRequest {
    #[schema(min_length = 1, max_length = 128)]
    id: String,
    /// In minor units of the product's currency.
    #[schema(minimum = 0)]
    price_minor: i64,
    #[schema(minimum = 0)]
    quantity: i64,
    /// What distinguishes it: `colour` and `red`.
    #[serde(default)]
    attributes: BTreeMap<String, String>,
    /// How many one buyer may have; any number if it is missing.
    #[schema(minimum = 1)]
    per_buyer: Option<i64>,
}

/// Put a variant on the shelf
#[utoipa::path(
    post, path = "/v1/products/{id}/skus", tag = "catalogue", security(("bearer" = ["merchant"])),
    params(("id" = String, Path)), request_body = SkuRequest,
    extensions(("x-problems" = json!(["already-exists", "full"]))),
    responses((status = 201, description = "Its stock", body = schema::StockLevel)),
)]
async fn add_sku(
    State(commerce): State<Arc<Commerce>>,
    Path(product): Path<String>,
    Body(body): Body<SkuRequest>,
) -> Result<Response> {
    super::bounded("id", &body.id, 1, 128)?;
    for text in body.attributes.keys().chain(body.attributes.values()) {
        super::bounded("attributes", text, 0, 128)?;
    }
    let SkuRequest { id, price_minor, quantity, attributes, per_buyer } = body;
    let at = super::location("/v1/skus", &id);
    let new = NewSku { id: id.clone(), product_id: product, price_minor, quantity, attributes, per_buyer };
    commerce.shop.add_sku(&new).await?;
    let level = commerce.shop.stock(&id).await?;
    Ok((StatusCode::CREATED, [(header::LOCATION, at)], axum::Json(level)).into_response())
}

/// A variant's new price.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct PriceRequest {
    /// In minor units.
    #[schema(minimum = 0)]
    price_minor: i64,
}

/// Change a variant's price; orders keep what they were
#[utoipa::path(
    put, path = "/v1/skus/{id}/price", tag = "catalogue", security(("bearer" = ["merchant"])),
    params(("id" = String, Path)), request_body = PriceRequest,
    responses((status = 204, description = "It is so")),
)]
async fn set_price(
    State(commerce): State<Arc<Commerce>>,
    Path(id): Path<String>,
    Body(body): Body<PriceRequest>,
) -> Result<StatusCode> {
    commerce.shop.set_price(&id, body.price_minor).await?;
    Ok(StatusCode::NO_CONTENT)
}
