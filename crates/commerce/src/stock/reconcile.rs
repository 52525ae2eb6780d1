//! Reconciliation: the ledger is folded and compared with what the SKUs say, and the holds with what is held.

use crate::error::Result;
use crate::fields::Fields;
use crate::shop::Shop;
use crate::unit::Unit;
use bson::{Bson, Document, doc};
use serde::Serialize;
use std::collections::BTreeMap;
use store::{Aggregate, Find};

/// How many SKUs are looked at together.
const RANGE: i64 = 500;

/// A SKU whose numbers are not what the ledger and the holds say.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Discrepancy {
    /// The SKU.
    pub sku: String,
    /// What it says can be sold.
    pub available: i64,
    /// What the ledger adds up to.
    pub ledger_available: i64,
    /// What it says is held.
    pub held: i64,
    /// What the ledger adds up to.
    pub ledger_held: i64,
    /// What the holds add up to.
    pub holds: i64,
}

/// What a reconciliation found.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Reconciliation {
    /// How many SKUs were compared.
    pub skus: u64,
    /// Those that differ.
    pub discrepancies: Vec<Discrepancy>,
    /// How many were repaired.
    pub repaired: u64,
}

#[derive(Clone, Copy, Default, PartialEq)]
struct Sums {
    available: i64,
    held: i64,
    holds: i64,
}

impl Sums {
    fn of(group: &Document) -> Sums {
        Sums { available: group.long("available"), held: group.long("held"), holds: 0 }
    }
}

/// The sums of the ledgers of some SKUs, a document each.
pub(super) fn ledger_sums(sku: impl Into<Bson>) -> Vec<Document> {
    let sums = doc! { "_id": "$skuId", "available": { "$sum": "$quantity" }, "held": { "$sum": "$held" } };
    vec![doc! { "$match": { "skuId": sku.into() } }, doc! { "$group": sums }]
}

/// The sum of what is held of a SKU.
fn hold_sum(sku: &str) -> Vec<Document> {
    vec![
        doc! { "$match": { "lines.skuId": sku } },
        doc! { "$unwind": "$lines" },
        doc! { "$match": { "lines.skuId": sku } },
        doc! { "$group": { "_id": sku, "holds": { "$sum": "$lines.quantity" } } },
    ]
}

impl Shop {
    /// Folds the ledger, adds up the holds, and compares both with every SKU. With `repair`, a SKU that differs gets what
    /// the ledger and the holds say, and a ledger entry of type `correct` explains it: the number a person counts on the
    /// shelf is then a [`Shop::receive`] or [`Shop::write_off`] away.
    ///
    /// It is exact while the shop is in use: each SKU that seems to differ is compared again in a transaction.
    ///
    /// # Errors
    /// A store that fails.
    pub async fn reconcile(&self, repair: bool) -> Result<Reconciliation> {
        let holds = self.holds_by_sku().await?;
        let mut report = Reconciliation::default();
        let mut after = String::new();
        loop {
            let options = Find { sort: Some(doc! { "_id": 1 }), limit: RANGE, ..Find::default() };
            let skus = self.collection("skus").find(doc! { "_id": { "$gt": &after } }, options, None).await?;
            let Some(last) = skus.last() else { return Ok(report) };
            last.text("_id").clone_into(&mut after);
            report.skus += skus.len() as u64;
            let folded = self.fold(&skus).await?;
            for sku in &skus {
                let id = sku.text("_id");
                let mut sums = folded.get(id).copied().unwrap_or_default();
                sums.holds = holds.get(id).copied().unwrap_or(0);
                if differs(sku, sums) {
                    self.look_closer(id, repair, &mut report).await?;
                }
            }
        }
    }

    /// What the ledger adds up to for each of some SKUs; the store adds up, so that a long ledger is not held in memory.
    async fn fold(&self, skus: &[Document]) -> Result<BTreeMap<String, Sums>> {
        let ids: Vec<&str> = skus.iter().map(|sku| sku.text("_id")).collect();
        let pipeline = ledger_sums(doc! { "$in": ids });
        let mut groups = self.collection("stockLedger").aggregate(pipeline, Aggregate::default(), None).await?;
        let mut sums = BTreeMap::new();
        while let Some(group) = groups.next(None).await? {
            sums.insert(group.text("_id").to_owned(), Sums::of(&group));
        }
        Ok(sums)
    }

    async fn holds_by_sku(&self) -> Result<BTreeMap<String, i64>> {
        let mut sums = BTreeMap::new();
        let options = Find { projection: Some(doc! { "lines": 1 }), ..Find::default() };
        let mut holds = self.collection("stockHolds").stream(Document::new(), options, None).await?;
        while let Some(hold) = holds.next(None).await? {
            for line in hold.parts("lines") {
                *sums.entry(line.text("skuId").to_owned()).or_default() += line.long("quantity");
            }
        }
        Ok(sums)
    }

    async fn look_closer(&self, sku: &str, repair: bool, report: &mut Reconciliation) -> Result<()> {
        let sku = sku.to_owned();
        let found = self.run_alone(move |unit| {
            let sku = sku.clone();
            Box::pin(async move { compare(unit, &sku, repair).await })
        });
        if let Some(discrepancy) = found.await? {
            report.repaired += u64::from(repair);
            report.discrepancies.push(discrepancy);
        }
        Ok(())
    }
}

fn differs(sku: &Document, sums: Sums) -> bool {
    sku.long("available") != sums.available || sku.long("held") != sums.held || sku.long("held") != sums.holds
}

/// Compares one SKU in a transaction of its own.
async fn compare(unit: &mut Unit<'_>, sku: &str, repair: bool) -> Result<Option<Discrepancy>> {
    let Some(document) = unit.get("skus", sku).await?.cloned() else { return Ok(None) };
    let mut sums = unit.aggregate("stockLedger", ledger_sums(sku)).await?.first().map(Sums::of).unwrap_or_default();
    sums.holds = unit.aggregate("stockHolds", hold_sum(sku)).await?.first().map_or(0, |group| group.long("holds"));
    if !differs(&document, sums) {
        return Ok(None);
    }
    let discrepancy = Discrepancy {
        sku: sku.to_owned(),
        available: document.long("available"),
        ledger_available: sums.available,
        held: document.long("held"),
        ledger_held: sums.held,
        holds: sums.holds,
    };
    if repair {
        correct(unit, sku, &document, sums).await?;
    }
    Ok(Some(discrepancy))
}

/// The SKU gets what the ledger says can be sold and what the holds say is held; where the ledger's own sum of holds is
/// off, the entry brings it in line.
async fn correct(unit: &mut Unit<'_>, sku: &str, document: &Document, sums: Sums) -> Result<()> {
    let now = unit.now;
    let available = sums.available.max(0);
    let reason = format!(
        "the SKU said {} available and {} held, the ledger {} and {}, the holds {}",
        document.long("available"),
        document.long("held"),
        sums.available,
        sums.held,
        sums.holds
    );
    let edited = unit.edit("skus", "sku", sku).await?;
    edited.insert("available", available);
    edited.insert("held", sums.holds);
    edited.insert("changedAt", now);
    unit.append(
        "stockLedger",
        doc! {
            "_id": format!("{}:correct:{sku}", crate::id::fresh()),
            "skuId": sku,
            "type": "correct",
            "quantity": available - sums.available,
            "beforeStock": document.long("available"),
            "afterStock": available,
            "held": sums.holds - sums.held,
            "beforeHeld": document.long("held"),
            "afterHeld": sums.holds,
            "reason": reason,
            "operator": "reconcile",
            "at": now,
        },
    );
    Ok(())
}
