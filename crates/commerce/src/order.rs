//! Placing an order: stock, ledger and order in one transaction.

use crate::error::{Error, Result};
use crate::shop::Shop;
use bson::oid::ObjectId;
use bson::{Bson, DateTime, Document, doc};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use store::{FindOneAndUpdate, Session};

/// A line of an order.
#[derive(Clone, Debug)]
pub struct Line {
    /// What.
    pub sku: String,
    /// How many.
    pub quantity: i64,
}

/// What a buyer wants.
#[derive(Clone, Debug)]
pub struct OrderRequest {
    /// The order's number; one number is one order.
    pub number: String,
    /// The buyer's id in `users`.
    pub buyer: String,
    /// What; lines for the same SKU are added up.
    pub lines: Vec<Line>,
    /// Where to.
    pub city: String,
}

/// An order that was placed.
#[derive(Clone, Debug)]
pub struct PlacedOrder {
    /// Its `_id`.
    pub id: ObjectId,
    /// What is to be paid, in minor units.
    pub total_minor: i64,
}

impl Shop {
    /// Places an order: deducts all lines from the stock or none, with a ledger line each, and keeps what product, buyer
    /// and price were at this moment.
    ///
    /// # Errors
    /// [`Error::OutOfStock`], [`Error::UnknownSku`], [`Error::UnknownBuyer`], [`Error::InvalidLine`],
    /// [`Error::MixedCurrencies`]; [`Error::Store`] with code 11000 for a number that is taken.
    pub async fn place_order(&self, request: &OrderRequest) -> Result<PlacedOrder> {
        let mut lines: BTreeMap<String, i64> = BTreeMap::new();
        for line in &request.lines {
            if line.quantity <= 0 {
                return Err(Error::InvalidLine(format!("the quantity of {} must be positive", line.sku)));
            }
            *lines.entry(line.sku.clone()).or_default() += line.quantity;
        }
        if lines.is_empty() {
            return Err(Error::InvalidLine("it has no lines".to_owned()));
        }
        let refused = Arc::new(Mutex::new(None));
        let work = Arc::new(Work { shop: self.clone(), request: request.clone(), lines, refused: refused.clone() });
        let placed = self.store.with_transaction(move |session| {
            let work = work.clone();
            Box::pin(async move { work.run(session).await })
        });
        placed.await.map_err(|error| {
            let refused = refused.lock().unwrap_or_else(PoisonError::into_inner).take();
            refused.unwrap_or(Error::Store(error))
        })
    }
}

struct Work {
    shop: Shop,
    request: OrderRequest,
    lines: BTreeMap<String, i64>,
    /// Why the business refused, beside the error that ends the transaction.
    refused: Arc<Mutex<Option<Error>>>,
}

impl Work {
    async fn run(&self, session: &mut Session) -> store::Result<PlacedOrder> {
        let (shop, request) = (&self.shop, &self.request);
        let now = DateTime::now();
        let buyer = shop.collection("users").find_one(doc! { "_id": &request.buyer }, Some(session)).await?;
        let Some(buyer) = buyer else { return self.refuse(Error::UnknownBuyer(request.buyer.clone())) };
        let (mut items, mut total, mut currency) = (Vec::new(), 0_i64, None);
        for (sku, quantity) in &self.lines {
            let (deducted, product) = match self.deduct(session, sku, *quantity, now).await? {
                Ok(found) => found,
                Err(refusal) => return self.refuse(refusal),
            };
            let product_currency = product.get_str("currency").unwrap_or_default().to_owned();
            if *currency.get_or_insert(product_currency.clone()) != product_currency {
                return self.refuse(Error::MixedCurrencies);
            }
            let price = deducted.get_i64("price").unwrap_or_default();
            let line_total = price * quantity;
            total += line_total;
            items.push(Bson::Document(doc! {
                "skuId": sku,
                "productId": product.get("_id").cloned().unwrap_or(Bson::Null),
                "productName": product.get_str("productName").unwrap_or_default(),
                "imageUrl": product.get_str("imageUrl").unwrap_or_default(),
                "unitPrice": price,
                "quantity": *quantity as i32,
                "totalPrice": line_total,
            }));
        }
        let id = ObjectId::new();
        let order = doc! {
            "_id": id,
            "orderNumber": &request.number,
            "userId": &request.buyer,
            "buyer": {
                "username": buyer.get_str("username").unwrap_or_default(),
                "phone": buyer.get_str("phone").unwrap_or_default(),
            },
            "shippingAddress": { "city": &request.city },
            "items": items,
            "subtotal": total,
            "discount": 0_i64,
            "shippingFee": 0_i64,
            "total": total,
            "currency": currency.unwrap_or_default(),
            "status": "created",
            "createdAt": now,
        };
        shop.collection("orders").insert_one(order, Some(session)).await?;
        Ok(PlacedOrder { id, total_minor: total })
    }

    /// Takes a line from the stock, with its ledger line; gives the SKU after, and its product.
    async fn deduct(
        &self,
        session: &mut Session,
        sku: &str,
        quantity: i64,
        now: DateTime,
    ) -> store::Result<Result<(Document, Document)>> {
        let skus = self.shop.collection("skus");
        let guard = doc! { "_id": sku, "available": { "$gte": quantity } };
        let options = FindOneAndUpdate { after: true, ..FindOneAndUpdate::default() };
        let deducted = skus
            .find_one_and_update(guard, doc! { "$inc": { "available": -quantity } }, options, Some(&mut *session))
            .await?;
        let Some(deducted) = deducted else {
            let found = skus.find_one(doc! { "_id": sku }, Some(session)).await?;
            return Ok(Err(match found {
                Some(found) => Error::OutOfStock {
                    sku: sku.to_owned(),
                    asked: quantity,
                    available: found.get_i64("available").unwrap_or_default(),
                },
                None => Error::UnknownSku(sku.to_owned()),
            }));
        };
        let after = deducted.get_i64("available").unwrap_or_default();
        let entry = doc! {
            "skuId": sku, "type": "deduct", "quantity": -quantity, "beforeStock": after + quantity, "afterStock": after,
            "orderNumber": &self.request.number, "at": now, "operator": &self.request.buyer,
        };
        self.shop.collection("stockLedger").insert_one(entry, Some(&mut *session)).await?;
        let product_id = deducted.get("productId").cloned().unwrap_or(Bson::Null);
        let product = self.shop.collection("products").find_one(doc! { "_id": product_id }, Some(session)).await?;
        Ok(Ok((deducted, product.unwrap_or_default())))
    }

    /// Ends the transaction with a refusal of the business.
    fn refuse<T>(&self, refusal: Error) -> store::Result<T> {
        let message = refusal.to_string();
        *self.refused.lock().unwrap_or_else(PoisonError::into_inner) = Some(refusal);
        Err(store::Error::new(0, message))
    }
}
