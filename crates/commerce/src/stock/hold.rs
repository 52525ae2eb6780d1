//! Holds: stock set aside for an order until it is paid, cancelled or expires.

use super::{Movement, Reason, shift};
use crate::error::{Error, Result};
use crate::fields::{Fields, element, element_mut};
use crate::shop::Shop;
use crate::time::Time;
use crate::unit::Unit;
use bson::{Bson, Document, doc};
use std::collections::BTreeMap;
use store::Find;

/// The most holds that one sweep looks at.
pub const MAX_SWEEP: usize = 1_000;

/// Sets aside all lines of an order, or refuses; counts them against the buyer's limits. An order of a flash sale gets
/// what the sale's hold has set aside.
pub(crate) async fn hold(
    unit: &mut Unit<'_>,
    order: &str,
    buyer: &str,
    lines: &BTreeMap<String, i64>,
    until: Time,
    sale: Option<&str>,
) -> Result<()> {
    let reason = Reason { reference: order, order: Some(order), why: "order placed", operator: buyer };
    for (sku, quantity) in lines {
        match sale {
            Some(sale) => assign(unit, sale, sku, *quantity, reason).await?,
            None => shift(unit, Movement::Hold, sku, *quantity, reason).await?,
        }
        count_purchase(unit, sku, buyer, *quantity).await?;
    }
    let held = lines.iter().map(|(sku, quantity)| Bson::Document(doc! { "skuId": sku, "quantity": *quantity }));
    let hold = doc! {
        "_id": order, "userId": buyer, "lines": held.collect::<Vec<_>>(), "until": until, "createdAt": unit.now,
    };
    unit.insert("stockHolds", "hold", hold).await
}

/// Gives an order of what is held for a flash sale: it stays held, for the order now.
async fn assign(unit: &mut Unit<'_>, sale: &str, sku: &str, quantity: i64, reason: Reason<'_>) -> Result<()> {
    let held = unit.get("stockHolds", sale).await?.and_then(|hold| element(hold, "lines", "skuId", sku));
    let left = held.map_or(0, |line| line.long("quantity"));
    if left < quantity {
        return Err(Error::OutOfStock { sku: sku.to_owned(), wanted: quantity, left });
    }
    let hold = unit.edit("stockHolds", "flash sale", sale).await?;
    if let Some(line) = element_mut(hold, "lines", "skuId", sku) {
        line.insert("quantity", left - quantity);
    }
    shift(unit, Movement::Assign, sku, quantity, reason).await
}

/// The id of what a buyer has of a SKU with a limit.
pub(crate) fn purchase_id(sku: &str, buyer: &str) -> String {
    format!("{sku}:{buyer}")
}

/// Counts what a buyer has of a SKU with a limit.
async fn count_purchase(unit: &mut Unit<'_>, sku: &str, buyer: &str, quantity: i64) -> Result<()> {
    let limit = unit.get("skus", sku).await?.map_or(0, |document| document.long("perBuyer"));
    if limit == 0 {
        return Ok(());
    }
    let id = purchase_id(sku, buyer);
    let had = unit.get("purchases", &id).await?.map(|document| document.long("quantity"));
    let count = had.unwrap_or(0) + quantity;
    if quantity > 0 && count > limit {
        return Err(Error::LimitPerBuyer { sku: sku.to_owned(), limit, had: had.unwrap_or(0) });
    }
    match had {
        Some(_) => {
            unit.edit("purchases", "purchase", &id).await?.insert("quantity", count.max(0));
        }
        None => {
            unit.insert("purchases", "purchase", doc! { "_id": id, "skuId": sku, "userId": buyer, "quantity": count })
                .await?;
        }
    }
    Ok(())
}

/// Ends an order's hold: what was held is sold, or can be sold again. False when there is no hold (any more).
pub(crate) async fn end(unit: &mut Unit<'_>, order: &str, movement: Movement, why: &str, by: &str) -> Result<bool> {
    let Some(hold) = unit.remove("stockHolds", order).await? else { return Ok(false) };
    let reason = Reason { reference: order, order: Some(order), why, operator: by };
    let buyer = hold.text("userId"); // a flash sale's hold has none
    for line in hold.parts("lines") {
        let (sku, quantity) = (line.text("skuId"), line.long("quantity"));
        if quantity == 0 {
            continue; // a flash sale that is sold out
        }
        shift(unit, movement, sku, quantity, reason).await?;
        if movement == Movement::Release && !buyer.is_empty() {
            count_purchase(unit, sku, buyer, -quantity).await?;
        }
    }
    Ok(true)
}

/// Takes the stock of an order whose hold has expired, all lines or none.
pub(crate) async fn take_again(unit: &mut Unit<'_>, order: &Document) -> Result<()> {
    let (id, buyer) = (order.text("_id"), order.text("userId"));
    let reason = Reason { reference: id, order: Some(id), why: "late payment", operator: buyer };
    for item in order.parts("items") {
        let (sku, quantity) = (item.text("skuId"), item.long("quantity"));
        shift(unit, Movement::Take, sku, quantity, reason).await?;
        count_purchase(unit, sku, buyer, quantity).await?;
    }
    Ok(())
}

impl Shop {
    /// Lets holds go whose time is over, with their orders; gives how many. To be called again and again, by any number
    /// of processes; each hold goes once.
    ///
    /// # Errors
    /// A store that fails.
    pub async fn expire_holds(&self) -> Result<usize> {
        let over = doc! { "until": { "$lte": self.now() } };
        let options = Find {
            sort: Some(doc! { "until": 1 }),
            projection: Some(doc! { "_id": 1 }),
            limit: MAX_SWEEP as i64,
            ..Find::default()
        };
        let holds = self.collection("stockHolds").find(over, options, None).await?;
        let mut sweep = tokio::task::JoinSet::new();
        for hold in holds {
            let (shop, order) = (self.clone(), hold.text("_id").to_owned());
            sweep.spawn(async move { shop.expire(&order).await });
        }
        let (mut expired, mut failed) = (0, None);
        while let Some(done) = sweep.join_next().await {
            match done.unwrap_or(Err(Error::Busy)) {
                Ok(gone) => expired += usize::from(gone),
                Err(error) => failed = Some(error), // the others go on
            }
        }
        failed.map_or(Ok(expired), Err)
    }

    async fn expire(&self, order: &str) -> Result<bool> {
        let order = order.to_owned();
        let done = self.run(move |unit| {
            let order = order.clone();
            Box::pin(async move {
                let now = unit.now;
                let until = unit.get("stockHolds", &order).await?.and_then(|hold| hold.time("until"));
                if until.is_none_or(|until| until > now) {
                    return Ok(false); // paid, cancelled or expired by somebody else
                }
                crate::order::close_unpaid(unit, &order, "expired", "the time to pay is over", "shop").await?;
                Ok(true)
            })
        });
        done.await
    }
}
