//! Commerce on a store: catalogue, carts, orders, stock, payments, coupons, parcels, returns, reviews, reports.
//!
//! A [`Shop`] lives in one database of a store. What it stores is declared in `models/shop`; what it promises:
//!
//! - stock is never oversold and never leaks ([`Shop::place_order`], [`Shop::expire_holds`], [`Shop::reconcile`]);
//! - an order moves along its states only, and what it says about goods, buyer and address never changes;
//! - what is asked for twice under one key happens once.
//!
//! Everything that changes documents goes through the shop's till: many jobs to a transaction, each of which is done
//! or leaves no trace. Refusals are facts of the business ([`Error::OutOfStock`] …), never texts to be parsed.
//!
//! Somebody has to call [`Shop::housekeeping`] every second or so, and [`Shop::settle_payments`] every few seconds.
//! [`Shop::verify`] recomputes all of it from what is stored.

mod aftersale;
mod cache;
mod cart;
mod catalogue;
mod coupon;
mod error;
mod fields;
mod flash;
mod id;
mod kept;
mod logistics;
mod money;
mod note;
mod order;
mod page;
mod payment;
mod report;
mod review;
mod shop;
pub mod states;
mod stock;
mod till;
mod time;
mod unit;
mod user;
mod verify;
mod webhook;

pub use aftersale::{AfterSale, AfterSaleKind, AfterSaleRequest};
pub use cache::{DETAIL_TTL, LIST_TTL, MAX_CACHED};
pub use cart::{Cart, Checkout};
pub use catalogue::{Category, MAX_SKUS, NewProduct, NewSku, Product, ProductList, ReviewSummary, Variant};
pub use coupon::{Campaign, Coupon, MAX_COUPONS, Reduction};
pub use error::{CouponRefusal, Error, Fault, Result};
pub use flash::{
    FlashSale, MAX_OPEN_SALES, MAX_WRITTEN, NewFlashSale, OpenSale, Reservation, Reserved, SaleLevel, WRITE_DOWN_GRACE,
    Written,
};
pub use id::MAX_ID_BYTES;
pub use logistics::{MAX_EVENTS, MAX_PARCELS, NewParcel, Parcel, TrackEvent};
pub use money::{Currency, MAX_RATE_SCALE, Money, Rate, split};
pub use note::{Note, NoteWrite};
pub use order::{
    Address, Buyer, Discount, HistoryEntry, Item, ItemSummary, LatestLogistics, Line, MAX_LINES, MAX_QUANTITY, Order,
    OrderFilter, OrderRequest, OrderSummary, PaymentSummary, ReturnedLine,
};
pub use page::{DEFAULT_PAGE, MAX_PAGE, Page, Paging};
pub use payment::{
    ASK_AFTER, Accepted, Books, Callback, ChargeRequest, Events, Faults, MAX_ATTEMPTS, MAX_CALLBACKS, MAX_REFUNDS,
    Payment, Provider, ProviderError, READ_AFTER, Refund, RefundOptions, RefundRequest, Reported, SIGNATURE_TOLERANCE,
    Signed, Simulator,
};
pub use report::{Report, ReportBy, ReportRequest, ReportRow, ReportSource};
pub use review::{MAX_REVIEW_BYTES, NewReview, Review};
pub use shop::{Clock, Keeping, LatePayment, MODEL, Settings, Shop};
pub use stock::{Discrepancy, LedgerEntry, MAX_SWEEP, MOVEMENTS, Movement, Reconciliation, StockLevel};
pub use till::{MAX_BATCH, MAX_OWN_BATCH, MAX_QUEUE};
pub use time::Time;
pub use user::{LastLogin, MAX_CARDS, NewUser, Profile, Spending, User};
pub use verify::{MAX_VIOLATIONS, Verdict};
pub use webhook::{
    MAX_ENDPOINTS, WEBHOOK_EVENTS, WEBHOOK_RETRIES, WebhookAnswer, WebhookCall, WebhookDelivery, WebhookEndpoint,
};

impl Shop {
    /// What has to be done again and again: lets holds go whose time is over, brings the catalogue's stock up to date.
    ///
    /// # Errors
    /// A store that fails.
    pub async fn housekeeping(&self) -> Result<()> {
        self.expire_holds().await?;
        self.settle_catalogue().await?;
        Ok(())
    }
}
