//! Reading orders: a detail is one read, a list page reads one light document each.

use super::Order;
use crate::Error;
use crate::error::Result;
use crate::fields::from_document;
use crate::money::Currency;
use crate::page::{Page, Paging};
use crate::shop::Shop;
use crate::time::Time;
use bson::{Document, doc};
use serde::{Deserialize, Serialize};

/// What a list shows of an order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OrderSummary {
    /// Its id.
    #[serde(rename(deserialize = "_id"), alias = "id")]
    pub id: String,
    /// Its number.
    pub order_number: String,
    /// The buyer's id.
    pub user_id: String,
    /// Where it stands.
    pub status: String,
    /// What is to be paid, in minor units.
    pub total: i64,
    /// Of what.
    pub currency: Currency,
    /// When it was placed.
    pub created_at: Time,
    /// Name, picture and quantity of what was bought.
    pub items: Vec<ItemSummary>,
    /// How often it was changed.
    #[serde(default)]
    pub version: i64,
}

/// What a list shows of an item.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ItemSummary {
    /// The product's name when it was bought.
    pub product_name: String,
    /// Its picture.
    pub image_url: String,
    /// How many.
    pub quantity: i64,
}

/// Which orders.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OrderFilter {
    /// A buyer's.
    pub buyer: Option<String>,
    /// Those in a state.
    pub status: Option<String>,
}

/// What a list reads.
fn projection() -> Document {
    doc! {
        "orderNumber": 1, "userId": 1, "status": 1, "total": 1, "currency": 1, "createdAt": 1, "version": 1,
        "items.productName": 1, "items.imageUrl": 1, "items.quantity": 1,
    }
}

impl Shop {
    /// An order.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub async fn order(&self, id: &str) -> Result<Order> {
        Order::of(&self.by_id("orders", "order", id).await?)
    }

    /// An order by its number.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub async fn order_by_number(&self, number: &str) -> Result<Order> {
        let found = self.collection("orders").find_one(doc! { "orderNumber": number }, None).await?;
        Order::of(&found.ok_or_else(|| Error::missing("order", number))?)
    }

    /// A page of orders, the newest first: of a buyer, in a state, or both.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a cursor that is none, or a filter that names neither buyer nor state.
    pub async fn orders(&self, filter: &OrderFilter, paging: &Paging) -> Result<Page<OrderSummary>> {
        let mut query = Document::new();
        if let Some(buyer) = &filter.buyer {
            query.insert("userId", buyer);
        }
        if let Some(status) = &filter.status {
            query.insert("status", status);
        }
        if query.is_empty() {
            return Err(Error::invalid("filter", "name a buyer or a state; there is no list of all orders"));
        }
        let found = paging.newest_first(self, "orders", query, Some(projection()), "createdAt").await?;
        found.map(|order| from_document(&order))
    }
}
