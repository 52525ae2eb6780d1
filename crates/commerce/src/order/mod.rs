//! Orders: placing them, reading them, moving them on.
//!
//! What an order says about goods, prices, buyer and address is taken when it is placed and never changes afterwards;
//! what happens to it later (states, money, parcels, returns) stands beside that. The id of an order placed under an
//! idempotency key is derived from the buyer and the key, so that a button pressed ten times is one order.

mod change;
mod place;
mod read;

pub(crate) use change::{advance, close_unpaid};
pub(crate) use place::{order_id, place, reads, sum_lines};
pub use read::{ItemSummary, OrderFilter, OrderSummary};

use crate::error::Result;
use crate::fields::{Fields, from_document};
use crate::money::{Currency, Money};
use crate::time::Time;
use bson::Document;
use serde::{Deserialize, Serialize};

/// The most lines of an order.
pub const MAX_LINES: usize = 200;

/// The most of one SKU in an order.
pub const MAX_QUANTITY: i64 = 1_000_000;

/// A line of an order or a cart.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Line {
    /// What.
    #[serde(alias = "skuId")]
    pub sku: String,
    /// How many.
    pub quantity: i64,
}

/// Where goods go.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Address {
    /// Who receives them.
    pub receiver: String,
    /// The telephone number.
    pub phone: String,
    /// The city; reports count by it.
    pub city: String,
    /// Street and house.
    pub street: String,
    /// The postal code.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub postal_code: String,
}

/// What a buyer wants.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OrderRequest {
    /// The idempotency key: the same one with the same request is the same order.
    pub key: Option<String>,
    /// The order's number, for those who number by themselves; otherwise it gets one.
    pub number: Option<String>,
    /// The buyer's id.
    pub buyer: String,
    /// What; lines for the same SKU are added up.
    pub lines: Vec<Line>,
    /// Where to; the buyer's default address unless given.
    pub address: Option<Address>,
    /// A coupon that the buyer holds.
    pub coupon: Option<String>,
    /// What the buyer wants to say.
    pub remark: String,
}

/// The buyer as the order knows them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Buyer {
    /// The name.
    pub username: String,
    /// The telephone number.
    pub phone: String,
}

/// An item of an order: the product as it was, and what it cost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Item {
    /// The SKU.
    pub sku_id: String,
    /// The product.
    pub product_id: String,
    /// Its name then.
    pub product_name: String,
    /// Its picture then.
    pub image_url: String,
    /// What made this SKU differ from others of the product.
    #[serde(default)]
    pub specs: String,
    /// The price of one, in minor units.
    pub unit_price: i64,
    /// How many.
    pub quantity: i64,
    /// `unitPrice` times `quantity`.
    pub total_price: i64,
    /// This item's part of the order's discount.
    pub discount: i64,
    /// `totalPrice` less `discount`.
    pub payable: i64,
}

/// A deduction from the goods' value, with what gave it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Discount {
    /// `coupon`.
    pub kind: String,
    /// Which one.
    pub id: String,
    /// In minor units.
    pub amount: i64,
}

/// A step in an order's history.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HistoryEntry {
    /// The state reached.
    pub state: String,
    /// When.
    pub at: Time,
    /// Who did it.
    #[serde(default)]
    pub by: String,
    /// Why.
    #[serde(default)]
    pub why: String,
}

/// What is known of an order's money, in minor units.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PaymentSummary {
    /// The attempts to pay.
    pub attempts: Vec<String>,
    /// The attempt that paid it.
    pub payment_id: Option<String>,
    /// How it was paid.
    pub method: Option<String>,
    /// What was captured for it.
    pub captured: i64,
    /// What is on its way back.
    pub refunding: i64,
    /// What went back.
    pub refunded: i64,
    /// When it was paid.
    pub paid_at: Option<Time>,
}

/// What came back of an item.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReturnedLine {
    /// The SKU; empty for the shipping fee.
    pub sku_id: String,
    /// How many are back or on their way.
    pub quantity: i64,
    /// What was given back for it or is on its way, in minor units.
    pub refunded: i64,
}

/// The last that is known of an order's parcels.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LatestLogistics {
    /// What happened.
    pub status: String,
    /// Where.
    #[serde(default)]
    pub location: String,
    /// When.
    pub time: Time,
    /// The parcel.
    #[serde(default)]
    pub parcel_id: String,
}

/// An order, all of it: one read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Order {
    /// Its id.
    #[serde(rename(deserialize = "_id"), alias = "id")]
    pub id: String,
    /// Its number.
    pub order_number: String,
    /// The buyer's id.
    pub user_id: String,
    /// The buyer as known then.
    pub buyer: Buyer,
    /// Where it goes.
    pub shipping_address: Address,
    /// What was bought.
    pub items: Vec<Item>,
    /// The value of the goods, in minor units; the items' `totalPrice` added up.
    pub subtotal: i64,
    /// What is deducted; the discounts added up.
    pub discount: i64,
    /// Each deduction.
    #[serde(default)]
    pub discounts: Vec<Discount>,
    /// What is charged for shipping.
    pub shipping_fee: i64,
    /// What is to be paid: `subtotal` less `discount` plus `shippingFee`.
    pub total: i64,
    /// Of what.
    pub currency: Currency,
    /// The coupon used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coupon: Option<String>,
    /// Where it stands; see [`crate::states::ORDER`].
    pub status: String,
    /// How it came there, the latest last; bounded.
    #[serde(default)]
    pub status_history: Vec<HistoryEntry>,
    /// When it was placed.
    pub created_at: Time,
    /// Until when its stock is held, while it is not paid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold_until: Option<Time>,
    /// Its money.
    #[serde(default)]
    pub payment: PaymentSummary,
    /// Its parcels.
    #[serde(default)]
    pub parcels: Vec<String>,
    /// The last that is known of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latest_logistics: Option<LatestLogistics>,
    /// What came back of each item, goods and money; the empty SKU is the shipping fee.
    #[serde(default)]
    pub returns: Vec<ReturnedLine>,
    /// What the buyer said.
    #[serde(default)]
    pub remark: String,
    /// How often it was changed; for `expected` versions.
    pub version: i64,
}

impl Order {
    pub(crate) fn of(document: &Document) -> Result<Order> {
        from_document(document)
    }

    /// What is to be paid.
    pub fn total(&self) -> Money {
        Money::new(self.total, self.currency)
    }
}

/// The currency that a document names.
pub(crate) fn currency(document: &Document) -> Result<Currency> {
    document.text("currency").parse()
}
