//! The catalogue: products with their variants, and the lists that buyers browse.
//!
//! A product carries what its page and the lists need: its category, attributes such as `colour:red`, the stock of its
//! SKUs and their sum. The stock on it follows that of the SKUs a moment later ([`Shop::settle_catalogue`]), so that a
//! flash sale of one SKU does not rewrite a product for every unit; what can be bought is decided by the SKU alone.

use crate::error::{Error, Result};
use crate::fields::{Fields, from_document, to_document};
use crate::money::{Currency, Money};
use crate::page::{Page, Paging};
use crate::shop::Shop;
use crate::stock::{Movement, Reason, shift};
use crate::time::Time;
use crate::unit::Unit;
use bson::{Bson, Document, doc};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use store::Find;

/// The most variants of a product.
pub const MAX_SKUS: usize = 100;

/// How far back a settling looks beyond the last one, for transactions that were on their way.
const OVERLAP: Duration = Duration::from_secs(120);

/// A category, also as products carry it: what they carry follows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Category {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// The category above it.
    pub parent: String,
}

/// A product to put on sale, or to change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NewProduct {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// The price that lists show.
    pub price: Money,
    /// The brand.
    #[serde(default)]
    pub brand: String,
    /// Where its picture is.
    #[serde(default)]
    pub image_url: String,
    /// The text of its page.
    #[serde(default)]
    pub description: String,
    /// Its category.
    /// A category that is not there yet is put there; of one that is, the id says all.
    #[serde(default)]
    pub category: Category,
    /// What it can be found by, such as `colour` and `red`.
    #[serde(default)]
    pub attributes: BTreeMap<String, String>,
    /// Words.
    #[serde(default)]
    pub tags: Vec<String>,
}

impl NewProduct {
    /// A product with the least that it needs.
    pub fn new(id: &str, name: &str, price: Money) -> NewProduct {
        NewProduct {
            id: id.to_owned(),
            name: name.to_owned(),
            price,
            brand: String::new(),
            image_url: String::new(),
            description: String::new(),
            category: Category::default(),
            attributes: BTreeMap::new(),
            tags: Vec::new(),
        }
    }
}

/// A variant of a product, with its first stock.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NewSku {
    /// Its id.
    pub id: String,
    /// The product.
    pub product_id: String,
    /// Its price in minor units of the product's currency.
    pub price_minor: i64,
    /// How many are there.
    pub quantity: i64,
    /// What distinguishes it: `colour` and `red`, `size` and `M`.
    pub attributes: BTreeMap<String, String>,
    /// How many one buyer may have; none for any number.
    pub per_buyer: Option<i64>,
}

/// A variant as its product shows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Variant {
    /// The SKU.
    pub sku_id: String,
    /// Its price in minor units.
    pub price: i64,
    /// What distinguishes it.
    #[serde(default)]
    pub attributes: BTreeMap<String, String>,
    /// How many there were a moment ago.
    #[serde(default)]
    pub stock: i64,
}

/// A review as its product shows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReviewSummary {
    /// From 1 to 5.
    pub rating: i64,
    /// What was said.
    #[serde(default)]
    pub text: String,
    /// By whom.
    #[serde(default)]
    pub user_name: String,
    /// When.
    pub created_at: Time,
}

/// A product: all of its page, one read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Product {
    /// Its id.
    #[serde(rename(deserialize = "_id"), alias = "id")]
    pub id: String,
    /// Its name.
    pub product_name: String,
    /// The brand.
    #[serde(default)]
    pub brand: String,
    /// The price that lists show, in minor units.
    pub price: i64,
    /// Of what.
    pub currency: Currency,
    /// Where its picture is.
    #[serde(default)]
    pub image_url: String,
    /// The text of its page.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Its category.
    #[serde(default)]
    pub category: Category,
    /// `name:value`, those of its variants too.
    #[serde(default)]
    pub attributes: Vec<String>,
    /// Words.
    #[serde(default)]
    pub tags: Vec<String>,
    /// `active`, `draft` or `retired`.
    pub status: String,
    /// Since when it is here.
    pub created_at: Time,
    /// Its variants.
    #[serde(default)]
    pub skus: Vec<Variant>,
    /// How many there were of all variants a moment ago.
    #[serde(default)]
    pub total_stock: i64,
    /// How many were sold.
    #[serde(default)]
    pub sold_count: i64,
    /// How many reviews can be seen.
    #[serde(default)]
    pub review_count: i64,
    /// The ratings of those added up; the average is this by `reviewCount`.
    #[serde(default)]
    pub rating_total: i64,
    /// The latest three.
    #[serde(default)]
    pub latest_reviews: Vec<ReviewSummary>,
    /// How often it was changed.
    #[serde(default)]
    pub version: i64,
}

/// Which list of products.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ProductList {
    /// Those of a category, the newest first.
    Category(String),
    /// Those of a category by price, from and to (exclusive) in minor units, the cheapest first.
    CategoryByPrice {
        /// The category.
        category: String,
        /// The least price.
        from: Option<i64>,
        /// Below this price.
        to: Option<i64>,
    },
    /// Those with an attribute, of any category or of one, the cheapest first: all red shirts.
    Attribute {
        /// The attribute's name.
        name: String,
        /// Its value.
        value: String,
        /// Only of this category.
        category: Option<String>,
    },
    /// Those of which fewer than so many are there, the scarcest first.
    LowStock {
        /// Fewer than this.
        below: i64,
    },
}

/// What a list reads of a product: not its text.
fn projection() -> Document {
    doc! { "description": 0, "latestReviews": 0 }
}

impl Shop {
    /// Puts a category there, or gives it another name or place; the copies that its products carry follow.
    ///
    /// # Errors
    /// [`Error::Invalid`].
    pub async fn set_category(&self, category: &Category) -> Result<()> {
        check_id(&category.id)?;
        let category = category.clone();
        let done = self.run(move |unit| {
            let category = category.clone();
            Box::pin(async move {
                match unit.get("categories", &category.id).await?.is_some() {
                    true => {
                        let document = unit.edit("categories", "category", &category.id).await?;
                        document.insert("name", &category.name);
                        document.insert("parent", &category.parent);
                        Ok(())
                    }
                    false => unit.insert("categories", "category", of_category(&category)).await,
                }
            })
        });
        done.await
    }

    /// A page of the categories, by their ids.
    ///
    /// # Errors
    /// A store that fails.
    pub async fn categories(&self, after: Option<&str>, limit: usize) -> Result<Vec<Category>> {
        let options = Find { sort: Some(doc! { "_id": 1 }), limit: limit as i64, ..Find::default() };
        let filter = after.map_or_else(Document::new, |after| doc! { "_id": { "$gt": after } });
        let found = self.collection("categories").find(filter, options, None).await?;
        let category = |document: &Document| Category {
            id: document.text("_id").to_owned(),
            name: document.text("name").to_owned(),
            parent: document.text("parent").to_owned(),
        };
        Ok(found.iter().map(category).collect())
    }

    /// Puts a product on sale.
    ///
    /// # Errors
    /// [`Error::AlreadyExists`], [`Error::Invalid`].
    pub async fn add_product(&self, product: &NewProduct) -> Result<()> {
        check_id(&product.id)?;
        if product.price.amount_minor < 0 {
            return Err(Error::invalid("price", "it must not be negative"));
        }
        let product = product.clone();
        let done = self.run(move |unit| {
            let product = product.clone();
            Box::pin(async move {
                let mut document = facts(&product)?;
                if let Some(category) = category(unit, &product.category).await? {
                    document.insert("category", category);
                }
                document.insert("_id", &product.id);
                document.insert("status", "active");
                document.insert("createdAt", unit.now);
                document.insert("skus", Bson::Array(Vec::new()));
                document.insert("totalStock", 0_i64);
                document.insert("soldCount", 0_i64);
                unit.insert("products", "product", document).await
            })
        });
        done.await
    }

    /// Changes a product's facts; orders keep what they were.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::VersionConflict`], [`Error::CurrencyMismatch`]: the currency of a product stays.
    pub async fn update_product(&self, product: &NewProduct, expected: Option<i64>) -> Result<()> {
        let product = product.clone();
        let done = self.run(move |unit| {
            let product = product.clone();
            Box::pin(async move {
                unit.expect_version("products", "product", &product.id, expected).await?;
                let category = category(unit, &product.category).await?;
                let document = unit.edit("products", "product", &product.id).await?;
                product.price.same_currency(Money::zero(crate::order::currency(document)?))?;
                let skus: Vec<Variant> =
                    document.parts("skus").into_iter().map(from_document).collect::<Result<_>>()?;
                document.extend(facts(&product)?);
                match category {
                    Some(category) => document.insert("category", category),
                    None => document.remove("category"),
                };
                document.insert("attributes", attributes(&product.attributes, &skus));
                Ok(())
            })
        });
        done.await
    }

    /// Puts a product on or off sale: `active`, `draft` or `retired`.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Invalid`].
    pub async fn set_product_status(&self, product: &str, status: &str) -> Result<()> {
        if !["active", "draft", "retired"].contains(&status) {
            return Err(Error::invalid("status", "it is active, draft or retired"));
        }
        let (product, status) = (product.to_owned(), status.to_owned());
        let done = self.run(move |unit| {
            let (product, status) = (product.clone(), status.clone());
            Box::pin(async move {
                unit.edit("products", "product", &product).await?.insert("status", status);
                Ok(())
            })
        });
        done.await
    }

    /// Puts a variant on the shelf; its quantity is the ledger's first line.
    ///
    /// # Errors
    /// [`Error::NotFound`] for its product, [`Error::AlreadyExists`], [`Error::Invalid`], [`Error::Full`].
    pub async fn add_sku(&self, sku: &NewSku) -> Result<()> {
        check_id(&sku.id)?;
        if sku.quantity < 0 || sku.price_minor < 0 || sku.per_buyer.is_some_and(|limit| limit <= 0) {
            return Err(Error::invalid("sku", "quantity and price are not negative, a limit is positive"));
        }
        let sku = sku.clone();
        let done = self.run(move |unit| {
            let sku = sku.clone();
            Box::pin(async move { add_sku(unit, &sku).await })
        });
        done.await
    }

    /// Changes a variant's price; orders keep what they were.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Invalid`].
    pub async fn set_price(&self, sku: &str, price_minor: i64) -> Result<()> {
        if price_minor < 0 {
            return Err(Error::invalid("price", "it must not be negative"));
        }
        let sku = sku.to_owned();
        let done = self.run(move |unit| {
            let sku = sku.clone();
            Box::pin(async move {
                let document = unit.edit("skus", "sku", &sku).await?;
                document.insert("price", price_minor);
                let product = document.text("productId").to_owned();
                let product = unit.edit("products", "product", &product).await?;
                if let Some(variant) = crate::fields::element_mut(product, "skus", "skuId", &sku) {
                    variant.insert("price", price_minor);
                }
                Ok(())
            })
        });
        done.await
    }

    /// A product.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub async fn product(&self, id: &str) -> Result<Product> {
        from_document(&self.by_id("products", "product", id).await?)
    }

    /// A page of products on sale.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a cursor that is none.
    pub async fn products(&self, list: &ProductList, paging: &Paging) -> Result<Page<Product>> {
        let mut filter = doc! { "status": "active" };
        let show = Some(projection());
        let page = match list {
            ProductList::Category(category) => {
                filter.insert("category.id", category);
                paging.newest_first(self, "products", filter, show, "createdAt").await?
            }
            ProductList::CategoryByPrice { category, from, to } => {
                filter.insert("category.id", category);
                let mut range = Document::new();
                from.iter().for_each(|from| drop(range.insert("$gte", *from)));
                to.iter().for_each(|to| drop(range.insert("$lt", *to)));
                if !range.is_empty() {
                    filter.insert("price", range);
                }
                paging.smallest_first(self, "products", filter, show, "price").await?
            }
            ProductList::Attribute { name, value, category } => {
                filter.insert("attributes", format!("{name}:{value}"));
                if let Some(category) = category {
                    filter.insert("category.id", category);
                }
                paging.smallest_first(self, "products", filter, show, "price").await?
            }
            ProductList::LowStock { below } => {
                filter.insert("totalStock", doc! { "$lt": *below });
                paging.smallest_first(self, "products", filter, show, "totalStock").await?
            }
        };
        page.map(|product| from_document(&product))
    }

    /// Brings the stock that products show up to date; gives how many products changed. To be called every second or so.
    /// It looks at what changed since the last time, which the store remembers, so nothing is forgotten over a restart.
    ///
    /// # Errors
    /// A store that fails.
    pub async fn settle_catalogue(&self) -> Result<usize> {
        let state = self.collection("shopState").find_one(doc! { "_id": "catalogue" }, None).await?;
        let since = state.and_then(|state| state.time("settled")).unwrap_or_default();
        let begun = self.now();
        let changed = doc! { "changedAt": { "$gte": since.minus(OVERLAP) } };
        let options = Find { projection: Some(doc! { "productId": 1 }), ..Find::default() };
        let skus = self.collection("skus").find(changed, options, None).await?;
        let products: BTreeSet<String> = skus.iter().map(|sku| sku.text("productId").to_owned()).collect();
        let mut settled = 0;
        for product in products {
            settled += usize::from(self.settle_product(&product).await?);
        }
        let done = self.run(move |unit| Box::pin(async move { unit.note_state("catalogue", "settled", begun).await }));
        done.await?;
        Ok(settled)
    }

    /// Brings the stock that one product shows up to date.
    ///
    /// # Errors
    /// A store that fails.
    pub async fn settle_product(&self, product: &str) -> Result<bool> {
        let options = Find {
            projection: Some(doc! { "available": 1, "sold": 1 }),
            limit: MAX_SKUS as i64 + 1,
            ..Find::default()
        };
        let skus = self.collection("skus").find(doc! { "productId": product }, options, None).await?;
        let product = product.to_owned();
        let done = self.run(move |unit| {
            let (product, skus) = (product.clone(), skus.clone());
            Box::pin(async move { settle(unit, &product, &skus).await })
        });
        done.await
    }
}

async fn settle(unit: &mut Unit<'_>, product: &str, skus: &[Document]) -> Result<bool> {
    let Some(stored) = unit.get("products", product).await?.cloned() else { return Ok(false) };
    let total: i64 = skus.iter().map(|sku| sku.long("available")).sum();
    let sold: i64 = skus.iter().map(|sku| sku.long("sold")).sum();
    let mut changed = stored.clone();
    changed.insert("totalStock", total);
    changed.insert("soldCount", sold);
    for sku in skus {
        if let Some(variant) = crate::fields::element_mut(&mut changed, "skus", "skuId", sku.text("_id")) {
            variant.insert("stock", sku.long("available"));
        }
    }
    if changed == stored {
        return Ok(false);
    }
    changed.remove("version");
    unit.edit("products", "product", product).await?.extend(changed);
    Ok(true)
}

fn check_id(id: &str) -> Result<()> {
    match id.is_empty() || id.len() > crate::id::MAX_ID_BYTES {
        true => Err(Error::invalid("id", format!("it has 1 to {} bytes", crate::id::MAX_ID_BYTES))),
        false => Ok(()),
    }
}

fn of_category(category: &Category) -> Document {
    doc! { "_id": &category.id, "name": &category.name, "parent": &category.parent }
}

/// The copy of its category that a product carries; a category that is not there yet is put there.
async fn category(unit: &mut Unit<'_>, wanted: &Category) -> Result<Option<Document>> {
    if wanted.id.is_empty() {
        return Ok(None);
    }
    check_id(&wanted.id)?;
    if unit.get("categories", &wanted.id).await?.is_none() {
        unit.insert("categories", "category", of_category(wanted)).await?;
    }
    let known = unit.need("categories", "category", &wanted.id).await?;
    Ok(Some(doc! { "id": &wanted.id, "name": known.text("name"), "parent": known.text("parent") }))
}

/// What the seller says about a product, but for its category.
fn facts(product: &NewProduct) -> Result<Document> {
    Ok(doc! {
        "productName": &product.name,
        "brand": &product.brand,
        "price": product.price.amount_minor,
        "currency": product.price.currency.code(),
        "imageUrl": &product.image_url,
        "description": &product.description,
        "own": to_document(&product.attributes)?,
        "attributes": attributes(&product.attributes, &[]),
        "tags": &product.tags,
    })
}

/// The attributes of a product and its variants, as they are searched by.
fn attributes(own: &BTreeMap<String, String>, variants: &[Variant]) -> Vec<String> {
    let of_variants = variants.iter().flat_map(|variant| &variant.attributes);
    let pairs: BTreeSet<String> =
        own.iter().chain(of_variants).map(|(name, value)| format!("{name}:{value}")).collect();
    pairs.into_iter().collect()
}

async fn add_sku(unit: &mut Unit<'_>, sku: &NewSku) -> Result<()> {
    let now = unit.now;
    let mut document = doc! {
        "_id": &sku.id,
        "productId": &sku.product_id,
        "price": sku.price_minor,
        "attributes": to_document(&sku.attributes)?,
        "available": 0_i64,
        "held": 0_i64,
        "sold": 0_i64,
        "changedAt": now,
    };
    if let Some(limit) = sku.per_buyer {
        document.insert("perBuyer", limit);
    }
    let variant = Variant {
        sku_id: sku.id.clone(),
        price: sku.price_minor,
        attributes: sku.attributes.clone(),
        stock: sku.quantity,
    };
    let product = unit.edit("products", "product", &sku.product_id).await?;
    if product.parts("skus").len() >= MAX_SKUS {
        return Err(Error::Full { what: "product", max: MAX_SKUS });
    }
    crate::fields::push(product, "skus", to_document(&variant)?, MAX_SKUS);
    let total = product.long("totalStock") + sku.quantity;
    product.insert("totalStock", total);
    let own: BTreeMap<String, String> = product.part("own").map(from_document).transpose()?.unwrap_or_default();
    let variants: Vec<Variant> = product.parts("skus").into_iter().map(from_document).collect::<Result<_>>()?;
    product.insert("attributes", attributes(&own, &variants));
    unit.insert("skus", "sku", document).await?;
    if sku.quantity > 0 {
        let reason = Reason { reference: "first", order: None, why: "put on the shelf", operator: "shop" };
        shift(unit, Movement::Receive, &sku.id, sku.quantity, reason).await?;
    }
    Ok(())
}
