//! Stock: a quantity that never goes below zero, holds that expire, a ledger that explains every unit.
//!
//! A SKU has two numbers: `available`, what can be sold, and `held`, what is set aside for orders that are not paid.
//! Every movement changes them by its row in [`MOVEMENTS`] and appends a ledger entry in the same transaction. The entry's
//! id is made of what caused it, the movement and the SKU: a release that would happen twice fails on its primary key.
//! Folding the ledger gives the two numbers again; [`Shop::reconcile`] compares.
//!
//! A hold is one document an order. It goes when the order is paid, cancelled or expires, in the transaction that moves
//! the stock, so a process that dies leaves either all of it or nothing, and the next sweep goes on.

mod hold;
mod movement;
mod reconcile;

pub use hold::MAX_SWEEP;
pub(crate) use hold::{end, hold, purchase_id, take_again};
pub use movement::{MOVEMENTS, Movement};
pub(crate) use movement::{Reason, shift};
pub use reconcile::{Discrepancy, Reconciliation};

use crate::error::{Error, Result};
use crate::fields::Fields;
use crate::shop::Shop;
use crate::time::Time;
use bson::{Document, doc};
use serde::{Deserialize, Serialize};

/// What is there of a SKU.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StockLevel {
    /// The SKU.
    #[serde(alias = "_id")]
    pub sku: String,
    /// How many can be sold.
    pub available: i64,
    /// How many are held for unpaid orders.
    pub held: i64,
    /// How many were sold.
    pub sold: i64,
}

impl StockLevel {
    fn of(sku: &Document) -> StockLevel {
        let (available, held, sold) = (sku.long("available"), sku.long("held"), sku.long("sold"));
        StockLevel { sku: sku.text("_id").to_owned(), available, held, sold }
    }
}

/// A line of the stock ledger.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LedgerEntry {
    /// What caused it, the movement and the SKU.
    #[serde(rename(deserialize = "_id"))]
    pub id: String,
    /// The SKU.
    pub sku_id: String,
    /// The movement's name.
    #[serde(rename = "type")]
    pub movement: String,
    /// By how much `available` changed.
    pub quantity: i64,
    /// `available` before.
    pub before_stock: i64,
    /// `available` after.
    pub after_stock: i64,
    /// By how much `held` changed.
    pub held: i64,
    /// `held` before.
    pub before_held: i64,
    /// `held` after.
    pub after_held: i64,
    /// The order it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order_id: Option<String>,
    /// Why.
    pub reason: String,
    /// Who did it.
    pub operator: String,
    /// When.
    pub at: Time,
}

impl Shop {
    /// What is there of a SKU.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub async fn stock(&self, sku: &str) -> Result<StockLevel> {
        Ok(StockLevel::of(&self.by_id("skus", "sku", sku).await?))
    }

    /// How many of a SKU can be sold; `None` when there is no such SKU.
    ///
    /// # Errors
    /// A store that fails.
    pub async fn available(&self, sku: &str) -> Result<Option<i64>> {
        match self.stock(sku).await {
            Ok(level) => Ok(Some(level.available)),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(other) => Err(other),
        }
    }

    /// Goods come in. `reference` names the delivery; the same one is counted once for a SKU.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Invalid`] for a quantity that is not positive.
    pub async fn receive(&self, sku: &str, quantity: i64, reference: &str, operator: &str) -> Result<StockLevel> {
        self.moved(Movement::Receive, sku, quantity, reference, operator).await
    }

    /// Goods are lost or broken.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::OutOfStock`], [`Error::Invalid`] for a quantity that is not positive.
    pub async fn write_off(&self, sku: &str, quantity: i64, reference: &str, operator: &str) -> Result<StockLevel> {
        self.moved(Movement::WriteOff, sku, quantity, reference, operator).await
    }

    async fn moved(
        &self,
        movement: Movement,
        sku: &str,
        quantity: i64,
        reference: &str,
        operator: &str,
    ) -> Result<StockLevel> {
        if quantity <= 0 {
            return Err(Error::invalid("quantity", "it must be positive"));
        }
        let id = movement::entry_id(reference, movement, sku);
        let (sku, reference, operator) = (sku.to_owned(), reference.to_owned(), operator.to_owned());
        let reads = vec![("skus", sku.clone()), ("stockLedger", id.clone())];
        let done = self.run_reading(reads, move |unit| {
            let (sku, reference, operator, id) = (sku.clone(), reference.clone(), operator.clone(), id.clone());
            Box::pin(async move {
                let reason = Reason { reference: &reference, order: None, why: movement.name(), operator: &operator };
                if unit.get("stockLedger", &id).await?.is_none() {
                    shift(unit, movement, &sku, quantity, reason).await?;
                }
                let found = unit.get("skus", &sku).await?.ok_or_else(|| Error::missing("sku", &sku))?;
                Ok(StockLevel::of(found))
            })
        });
        done.await
    }

    /// The ledger of a SKU, the newest first.
    ///
    /// # Errors
    /// A store that fails.
    pub async fn ledger(&self, sku: &str, limit: usize) -> Result<Vec<LedgerEntry>> {
        let options = store::Find {
            sort: Some(doc! { "at": -1, "_id": -1 }),
            limit: limit.clamp(1, crate::MAX_PAGE) as i64,
            ..store::Find::default()
        };
        let lines = self.collection("stockLedger").find(doc! { "skuId": sku }, options, None).await?;
        lines.iter().map(crate::fields::from_document).collect()
    }

    /// What the ledger says that can be sold of a SKU: the sum of its lines.
    ///
    /// # Errors
    /// A store that fails.
    pub async fn ledger_total(&self, sku: &str) -> Result<i64> {
        let ledger = self.collection("stockLedger");
        let mut sums = ledger.aggregate(reconcile::ledger_sums(sku), store::Aggregate::default(), None).await?;
        Ok(sums.next(None).await?.map_or(0, |sums| sums.long("available")))
    }
}
