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
pub const MOVEMENTS: [(Movement, &str, i64, i64, i64); 7] = [
    (Movement::Receive, "receive", 1, 0, 0),
    (Movement::Hold, "hold", -1, 1, 0),
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

pub(crate) fn entry_id(reason: &Reason<'_>, movement: Movement, sku: &str) -> String {
    format!("{}:{}:{sku}", reason.reference, movement.name())
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
        "_id": entry_id(&reason, movement, sku),
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
