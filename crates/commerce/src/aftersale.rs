//! After-sales: returns, exchanges, complaints. Each is a document of its own with its own states, outside the order; the
//! order counts only how many of each item are coming back.

use crate::error::{Error, Result};
use crate::fields::{Fields, element, from_document};
use crate::order::{HistoryEntry, Line};
use crate::page::{Page, Paging};
use crate::payment::{add_to_line, note_refund};
use crate::shop::Shop;
use crate::states::{COMPLAINT, EXCHANGE, Machine, RETURN, Step};
use crate::stock::{Movement, Reason, shift};
use crate::time::Time;
use crate::unit::Unit;
use bson::{Document, doc};
use serde::{Deserialize, Serialize};
use store::Find;

/// What somebody wants after a sale.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum AfterSaleKind {
    /// Goods against money.
    Return,
    /// Goods against the same goods.
    Exchange,
    /// An answer.
    Complaint,
}

impl AfterSaleKind {
    /// Its states.
    pub fn machine(self) -> &'static Machine {
        match self {
            AfterSaleKind::Return => &RETURN,
            AfterSaleKind::Exchange => &EXCHANGE,
            AfterSaleKind::Complaint => &COMPLAINT,
        }
    }
}

/// What a buyer asks for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AfterSaleRequest {
    /// The idempotency key: the same one is the same request.
    pub key: String,
    /// What is wanted.
    pub kind: AfterSaleKind,
    /// The order.
    pub order: String,
    /// Of what; empty for a complaint.
    #[serde(default)]
    pub lines: Vec<Line>,
    /// Why.
    #[serde(default)]
    pub why: String,
}

/// A return, exchange or complaint.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AfterSale {
    /// Its id.
    #[serde(rename(deserialize = "_id"), alias = "id")]
    pub id: String,
    /// What is wanted.
    pub kind: AfterSaleKind,
    /// The order.
    pub order_id: String,
    /// The buyer.
    pub user_id: String,
    /// Of what.
    #[serde(default)]
    pub lines: Vec<Line>,
    /// Why.
    #[serde(default)]
    pub why: String,
    /// Where it stands.
    pub status: String,
    /// How it came there.
    #[serde(default)]
    pub status_history: Vec<HistoryEntry>,
    /// When it was asked for.
    pub created_at: Time,
    /// How often it was changed.
    pub version: i64,
}

impl Shop {
    /// A buyer asks for a return, an exchange or an answer.
    ///
    /// # Errors
    /// [`Error::NotYours`], [`Error::NothingToReturn`], [`Error::IllegalMove`] for an order that is not shipped or
    /// signed, [`Error::Invalid`], [`Error::NotFound`].
    pub async fn ask_after_sale(&self, buyer: &str, request: &AfterSaleRequest) -> Result<AfterSale> {
        if request.key.is_empty() {
            return Err(Error::invalid("key", "it needs an idempotency key"));
        }
        if request.lines.is_empty() != (request.kind == AfterSaleKind::Complaint) {
            return Err(Error::invalid("lines", "returns and exchanges name goods, complaints don't"));
        }
        let (buyer, request) = (buyer.to_owned(), request.clone());
        let done = self.run(move |unit| {
            let (buyer, request) = (buyer.clone(), request.clone());
            Box::pin(async move { ask(unit, &buyer, &request).await })
        });
        done.await
    }

    /// Moves one on: `approved`, `received`, `replaced`, `rejected`, `withdrawn`, `answered`, `reopened`, `closed`.
    /// Goods that are received go back on the shelf, and a return's money is then on its way. (A return is `refunded` by
    /// that step itself.)
    ///
    /// # Errors
    /// [`Error::IllegalMove`], [`Error::VersionConflict`], [`Error::OutOfStock`] for a replacement, [`Error::NotFound`].
    pub async fn move_after_sale(
        &self,
        id: &str,
        to: &str,
        by: &str,
        why: &str,
        expected: Option<i64>,
    ) -> Result<AfterSale> {
        let (id, to, by, why) = (id.to_owned(), to.to_owned(), by.to_owned(), why.to_owned());
        let done = self.run(move |unit| {
            let (id, to, by, why) = (id.clone(), to.clone(), by.clone(), why.clone());
            Box::pin(async move {
                unit.expect_version("afterSales", "after-sale", &id, expected).await?;
                advance(unit, &id, &to, &by, &why).await
            })
        });
        done.await
    }

    /// A return, exchange or complaint.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub async fn after_sale(&self, id: &str) -> Result<AfterSale> {
        from_document(&self.by_id("afterSales", "after-sale", id).await?)
    }

    /// What was asked for after the sale of an order.
    ///
    /// # Errors
    /// A store that fails.
    pub async fn after_sales_of(&self, order: &str) -> Result<Vec<AfterSale>> {
        let options = Find { limit: crate::MAX_PAGE as i64, ..Find::default() };
        let found = self.collection("afterSales").find(doc! { "orderId": order }, options, None).await?;
        found.iter().map(from_document).collect()
    }

    /// A page of those in a state, or of a buyer, the newest first.
    ///
    /// # Errors
    /// [`Error::Invalid`] unless exactly one of the two is named.
    pub async fn after_sales(
        &self,
        status: Option<&str>,
        buyer: Option<&str>,
        paging: &Paging,
    ) -> Result<Page<AfterSale>> {
        let filter = match (status, buyer) {
            (Some(status), None) => doc! { "status": status },
            (None, Some(buyer)) => doc! { "userId": buyer },
            _ => return Err(Error::invalid("filter", "name a state or a buyer")),
        };
        let page = paging.newest_first(self, "afterSales", filter, None, "createdAt").await?;
        page.map(|found| from_document(&found))
    }
}

async fn ask(unit: &mut Unit<'_>, buyer: &str, request: &AfterSaleRequest) -> Result<AfterSale> {
    let id = crate::id::derived(&["after-sale", &request.order, &request.key]);
    if let Some(known) = unit.get("afterSales", &id).await? {
        return from_document(known);
    }
    let order = unit.need("orders", "order", &request.order).await?;
    if order.text("userId") != buyer {
        return Err(Error::NotYours { what: "order", id: request.order.clone() });
    }
    let mut lines = Vec::new();
    if request.kind != AfterSaleKind::Complaint {
        let status = order.text("status");
        if !["shipped", "signed"].contains(&status) {
            let (from, to) = (status.to_owned(), "returned".to_owned());
            return Err(Error::IllegalMove { what: "order", id: request.order.clone(), from, to });
        }
        for (sku, quantity) in crate::order::sum_lines(&request.lines)? {
            let bought = element(&order, "items", "skuId", &sku).map_or(0, |item| item.long("quantity"));
            let back = element(&order, "returns", "skuId", &sku).map_or(0, |line| line.long("quantity"));
            if quantity > bought - back {
                return Err(Error::NothingToReturn { sku, wanted: quantity, left: bought - back });
            }
            add_to_line(unit.edit("orders", "order", &request.order).await?, &sku, "quantity", quantity);
            lines.push(doc! { "sku": sku, "quantity": quantity });
        }
    }
    let kind = bson::serialize_to_bson(&request.kind)?;
    let mut document = doc! {
        "_id": &id, "kind": kind, "orderId": &request.order, "userId": buyer, "lines": lines, "why": &request.why,
        "createdAt": unit.now, "version": 1_i64,
    };
    request.kind.machine().begin(&mut document, Step { at: unit.now, by: buyer, why: &request.why });
    unit.insert("afterSales", "after-sale", document.clone()).await?;
    from_document(&document)
}

async fn advance(unit: &mut Unit<'_>, id: &str, to: &str, by: &str, why: &str) -> Result<AfterSale> {
    let now = unit.now;
    let document = unit.edit("afterSales", "after-sale", id).await?;
    let before: AfterSale = from_document(document)?;
    let machine = before.kind.machine();
    let state = machine.moves.iter().map(|(state, _)| *state).find(|state| *state == to);
    let Some(state) = state.filter(|state| *state != "refunded") else {
        let (from, to) = (before.status, to.to_owned());
        return Err(Error::IllegalMove { what: machine.what, id: id.to_owned(), from, to });
    };
    machine.advance(document, state, Step { at: now, by, why })?;
    match (before.kind, state) {
        (_, "rejected" | "withdrawn") => {
            for line in &before.lines {
                let order = unit.edit("orders", "order", &before.order_id).await?;
                add_to_line(order, &line.sku, "quantity", -line.quantity);
            }
        }
        (_, "received") => received(unit, &before, by).await?,
        (AfterSaleKind::Exchange, "replaced") => {
            let reason = Reason { reference: id, order: Some(&before.order_id), why: "exchange", operator: by };
            for line in &before.lines {
                shift(unit, Movement::Take, &line.sku, line.quantity, reason).await?;
                // What was sent instead can come back in its turn.
                let order = unit.edit("orders", "order", &before.order_id).await?;
                add_to_line(order, &line.sku, "quantity", -line.quantity);
            }
        }
        _ => {}
    }
    from_document(&unit.need("afterSales", "after-sale", id).await?)
}

/// Goods are back: on the shelf, and their money on its way.
async fn received(unit: &mut Unit<'_>, sale: &AfterSale, by: &str) -> Result<()> {
    let reason = Reason { reference: &sale.id, order: Some(&sale.order_id), why: &sale.why, operator: by };
    for line in &sale.lines {
        shift(unit, Movement::Restock, &line.sku, line.quantity, reason).await?;
    }
    if sale.kind != AfterSaleKind::Return {
        return Ok(());
    }
    let order = unit.need("orders", "order", &sale.order_id).await?;
    let parts: Vec<(String, i64)> = sale.lines.iter().map(|line| (line.sku.clone(), worth(&order, line))).collect();
    let amount: i64 = parts.iter().map(|part| part.1).sum();
    let payment = order.part("payment").map(|payment| payment.text("paymentId").to_owned()).unwrap_or_default();
    if amount > 0 {
        note_refund(unit, &payment, &format!("return:{}", sale.id), amount, &sale.why, Some(parts)).await?;
    }
    let now = unit.now;
    let document = unit.edit("afterSales", "after-sale", &sale.id).await?;
    document.insert("amount", amount);
    RETURN.advance(document, "refunded", Step { at: now, by: "shop", why: "the money is on its way" })
}

/// What returned units of an item are worth: their part of what was paid for it, so that all units together are worth
/// all of it, and never more than is left of it.
fn worth(order: &Document, line: &Line) -> i64 {
    let Some(item) = element(order, "items", "skuId", &line.sku) else { return 0 };
    let returned = element(order, "returns", "skuId", &line.sku);
    // `quantity` counts this return already.
    let upto = returned.map_or(0, |returned| returned.long("quantity")).min(item.long("quantity"));
    let (payable, all) = (item.long("payable"), item.long("quantity"));
    let share = |units: i64| (i128::from(payable) * i128::from(units) / i128::from(all)) as i64;
    let left = payable - returned.map_or(0, |returned| returned.long("refunded"));
    (share(upto) - share(upto - line.quantity)).clamp(0, left.max(0))
}
