//! Refunds: noted first, sent afterwards, done once.
//!
//! A refund is a promise in the payment's document: its amount is set aside from what is left before the provider hears
//! of it, so that two refunds can't promise the same money. What it takes from which item is fixed at that moment too,
//! by largest remainders over what is left of each, so that whole refunds in parts add up to the last cent.

use super::callback::city;
use super::{Accepted, Callback, MAX_REFUNDS, Payment, Provider, ProviderError, Refund, RefundRequest, Reported, left};
use crate::error::{Error, Result};
use crate::fields::{Fields, element, element_mut, from_document, push};
use crate::money::split;
use crate::order::{advance, currency};
use crate::shop::Shop;
use crate::states::REFUND;
use crate::stock::{Movement, Reason, shift};
use crate::unit::Unit;
use bson::{Bson, Document, doc};
use serde::{Deserialize, Serialize};
use store::Find;

/// What a refund takes from an item; the empty SKU is the shipping fee.
pub(crate) type Part = (String, i64);

/// How an order's money goes back.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RefundOptions {
    /// The idempotency key: the same one is the same refund.
    pub key: String,
    /// How much, in minor units; all that is left unless given.
    pub amount: Option<i64>,
    /// Why.
    pub why: String,
    /// Who asks.
    pub by: String,
}

impl Shop {
    /// Promises money of an order back. The provider hears of it by [`Shop::send_refunds`]; when it is done and nothing
    /// is left, the order is refunded, and goods that never left go back on the shelf.
    ///
    /// # Errors
    /// [`Error::RefundTooLarge`], [`Error::KeyReused`] for the key of another amount, [`Error::IllegalMove`] for an order
    /// that is not paid, [`Error::Invalid`] for an amount that is not positive, [`Error::NotFound`].
    pub async fn refund_order(&self, order: &str, options: &RefundOptions) -> Result<Refund> {
        if options.key.is_empty() || options.key.len() > crate::id::MAX_ID_BYTES {
            return Err(Error::invalid("key", "a refund needs an idempotency key"));
        }
        if options.amount.is_some_and(|amount| amount <= 0) {
            return Err(Error::invalid("amount", "it must be positive"));
        }
        let (order, options) = (order.to_owned(), options.clone());
        let done = self.run(move |unit| {
            let (order, options) = (order.clone(), options.clone());
            Box::pin(async move { ask(unit, &order, &options).await })
        });
        done.await
    }

    /// Sends the refunds that are on their way to the provider; gives how many were settled.
    ///
    /// # Errors
    /// A store that fails. A silent provider is asked again the next time.
    pub async fn send_refunds(&self, provider: &dyn Provider) -> Result<usize> {
        let options = Find { sort: Some(doc! { "_id": 1 }), limit: crate::MAX_PAGE as i64, ..Find::default() };
        let waiting = self.collection("payments").find(doc! { "refunding": { "$gt": 0_i64 } }, options, None).await?;
        let mut settled = 0;
        for document in waiting {
            let payment: Payment = from_document(&document)?;
            for refund in payment.refunds.iter().filter(|refund| refund.status == REFUND.start()) {
                settled += usize::from(self.send(&payment, refund, provider).await?);
            }
        }
        Ok(settled)
    }

    async fn send(&self, payment: &Payment, refund: &Refund, provider: &dyn Provider) -> Result<bool> {
        let request = RefundRequest {
            payment_id: payment.id.clone(),
            key: refund.key.clone(),
            amount: refund.amount,
            currency: payment.currency,
        };
        let report = match provider.refund(&request).await {
            Ok(()) => Reported::Refunded,
            Err(ProviderError::Refused(_)) => Reported::RefundFailed,
            Err(ProviderError::Silent) => return Ok(false),
        };
        let callback = Callback {
            id: format!("answer:{}", refund.key),
            payment_id: payment.id.clone(),
            report,
            amount: refund.amount,
            currency: payment.currency,
            refund_key: Some(refund.key.clone()),
            at: self.now(),
        };
        Ok(self.accept(callback).await? == Accepted::Done)
    }
}

async fn ask(unit: &mut Unit<'_>, order_id: &str, options: &RefundOptions) -> Result<Refund> {
    let order = unit.need("orders", "order", order_id).await?;
    let payment_id = order.part("payment").map(|payment| payment.text("paymentId").to_owned()).unwrap_or_default();
    if payment_id.is_empty() {
        let from = order.text("status").to_owned();
        return Err(Error::IllegalMove { what: "order", id: order_id.to_owned(), from, to: "refunded".into() });
    }
    let payment = unit.need("payments", "payment", &payment_id).await?;
    if let Some(known) = element(&payment, "refunds", "key", &options.key) {
        return match options.amount.is_none_or(|amount| amount == known.long("amount")) {
            true => from_document(known),
            false => Err(Error::KeyReused { key: options.key.clone() }),
        };
    }
    let amount = options.amount.unwrap_or_else(|| left(&payment));
    note_refund(unit, &payment_id, &options.key, amount, &options.why, None).await
}

/// Sets money aside for a refund.
pub(crate) async fn note_refund(
    unit: &mut Unit<'_>,
    payment_id: &str,
    key: &str,
    amount: i64,
    why: &str,
    parts: Option<Vec<Part>>,
) -> Result<Refund> {
    let now = unit.now;
    let payment = unit.edit("payments", "payment", payment_id).await?;
    let rest = left(payment);
    if amount > rest || amount <= 0 {
        return Err(Error::RefundTooLarge { wanted: amount, left: rest });
    }
    if payment.parts("refunds").len() >= MAX_REFUNDS {
        return Err(Error::Full { what: "refunds", max: MAX_REFUNDS });
    }
    let order_id = payment.text("orderId").to_owned();
    let parts = set_aside(unit, &order_id, payment_id, amount, parts).await?;
    let recorded: Vec<Document> = parts.iter().map(|(sku, amount)| doc! { "skuId": sku, "amount": *amount }).collect();
    let refund =
        doc! { "key": key, "amount": amount, "status": REFUND.start(), "why": why, "at": now, "parts": recorded };
    let payment = unit.edit("payments", "payment", payment_id).await?;
    push(payment, "refunds", refund.clone(), MAX_REFUNDS);
    let refunding = payment.long("refunding") + amount;
    payment.insert("refunding", refunding);
    from_document(&refund)
}

/// Whether a payment is the one that paid an order.
fn pays(order: &Document, payment: &str) -> bool {
    order.part("payment").is_some_and(|summary| summary.text("paymentId") == payment)
}

/// Fixes what a refund takes from which item; nothing when the payment did not pay the order.
async fn set_aside(
    unit: &mut Unit<'_>,
    order_id: &str,
    payment_id: &str,
    amount: i64,
    parts: Option<Vec<Part>>,
) -> Result<Vec<Part>> {
    let Some(order) = unit.get("orders", order_id).await?.filter(|order| pays(order, payment_id)) else {
        return Ok(Vec::new());
    };
    let parts = match parts {
        Some(parts) => parts,
        None => spread(order, amount)?,
    };
    let order = unit.edit("orders", "order", order_id).await?;
    add_to_summary(order, "refunding", amount);
    for (sku, part) in &parts {
        add_to_line(order, sku, "refunded", *part);
    }
    Ok(parts)
}

/// An amount over what is left of each item and of the shipping fee.
fn spread(order: &Document, amount: i64) -> Result<Vec<Part>> {
    let gone = |sku: &str| element(order, "returns", "skuId", sku).map_or(0, |line| line.long("refunded"));
    let mut names = vec![String::new()];
    let mut rests = vec![order.long("shippingFee") - gone("")];
    for item in order.parts("items") {
        names.push(item.text("skuId").to_owned());
        rests.push(item.long("payable") - gone(item.text("skuId")));
    }
    let parts = split(amount, &rests)?;
    Ok(names.into_iter().zip(parts).filter(|(_, part)| *part != 0).collect())
}

/// What a reversal takes from which item: what is left of each, and then what pending refunds have set aside. The provider
/// will refuse those, for the money is gone.
fn beyond_refunds(order: &Document, payment: &Document, amount: i64) -> Result<Vec<Part>> {
    let free = order.long("total") - order.parts("returns").iter().map(|line| line.long("refunded")).sum::<i64>();
    if amount <= free {
        return spread(order, amount);
    }
    let mut parts = if free > 0 { spread(order, free)? } else { Vec::new() };
    let mut rest = amount - free;
    let pending = payment.parts("refunds").into_iter().filter(|refund| refund.text("status") == REFUND.start());
    for (sku, part) in pending.flat_map(parts_of) {
        let taken = part.min(rest);
        rest -= taken;
        match parts.iter_mut().find(|(known, _)| *known == sku) {
            Some((_, sum)) => *sum += taken,
            None if taken > 0 => parts.push((sku, taken)),
            None => {}
        }
    }
    Ok(parts)
}

fn add_to_summary(order: &mut Document, field: &str, amount: i64) {
    let mut summary = order.part("payment").cloned().unwrap_or_default();
    let sum = summary.long(field) + amount;
    summary.insert(field, sum);
    order.insert("payment", summary);
}

/// Counts on an order's line what came back of it: `quantity` or `refunded`.
pub(crate) fn add_to_line(order: &mut Document, sku: &str, field: &str, amount: i64) {
    if element(order, "returns", "skuId", sku).is_none() {
        let line = doc! { "skuId": sku, "quantity": 0_i64, "refunded": 0_i64 };
        push(order, "returns", line, crate::MAX_LINES + 1);
    }
    let line = element_mut(order, "returns", "skuId", sku).expect("just put there");
    let sum = line.long(field) + amount;
    line.insert(field, sum);
}

fn parts_of(refund: &Document) -> Vec<Part> {
    refund.parts("parts").into_iter().map(|part| (part.text("skuId").to_owned(), part.long("amount"))).collect()
}

/// The provider has made a refund.
pub(super) async fn refund_done(unit: &mut Unit<'_>, payment_id: &str, key: &str, reported: i64) -> Result<Accepted> {
    let now = unit.now;
    let payment = unit.edit("payments", "payment", payment_id).await?;
    let refund = element_mut(payment, "refunds", "key", key).ok_or_else(|| Error::missing("refund", key))?;
    let (amount, parts) = (refund.long("amount"), parts_of(refund));
    if refund.text("status") == "done" {
        return Ok(Accepted::Known);
    }
    if amount != reported {
        return Err(Error::AmountMismatch { expected: amount, reported });
    }
    move_refund(refund, key, "done")?;
    refund.insert("doneAt", now);
    let (refunding, refunded) = (payment.long("refunding") - amount, payment.long("refunded") + amount);
    payment.insert("refunding", refunding);
    payment.insert("refunded", refunded);
    let order_id = payment.text("orderId").to_owned();
    money_went(unit, &order_id, payment_id, &format!("refund:{key}"), amount, Some(parts)).await?;
    Ok(Accepted::Done)
}

fn move_refund(refund: &mut Document, key: &str, to: &str) -> Result<()> {
    let from = refund.text("status").to_owned();
    if !REFUND.allows(&from, to) {
        return Err(Error::IllegalMove { what: "refund", id: key.to_owned(), from, to: to.to_owned() });
    }
    refund.insert("status", to);
    Ok(())
}

/// The provider will not make a refund: what was set aside is there again.
pub(super) async fn refund_failed(unit: &mut Unit<'_>, payment_id: &str, key: &str) -> Result<Accepted> {
    let payment = unit.edit("payments", "payment", payment_id).await?;
    let refund = element_mut(payment, "refunds", "key", key).ok_or_else(|| Error::missing("refund", key))?;
    if refund.text("status") != REFUND.start() {
        return Ok(Accepted::Known);
    }
    move_refund(refund, key, "failed")?;
    let (amount, parts) = (refund.long("amount"), parts_of(refund));
    let refunding = payment.long("refunding") - amount;
    payment.insert("refunding", refunding);
    let order_id = payment.text("orderId").to_owned();
    if unit.get("orders", &order_id).await?.is_some_and(|order| pays(order, payment_id)) {
        let order = unit.edit("orders", "order", &order_id).await?;
        add_to_summary(order, "refunding", -amount);
        for (sku, part) in &parts {
            add_to_line(order, sku, "refunded", -part);
        }
    }
    Ok(Accepted::Done)
}

/// Money of a payment is gone: by a refund whose parts are known, or by the provider's own will. What paid an order is
/// counted on it and in the sales, now.
pub(super) async fn money_went(
    unit: &mut Unit<'_>,
    order_id: &str,
    payment_id: &str,
    reference: &str,
    amount: i64,
    parts: Option<Vec<Part>>,
) -> Result<()> {
    let now = unit.now;
    let Some(order) = unit.get("orders", order_id).await?.filter(|order| pays(order, payment_id)).cloned() else {
        return Ok(());
    };
    let parts = match parts {
        Some(parts) => parts,
        None => {
            let payment = unit.need("payments", "payment", payment_id).await?;
            let parts = beyond_refunds(&order, &payment, amount)?;
            set_aside(unit, order_id, payment_id, amount, Some(parts)).await?
        }
    };
    let order_currency = currency(&order)?;
    let lines: Vec<Bson> = parts
        .iter()
        .filter(|(sku, _)| !sku.is_empty())
        .map(|(sku, part)| {
            let product = element(&order, "items", "skuId", sku).map_or("", |item| item.text("productId"));
            Bson::Document(
                doc! { "skuId": sku, "productId": product, "units": 0_i64, "sales": 0_i64, "refunds": *part },
            )
        })
        .collect();
    unit.append(
        "sales",
        doc! {
            "_id": format!("{payment_id}:{reference}"), "kind": "refund", "orderId": order_id, "city": city(&order),
            "currency": order_currency.code(), "at": now, "orders": 0_i64, "sales": 0_i64, "refunds": amount,
            "lines": lines,
        },
    );
    let edited = unit.edit("orders", "order", order_id).await?;
    add_to_summary(edited, "refunding", -amount);
    add_to_summary(edited, "refunded", amount);
    let summary = edited.part("payment").cloned().unwrap_or_default();
    if summary.long("refunded") >= summary.long("captured") && before_all(&order) {
        all_gone(unit, order_id, &order).await?;
    }
    Ok(())
}

fn before_all(order: &Document) -> bool {
    order.text("status") != "refunded"
}

/// Nothing is left of an order's money: it is refunded, and goods that never left are on the shelf again.
async fn all_gone(unit: &mut Unit<'_>, order_id: &str, before: &Document) -> Result<()> {
    advance(unit, order_id, "refunded", "provider", "all money went back").await?;
    if before.text("status") != "paid" {
        return Ok(());
    }
    let reason =
        Reason { reference: order_id, order: Some(order_id), why: "refunded before shipping", operator: "shop" };
    for item in before.parts("items") {
        let sku = item.text("skuId");
        let back = element(before, "returns", "skuId", sku).map_or(0, |line| line.long("quantity"));
        let rest = item.long("quantity") - back;
        if rest > 0 {
            shift(unit, Movement::Restock, sku, rest, reason).await?;
            add_to_line(unit.edit("orders", "order", order_id).await?, sku, "quantity", rest);
        }
    }
    Ok(())
}
