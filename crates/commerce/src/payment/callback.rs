//! What a provider reports, and what it means for the order.

use super::refund::{note_refund, refund_done, refund_failed};
use super::{Callback, MAX_CALLBACKS, Reported, Signed, left};
use crate::error::{Error, Result};
use crate::fields::{Fields, element, push};
use crate::order::{advance, currency};
use crate::shop::{LatePayment, Shop};
use crate::states::{PAYMENT, Step};
use crate::stock::Movement;
use crate::unit::Unit;
use bson::{Bson, Document, doc};
use serde::{Deserialize, Serialize};

/// What became of a report.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Accepted {
    /// It had its effect.
    Done,
    /// It was known, or came too late to matter.
    Known,
    /// The money came and goes back: the order can't be paid with it.
    SentBack,
}

impl Shop {
    /// Accepts a provider's signed callback.
    ///
    /// # Errors
    /// [`Error::BadSignature`], [`Error::Invalid`] for a body that is no callback, [`Error::NotFound`] for a payment or
    /// refund that is not ours, [`Error::CurrencyMismatch`]; [`Error::AmountMismatch`] when another amount came than was
    /// asked for: it is noted and goes back.
    pub async fn accept_callback(&self, signed: &Signed) -> Result<Accepted> {
        signed.verify(&self.settings().callback_secret, self.now())?;
        let callback: Callback =
            serde_json::from_slice(&signed.body).map_err(|error| Error::invalid("body", error.to_string()))?;
        self.accept(callback).await
    }

    /// Accepts a report whose origin is certain.
    pub(super) async fn accept(&self, callback: Callback) -> Result<Accepted> {
        let (expected, reported) = (callback.payment_id.clone(), callback.amount);
        let captured = callback.report == Reported::Captured;
        let done = self.run(move |unit| {
            let callback = callback.clone();
            Box::pin(async move { apply(unit, &callback).await })
        });
        let accepted = done.await?;
        if captured && accepted == Accepted::SentBack {
            let expected = self.payment(&expected).await?.amount;
            if expected != reported {
                return Err(Error::AmountMismatch { expected, reported });
            }
        }
        Ok(accepted)
    }
}

async fn apply(unit: &mut Unit<'_>, callback: &Callback) -> Result<Accepted> {
    let now = unit.now;
    let id = callback.payment_id.as_str();
    let payment = unit.edit("payments", "payment", id).await?;
    let ours = currency(payment)?;
    if ours != callback.currency {
        return Err(Error::CurrencyMismatch { left: ours, right: callback.currency });
    }
    if callback.amount <= 0 {
        return Err(Error::invalid("amount", "a callback's amount is positive"));
    }
    let known = element(payment, "callbacks", "id", &callback.id).is_some();
    if !known {
        let raw = serde_json::to_string(callback).map_err(|error| Error::invalid("callback", error.to_string()))?;
        push(payment, "callbacks", doc! { "id": &callback.id, "at": now, "raw": raw }, MAX_CALLBACKS);
    }
    match callback.report {
        Reported::Captured if payment.text("status") == "captured" => Ok(Accepted::Known),
        Reported::Captured => {
            PAYMENT.advance(payment, "captured", Step { at: now, by: "provider", why: &callback.id })?;
            payment.insert("captured", callback.amount);
            captured(unit, id).await
        }
        Reported::Failed if payment.text("status") != "pending" => Ok(Accepted::Known),
        Reported::Failed => {
            PAYMENT.advance(payment, "failed", Step { at: now, by: "provider", why: &callback.id })?;
            Ok(Accepted::Done)
        }
        Reported::Refunded => refund_done(unit, id, refund_key(callback)?, callback.amount).await,
        Reported::RefundFailed => refund_failed(unit, id, refund_key(callback)?).await,
        Reported::Reversed => reversed(unit, callback).await,
    }
}

fn refund_key(callback: &Callback) -> Result<&str> {
    callback.refund_key.as_deref().ok_or_else(|| Error::invalid("refundKey", "a report of a refund names its key"))
}

/// Money came: it pays the order, or goes back.
async fn captured(unit: &mut Unit<'_>, payment_id: &str) -> Result<Accepted> {
    let payment = unit.need("payments", "payment", payment_id).await?;
    let (order_id, amount) = (payment.text("orderId").to_owned(), payment.long("captured"));
    let why = match unit.get("orders", &order_id).await?.cloned() {
        _ if amount != payment.long("amount") => "another amount than was asked for",
        _ if payment.long("reversed") > 0 => "reversed before it was captured",
        None => "there is no such order",
        Some(order) => match order.text("status") {
            "created" => {
                crate::stock::end(unit, &order_id, Movement::Sell, "paid", "provider").await?;
                return paid(unit, &order_id, &payment).await;
            }
            "expired" if unit.shop.settings().late_payment == LatePayment::Reacquire => {
                let mark = unit.mark();
                match take_again(unit, &order).await {
                    Ok(()) => return paid(unit, &order_id, &payment).await,
                    Err(Error::Store(error)) => return Err(Error::Store(error)),
                    Err(_) => {
                        unit.back_to(mark);
                        "it came late, and its stock or its coupon is gone"
                    }
                }
            }
            "expired" => "it came late",
            "cancelled" => "the order had been cancelled",
            _ => "the order had been paid already",
        },
    };
    let back = left(&payment);
    if back > 0 {
        note_refund(unit, payment_id, &format!("unwanted:{payment_id}"), back, why, None).await?;
    }
    Ok(Accepted::SentBack)
}

/// Takes again what an order gave back when it expired: its stock, and its coupon.
async fn take_again(unit: &mut Unit<'_>, order: &Document) -> Result<()> {
    crate::stock::take_again(unit, order).await?;
    match order.text("coupon") {
        "" => Ok(()),
        coupon => crate::coupon::use_again(unit, order.text("userId"), coupon, order.text("_id")).await,
    }
}

/// The order is paid: its state, its money, and the line in the sales from which the reports are made.
async fn paid(unit: &mut Unit<'_>, order_id: &str, payment: &Document) -> Result<Accepted> {
    let now = unit.now;
    let order = advance(unit, order_id, "paid", payment.text("userId"), "paid").await?;
    order.remove("holdUntil");
    let mut summary = order.part("payment").cloned().unwrap_or_default();
    summary.insert("paymentId", payment.text("_id"));
    summary.insert("method", payment.text("method"));
    summary.insert("captured", payment.long("captured"));
    summary.insert("paidAt", now);
    order.insert("payment", summary);
    let lines: Vec<Bson> = order
        .parts("items")
        .into_iter()
        .map(|item| {
            let sales = item.long("payable");
            Bson::Document(doc! {
                "skuId": item.text("skuId"), "productId": item.text("productId"),
                "units": item.long("quantity"), "sales": sales, "refunds": 0_i64,
            })
        })
        .collect();
    let sale = doc! {
        "_id": format!("{}:sale", payment.text("_id")),
        "kind": "sale",
        "orderId": order_id,
        "city": city(order),
        "currency": order.text("currency"),
        "at": now,
        "orders": 1_i64,
        "sales": order.long("total"),
        "refunds": 0_i64,
        "lines": lines,
    };
    unit.append("sales", sale);
    Ok(Accepted::Done)
}

/// Where an order goes, as the reports count it.
pub(super) fn city(order: &Document) -> String {
    order.part("shippingAddress").map(|address| address.text("city").to_owned()).unwrap_or_default()
}

/// The provider took money back by itself.
async fn reversed(unit: &mut Unit<'_>, callback: &Callback) -> Result<Accepted> {
    let now = unit.now;
    let payment = unit.edit("payments", "payment", &callback.payment_id).await?;
    if element(payment, "reversals", "id", &callback.id).is_some() {
        return Ok(Accepted::Known);
    }
    if payment.parts("reversals").len() >= super::MAX_REFUNDS {
        return Err(Error::Full { what: "reversals", max: super::MAX_REFUNDS });
    }
    push(payment, "reversals", doc! { "id": &callback.id, "amount": callback.amount, "at": now }, super::MAX_REFUNDS);
    let sum = payment.long("reversed") + callback.amount;
    payment.insert("reversed", sum);
    let (order, payment_id) = (payment.text("orderId").to_owned(), payment.text("_id").to_owned());
    super::refund::money_went(unit, &order, &payment_id, &format!("reversal:{}", callback.id), callback.amount, None)
        .await?;
    Ok(Accepted::Done)
}
