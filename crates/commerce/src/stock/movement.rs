//! The movements of stock, as data, and the one function that makes them.

use crate::error::{Error, Result};
use crate::fields::Fields;
use crate::unit::Unit;
use bson::doc;

/// A movement of stock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Movement {
    /// Goods come in.
    Receive,
    /// Set aside for an order that is not paid.
    Hold,
    /// What a flash sale had set aside is held for an order.
    Assign,
    /// The order is paid: what was held is sold.
    Sell,
    /// The order is cancelled or expired: what was held can be sold again.
    Release,
    /// Sold without a hold: a late payment, a replacement.
    Take,
    /// Sold goods are back on the shelf.
    Restock,
    /// Goods are lost or broken.
    WriteOff,
}

/// What each movement does to `available`, `held` and `sold`, times its quantity.
pub const MOVEMENTS: [(Movement, &str, i64, i64, i64); 8] = [
    (Movement::Receive, "receive", 1, 0, 0),
    (Movement::Hold, "hold", -1, 1, 0),
    (Movement::Assign, "assign", 0, 0, 0),
    (Movement::Sell, "sell", 0, -1, 1),
    (Movement::Release, "release", 1, -1, 0),
    (Movement::Take, "take", -1, 0, 1),
    (Movement::Restock, "restock", 1, 0, -1),
    (Movement::WriteOff, "write-off", -1, 0, 0),
];

impl Movement {
    fn row(self) -> (Movement, &'static str, i64, i64, i64) {
        *MOVEMENTS.iter().find(|row| row.0 == self).expect("each movement has its row")
    }

    /// Its name in the ledger.
    pub fn name(self) -> &'static str {
        self.row().1
    }
}

/// Why stock moves, for the ledger.
#[derive(Clone, Copy)]
pub(crate) struct Reason<'a> {
    /// What caused it; with the movement and the SKU it is the entry's id.
    pub(crate) reference: &'a str,
    pub(crate) order: Option<&'a str>,
    pub(crate) why: &'a str,
    pub(crate) operator: &'a str,
}

pub(crate) fn entry_id(reference: &str, movement: Movement, sku: &str) -> String {
    format!("{reference}:{}:{sku}", movement.name())
}

/// Moves stock, with its ledger entry.
///
/// # Errors
/// [`Error::OutOfStock`], [`Error::NotFound`].
pub(crate) async fn shift(
    unit: &mut Unit<'_>,
    movement: Movement,
    sku: &str,
    quantity: i64,
    reason: Reason<'_>,
) -> Result<()> {
    assert!(quantity > 0, "quantities are checked where they come in");
    let (_, name, available, held, sold) = movement.row();
    let now = unit.now;
    let document = unit.edit("skus", "sku", sku).await?;
    let (before_available, before_held) = (document.long("available"), document.long("held"));
    let too_large = || Error::AmountTooLarge;
    let after_available = before_available.checked_add(available * quantity).ok_or_else(too_large)?;
    let after_held = before_held.checked_add(held * quantity).ok_or_else(too_large)?;
    let after_sold = document.long("sold").checked_add(sold * quantity).ok_or_else(too_large)?;
    if after_available < 0 {
        return Err(Error::OutOfStock { sku: sku.to_owned(), wanted: quantity, left: before_available });
    }
    if after_held < 0 {
        let message = format!("{name} of {quantity} {sku}: only {before_held} are held; reconcile the stock");
        return Err(store::Error::new(8, message).into());
    }
    document.insert("available", after_available);
    document.insert("held", after_held);
    document.insert("sold", after_sold);
    document.insert("changedAt", now);
    let mut entry = doc! {
        "_id": entry_id(reason.reference, movement, sku),
        "skuId": sku,
        "type": name,
        "quantity": after_available - before_available,
        "beforeStock": before_available,
        "afterStock": after_available,
        "held": after_held - before_held,
        "beforeHeld": before_held,
        "afterHeld": after_held,
        "reason": reason.why,
        "operator": reason.operator,
        "at": now,
    };
    if let Some(order) = reason.order {
        entry.insert("orderId", order);
    }
    unit.append("stockLedger", entry);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Keeping, Settings, Shop};
    use store::{Store, Update};

    /// Available, held and sold before; the movement; the same after, or how it is refused.
    const TABLE: &str = "
        10 0 0 | receive   5 | 15 0 0
        10 0 0 | hold      3 | 7 3 0
        10 0 0 | hold     10 | 0 10 0
         2 0 0 | hold      3 | out-of-stock
         7 3 0 | assign    3 | 7 3 0
         7 3 0 | sell      3 | 7 0 3
         7 3 0 | sell      1 | 7 2 1
         7 3 0 | release   3 | 10 0 0
        10 0 0 | take      2 | 8 0 2
         1 5 0 | take      2 | out-of-stock
         8 0 2 | restock   2 | 10 0 0
        10 0 0 | write-off 4 | 6 0 0
         0 9 0 | write-off 1 | out-of-stock
         5 1 0 | sell      2 | store
         5 1 0 | release   2 | store
    ";

    fn numbers(text: &str) -> Vec<i64> {
        text.split_ascii_whitespace().map(|number| number.parse().unwrap()).collect()
    }

    #[tokio::test]
    async fn each_movement_does_what_its_line_says_or_nothing() {
        let store = Store::in_memory().unwrap();
        let settings = Settings { keeping: Keeping::Shop, ..Settings::for_store(&store) };
        let shop = Shop::with(store, "shop", settings);
        let skus = shop.collection("skus");
        for (number, line) in TABLE.lines().map(str::trim).filter(|line| !line.is_empty()).enumerate() {
            let [before, movement, after] = line.split('|').collect::<Vec<_>>()[..] else { panic!("{line}") };
            let (name, quantity) = movement.trim().split_once(' ').unwrap();
            let movement = MOVEMENTS.iter().find(|row| row.1 == name).unwrap().0;
            let quantity = quantity.trim().parse().unwrap();
            let numbers_before = numbers(before);
            let stored = doc! {
                "available": numbers_before[0], "held": numbers_before[1], "sold": numbers_before[2],
            };
            let upsert = Update { upsert: true, ..Update::default() };
            skus.update_one(doc! { "_id": "s" }, doc! { "$set": stored }, upsert, None).await.unwrap();
            let done = shop.run(move |unit| {
                Box::pin(async move {
                    let reference = format!("line {number}");
                    let reason = Reason { reference: &reference, order: None, why: "test", operator: "test" };
                    shift(unit, movement, "s", quantity, reason).await
                })
            });
            let refused = done.await.err().map(|error| error.code());
            let level = shop.stock("s").await.unwrap();
            let left = vec![level.available, level.held, level.sold];
            let entry = format!("line {number}:{name}:s");
            let entry = shop.collection("stockLedger").find_one(doc! { "_id": entry }, None).await.unwrap();
            match refused {
                Some(code) => assert_eq!((code, left, entry), (after.trim(), numbers_before, None), "{line}"),
                None => {
                    assert_eq!(left, numbers(after), "{line}");
                    let entry = entry.unwrap();
                    let changes = (entry.long("quantity"), entry.long("held"));
                    let expected = (left[0] - numbers_before[0], left[1] - numbers_before[1]);
                    assert_eq!(changes, expected, "{line}");
                }
            }
        }
    }
}
