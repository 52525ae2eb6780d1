//! The shop: its collections, and what is on the shelf.

use crate::error::Result;
use bson::{DateTime, doc};
use store::{Collection, Store};

/// A shop in one database of a store.
#[derive(Clone)]
pub struct Shop {
    pub(crate) store: Store,
    database: String,
}

/// A product to put on the shelf.
#[derive(Clone, Debug)]
pub struct Product {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its price in minor units of the currency.
    pub price_minor: i64,
    /// ISO 4217.
    pub currency: String,
    /// Where its picture is.
    pub image_url: String,
}

/// A variant of a product, with its stock.
#[derive(Clone, Debug)]
pub struct Sku {
    /// Its id.
    pub id: String,
    /// The product.
    pub product_id: String,
    /// Its price in minor units of the product's currency.
    pub price_minor: i64,
    /// How many are there.
    pub quantity: i64,
}

impl Shop {
    /// A shop in a database.
    pub fn new(store: Store, database: &str) -> Shop {
        Shop { store, database: database.to_owned() }
    }

    pub(crate) fn collection(&self, name: &str) -> Collection {
        self.store.collection(&self.database, name)
    }

    /// Creates the indexes that the shop's queries and rules need; what is there stays.
    ///
    /// # Errors
    /// A store that fails, an index of the same name and another key.
    pub async fn ensure_indexes(&self) -> Result<()> {
        self.collection("orders").create_index(doc! { "orderNumber": 1 }, true).await?;
        self.collection("orders").create_index(doc! { "userId": 1, "createdAt": -1 }, false).await?;
        self.collection("skus").create_index(doc! { "productId": 1 }, false).await?;
        self.collection("stockLedger").create_index(doc! { "skuId": 1, "at": 1 }, false).await?;
        self.collection("stockLedger").create_index(doc! { "orderNumber": 1 }, false).await?;
        Ok(())
    }

    /// Puts a product on the shelf.
    ///
    /// # Errors
    /// A product of that id, a store that fails.
    pub async fn add_product(&self, product: &Product) -> Result<()> {
        let document = doc! {
            "_id": &product.id,
            "productName": &product.name,
            "brand": "",
            "price": product.price_minor,
            "currency": &product.currency,
            "imageUrl": &product.image_url,
            "tags": [],
            "status": "active",
            "createdAt": DateTime::now(),
            "skus": [],
        };
        Ok(self.collection("products").insert_one(document, None).await?)
    }

    /// Puts a variant on the shelf; its quantity is the ledger's first line.
    ///
    /// # Errors
    /// A SKU of that id, a store that fails.
    pub async fn add_sku(&self, sku: &Sku) -> Result<()> {
        let (shop, sku) = (self.clone(), sku.clone());
        let done = self.store.with_transaction(move |session| {
            let (shop, sku) = (shop.clone(), sku.clone());
            Box::pin(async move {
                let document = doc! {
                    "_id": &sku.id, "productId": &sku.product_id, "price": sku.price_minor, "available": sku.quantity,
                };
                shop.collection("skus").insert_one(document, Some(session)).await?;
                let entry = doc! {
                    "skuId": &sku.id, "type": "receive", "quantity": sku.quantity, "beforeStock": 0_i64,
                    "afterStock": sku.quantity, "at": DateTime::now(), "operator": "shop",
                };
                shop.collection("stockLedger").insert_one(entry, Some(session)).await
            })
        });
        Ok(done.await?)
    }

    /// How many of a SKU are there; `None` when there is no such SKU.
    ///
    /// # Errors
    /// A store that fails.
    pub async fn available(&self, sku: &str) -> Result<Option<i64>> {
        let found = self.collection("skus").find_one(doc! { "_id": sku }, None).await?;
        Ok(found.and_then(|sku| sku.get_i64("available").ok()))
    }

    /// What the ledger says that there is of a SKU: the sum of its lines.
    ///
    /// # Errors
    /// A store that fails.
    pub async fn ledger_total(&self, sku: &str) -> Result<i64> {
        let lines = self.collection("stockLedger").find(doc! { "skuId": sku }, store::Find::default(), None).await?;
        Ok(lines.iter().filter_map(|line| line.get_i64("quantity").ok()).sum())
    }
}
