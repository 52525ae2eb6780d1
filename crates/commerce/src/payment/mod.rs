//! Payments: attempts, what providers report of them, refunds.
//!
//! ```text
//!   pay ──> attempt (pending) ── charge ──> provider ── callback ──> captured ──> the order is paid
//!                                              │                        └──> or the money goes back (rules below)
//!                                              └── look_up, when nothing comes
//! ```
//!
//! A report has one effect however often and in whatever order it comes: it moves states that only move forward. A
//! capture is never dropped. If its amount is another than was asked for, if the order is paid already, cancelled, or
//! expired with its stock gone, the money goes back by a refund that the same transaction notes. A refund is noted first
//! and sent afterwards, again and again under its key until the provider has answered.

mod callback;
mod provider;
mod refund;
mod signature;
mod simulator;

pub use callback::Accepted;
pub use provider::{Callback, ChargeRequest, Events, Provider, ProviderError, RefundRequest, Reported};
pub use refund::RefundOptions;
pub(crate) use refund::{add_to_line, note_refund};
pub use signature::{SIGNATURE_TOLERANCE, Signed};
pub use simulator::{Books, Faults, Simulator};

use crate::error::{Error, Result};
use crate::fields::{Fields, element, from_document};
use crate::money::Currency;
use crate::order::HistoryEntry;
use crate::shop::Shop;
use crate::states::{PAYMENT, Step};
use crate::time::Time;
use crate::unit::Unit;
use bson::{Document, doc};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use store::Find;

/// The most attempts to pay an order.
pub const MAX_ATTEMPTS: usize = 10;

/// The most refunds of a payment.
pub const MAX_REFUNDS: usize = 50;

/// The most callbacks that a payment keeps; the oldest go.
pub const MAX_CALLBACKS: usize = 20;

/// How long the shop waits for a callback before it asks.
pub const ASK_AFTER: Duration = Duration::from_secs(60);

/// How long the shop waits for an event's callback before it takes the event from the provider's list.
pub const READ_AFTER: Duration = Duration::from_secs(60 * 60);

/// The most pages of a provider's events that are read at a time.
const MAX_EVENT_PAGES: usize = 100;

/// The id of the place in the provider's events.
const EVENTS: &str = "provider";

/// A refund.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Refund {
    /// Its key: the same one is the same refund.
    pub key: String,
    /// In minor units.
    pub amount: i64,
    /// `pending`, `done` or `failed`.
    pub status: String,
    /// Why.
    #[serde(default)]
    pub why: String,
    /// When it was asked for.
    pub at: Time,
    /// When it was done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub done_at: Option<Time>,
}

/// An attempt to pay an order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Payment {
    /// Its id.
    #[serde(rename(deserialize = "_id"), alias = "id")]
    pub id: String,
    /// The order.
    pub order_id: String,
    /// The buyer.
    pub user_id: String,
    /// What was asked for, in minor units.
    pub amount: i64,
    /// Of what.
    pub currency: Currency,
    /// `card`, `wallet` or `transfer`.
    pub method: String,
    /// `pending`, `captured` or `failed`.
    pub status: String,
    /// How it came there.
    #[serde(default)]
    pub status_history: Vec<HistoryEntry>,
    /// What came, in minor units.
    pub captured: i64,
    /// What is on its way back.
    pub refunding: i64,
    /// What went back.
    pub refunded: i64,
    /// What the provider took back by itself.
    pub reversed: i64,
    /// Each refund.
    #[serde(default)]
    pub refunds: Vec<Refund>,
    /// When it was tried.
    pub created_at: Time,
    /// How often it was changed.
    #[serde(default)]
    pub version: i64,
}

impl Payment {
    /// What can still be refunded.
    pub fn left(&self) -> i64 {
        self.captured - self.refunding - self.refunded - self.reversed
    }
}

/// What can still be refunded of a payment.
fn left(payment: &Document) -> i64 {
    payment.long("captured") - payment.long("refunding") - payment.long("refunded") - payment.long("reversed")
}

impl Shop {
    /// Begins to pay an order: an attempt over all of its total. Under a key there is one attempt.
    ///
    /// # Errors
    /// [`Error::IllegalMove`] for an order that waits for no money, [`Error::Full`], [`Error::Invalid`],
    /// [`Error::NotFound`].
    pub async fn begin_payment(&self, order: &str, method: &str, key: Option<&str>) -> Result<Payment> {
        if !["card", "wallet", "transfer"].contains(&method) {
            return Err(Error::invalid("method", "it is card, wallet or transfer"));
        }
        let (order, method) = (order.to_owned(), method.to_owned());
        let id = key.map_or_else(crate::id::fresh, |key| crate::id::derived(&["payment", &order, key]));
        let done = self.run(move |unit| {
            let (order, method, id) = (order.clone(), method.clone(), id.clone());
            Box::pin(async move { begin(unit, &order, &method, &id).await })
        });
        done.await
    }

    /// Begins to pay an order and asks the provider for the money. If the provider is silent the attempt stays pending:
    /// a callback, or [`Shop::settle_payments`], will tell.
    ///
    /// # Errors
    /// As [`Shop::begin_payment`]; [`Error::ProviderRefused`].
    pub async fn pay(&self, order: &str, method: &str, key: Option<&str>, provider: &dyn Provider) -> Result<Payment> {
        let payment = self.begin_payment(order, method, key).await?;
        if payment.status != "pending" {
            return Ok(payment);
        }
        self.charge(&payment, provider).await?;
        Ok(payment)
    }

    async fn charge(&self, payment: &Payment, provider: &dyn Provider) -> Result<()> {
        let charge = ChargeRequest {
            payment_id: payment.id.clone(),
            amount: payment.amount,
            currency: payment.currency,
            method: payment.method.clone(),
        };
        match provider.charge(&charge).await {
            Ok(()) | Err(ProviderError::Silent) => Ok(()),
            Err(ProviderError::Refused(why)) => {
                self.give_up(payment, "refused").await?;
                Err(Error::ProviderRefused { why })
            }
        }
    }

    /// The attempt is over, unless the money comes all the same.
    async fn give_up(&self, payment: &Payment, why: &str) -> Result<Accepted> {
        let failed = Callback {
            id: format!("{}:{why}", payment.id),
            payment_id: payment.id.clone(),
            report: Reported::Failed,
            amount: payment.amount.max(1),
            currency: payment.currency,
            refund_key: None,
            at: self.now(),
        };
        self.accept(failed).await
    }

    /// Asks what became of an attempt. One that the provider never heard of is charged again, or over when the order
    /// waits for no money any more.
    async fn ask_about(&self, payment: &Payment, provider: &dyn Provider) -> Result<usize> {
        let reported = match provider.look_up(&payment.id).await {
            Ok(Some(reported)) => reported,
            Ok(None) => {
                let order = self.collection("orders").find_one(doc! { "_id": &payment.order_id }, None).await?;
                if order.is_some_and(|order| order.text("status") == "created") {
                    return match self.charge(payment, provider).await {
                        Ok(()) | Err(Error::ProviderRefused { .. }) => Ok(1),
                        Err(other) => Err(other),
                    };
                }
                return Ok(usize::from(self.give_up(payment, "unheard").await? == Accepted::Done));
            }
            Err(_) => return Ok(0),
        };
        let mut moved = 0;
        for callback in reported {
            match self.accept(callback).await {
                Ok(Accepted::Known) => {}
                Ok(_) | Err(Error::AmountMismatch { .. }) => moved += 1,
                Err(other) => return Err(other),
            }
        }
        Ok(moved)
    }

    /// A payment.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub async fn payment(&self, id: &str) -> Result<Payment> {
        from_document(&self.by_id("payments", "payment", id).await?)
    }

    /// The attempts to pay an order.
    ///
    /// # Errors
    /// A store that fails.
    pub async fn payments_of(&self, order: &str) -> Result<Vec<Payment>> {
        let options = Find { limit: MAX_ATTEMPTS as i64, ..Find::default() };
        let found = self.collection("payments").find(doc! { "orderId": order }, options, None).await?;
        found.iter().map(from_document).collect()
    }

    /// Asks the provider about payments from which nothing was heard, sends refunds that are on their way, and reads what
    /// the provider has reported since the last time, so that no lost callback is missed for good. To be called every few
    /// seconds; gives how much it has moved.
    ///
    /// # Errors
    /// A store that fails. A silent provider is asked the next time.
    pub async fn settle_payments(&self, provider: &dyn Provider) -> Result<usize> {
        let mut moved = self.send_refunds(provider).await?;
        let waited = doc! { "status": "pending", "createdAt": { "$lte": self.now().minus(ASK_AFTER) } };
        let options = Find { limit: crate::MAX_PAGE as i64, sort: Some(doc! { "createdAt": 1 }), ..Find::default() };
        for document in self.collection("payments").find(waited, options, None).await? {
            moved += self.ask_about(&from_document(&document)?, provider).await?;
        }
        Ok(moved + self.read_events(provider).await?)
    }

    /// Takes what the provider has reported since the place up to which this was done. What is known is passed over.
    async fn read_events(&self, provider: &dyn Provider) -> Result<usize> {
        let state = self.collection("shopState").find_one(doc! { "_id": EVENTS }, None).await?;
        let mut place = state.map(|state| state.text("place").to_owned());
        let mut moved = 0;
        for _ in 0..MAX_EVENT_PAGES {
            let Ok(page) = provider.events(place.as_deref()).await else { break };
            let old = self.now().minus(READ_AFTER);
            let young = page.events.iter().position(|event| event.at > old);
            let ready = young.unwrap_or(page.events.len());
            for event in page.events.into_iter().take(ready) {
                moved += usize::from(self.take_event(event).await?);
            }
            if young.is_some() || ready == 0 {
                break; // the page is read again when all of it is old enough
            }
            place = Some(page.place.clone());
            let done = self.run(move |unit| {
                let place = page.place.clone();
                Box::pin(async move { unit.note_state(EVENTS, "place", place).await })
            });
            done.await?;
        }
        Ok(moved)
    }

    /// Takes an event unless it is known; whether it moved anything. What the shop refuses is refused for good.
    async fn take_event(&self, event: Callback) -> Result<bool> {
        let payment = self.collection("payments").find_one(doc! { "_id": &event.payment_id }, None).await?;
        let Some(payment) = payment else { return Ok(false) };
        if element(&payment, "callbacks", "id", &event.id).is_some() {
            return Ok(false);
        }
        match self.accept(event).await {
            Ok(accepted) => Ok(accepted != Accepted::Known),
            Err(error) if error.fault() == crate::Fault::Unavailable => Err(error),
            Err(_) => Ok(true),
        }
    }
}

async fn begin(unit: &mut Unit<'_>, order: &str, method: &str, id: &str) -> Result<Payment> {
    if let Some(known) = unit.get("payments", id).await? {
        return from_document(known);
    }
    let now = unit.now;
    let document = unit.edit("orders", "order", order).await?;
    if document.text("status") != "created" {
        let (from, to) = (document.text("status").to_owned(), "paid".to_owned());
        return Err(Error::IllegalMove { what: "order", id: order.to_owned(), from, to });
    }
    let attempts = document.get_document_mut("payment").ok().and_then(|payment| payment.get_array_mut("attempts").ok());
    match attempts {
        Some(attempts) if attempts.len() >= MAX_ATTEMPTS => {
            return Err(Error::Full { what: "attempts to pay", max: MAX_ATTEMPTS });
        }
        Some(attempts) => attempts.push(id.into()),
        None => drop(document.insert("payment", doc! { "attempts": [id] })),
    }
    let mut payment = doc! {
        "_id": id,
        "orderId": order,
        "userId": document.text("userId"),
        "amount": document.long("total"),
        "currency": document.text("currency"),
        "method": method,
        "captured": 0_i64,
        "refunding": 0_i64,
        "refunded": 0_i64,
        "reversed": 0_i64,
        "createdAt": now,
        "version": 1_i64,
    };
    let by = document.text("userId").to_owned();
    PAYMENT.begin(&mut payment, Step { at: now, by: &by, why: "begun" });
    unit.insert("payments", "payment", payment.clone()).await?;
    from_document(&payment)
}
