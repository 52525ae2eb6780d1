//! Verification: every promise of the shop, recomputed from what is stored.
//!
//! It reads everything once and compares; it is meant for a shop at rest (after a simulation, a restore, a kill), where
//! any difference is a fault. While the shop is in use, two reads may see two moments.

use crate::error::Result;
use crate::fields::{Fields, element};
use crate::report::{ReportBy, ReportRequest, ReportSource};
use crate::shop::Shop;
use bson::{Document, doc};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use store::Find;

/// The most violations that a verdict names.
pub const MAX_VIOLATIONS: usize = 100;

/// What a verification found; amounts in minor units, of all currencies.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Verdict {
    /// How many orders there are.
    pub orders: u64,
    /// How many payments.
    pub payments: u64,
    /// What was captured.
    pub money_in: i64,
    /// What was refunded and reversed.
    pub money_out: i64,
    /// What is on its way back.
    pub refunding: i64,
    /// What is not as it has to be; the first [`MAX_VIOLATIONS`].
    pub violations: Vec<String>,
}

impl Verdict {
    fn must(&mut self, holds: bool, what: impl FnOnce() -> String) {
        if !holds && self.violations.len() < MAX_VIOLATIONS {
            self.violations.push(what());
        }
    }
}

/// What orders add up to.
#[derive(Default)]
struct Sums {
    by_user: BTreeMap<String, (i64, i64)>,
    /// Orders and their value, by user and currency.
    spending: BTreeMap<(String, String), (i64, i64)>,
    sold: i64,
    refunded: i64,
    latest: BTreeMap<String, String>,
    /// Buyer and coupon of the orders that used one, with the order.
    coupons: BTreeMap<(String, String), String>,
}

impl Shop {
    /// Recomputes everything: orders and their sums, holds, stock, payments, counters, reviews, tracks, reports.
    ///
    /// # Errors
    /// A store that fails; what is wrong in the documents is in the verdict.
    pub async fn verify(&self) -> Result<Verdict> {
        let mut verdict = Verdict::default();
        for found in self.reconcile(false).await?.discrepancies {
            verdict.must(false, || format!("stock: {found:?}"));
        }
        let sums = self.verify_orders(&mut verdict).await?;
        self.verify_payments(&mut verdict).await?;
        self.verify_sales(&sums, &mut verdict).await?;
        self.verify_users(&sums, &mut verdict).await?;
        self.verify_tracks(&sums, &mut verdict).await?;
        self.verify_reviews(&mut verdict).await?;
        Ok(verdict)
    }

    async fn all(&self, collection: &str, fields: &[&str]) -> Result<store::Cursor> {
        let projection: Document = fields.iter().map(|field| ((*field).to_owned(), bson::Bson::Int32(1))).collect();
        let options = Find { projection: Some(projection), ..Find::default() };
        Ok(self.collection(collection).stream(Document::new(), options, None).await?)
    }

    async fn verify_orders(&self, verdict: &mut Verdict) -> Result<Sums> {
        let mut holds = BTreeSet::new();
        let mut cursor = self.all("stockHolds", &["_id"]).await?;
        while let Some(hold) = cursor.next(None).await? {
            holds.insert(hold.text("_id").to_owned());
        }
        let mut sums = Sums::default();
        let fields = [
            "userId",
            "status",
            "items",
            "subtotal",
            "discount",
            "discounts",
            "shippingFee",
            "total",
            "currency",
            "payment",
            "returns",
            "latestLogistics",
            "coupon",
        ];
        let mut cursor = self.all("orders", &fields).await?;
        while let Some(order) = cursor.next(None).await? {
            verdict.orders += 1;
            let (id, status) = (order.text("_id"), order.text("status"));
            let held = holds.remove(id);
            verdict
                .must(held == (status == "created"), || format!("order {id} is {status}, its hold is there: {held}"));
            verify_amounts(&order, verdict);
            if ["paid", "shipped", "signed"].contains(&status) {
                let sum = sums.by_user.entry(order.text("userId").to_owned()).or_default();
                *sum = (sum.0 + 1, sum.1 + order.long("total"));
                let place = (order.text("userId").to_owned(), order.text("currency").to_owned());
                let sum = sums.spending.entry(place).or_default();
                *sum = (sum.0 + 1, sum.1 + order.long("total"));
            }
            let coupon = order.text("coupon");
            if !coupon.is_empty() && !["cancelled", "expired"].contains(&status) {
                let place = (order.text("userId").to_owned(), coupon.to_owned());
                let other = sums.coupons.insert(place, id.to_owned());
                verdict.must(other.is_none(), || format!("coupon {coupon} was used by {id} and {other:?}"));
            }
            let summary = order.part("payment").cloned().unwrap_or_default();
            sums.sold += summary.long("captured");
            sums.refunded += summary.long("refunded");
            if let Some(latest) = order.part("latestLogistics") {
                sums.latest.insert(id.to_owned(), latest.text("_id").to_owned());
            }
        }
        for hold in holds.into_iter().filter(|hold| !hold.starts_with(crate::flash::HOLD_PREFIX)) {
            verdict.must(false, || format!("hold {hold} belongs to no order"));
        }
        Ok(sums)
    }

    async fn verify_payments(&self, verdict: &mut Verdict) -> Result<()> {
        let fields = ["status", "captured", "refunding", "refunded", "reversed", "refunds"];
        let mut cursor = self.all("payments", &fields).await?;
        while let Some(payment) = cursor.next(None).await? {
            verdict.payments += 1;
            let id = payment.text("_id");
            let (captured, refunding) = (payment.long("captured"), payment.long("refunding"));
            let (refunded, reversed) = (payment.long("refunded"), payment.long("reversed"));
            let sum = |status: &str| -> i64 {
                let of = payment.parts("refunds").into_iter().filter(|refund| refund.text("status") == status);
                of.map(|refund| refund.long("amount")).sum()
            };
            let known = payment.text("status") == "captured";
            verdict.must(known == (captured > 0), || format!("payment {id}: state and captured amount differ"));
            // A reversal may overtake a refund that is on its way, which the provider then refuses.
            let sent = (refunding + refunded).max(refunded + reversed);
            verdict.must(!known || captured >= sent, || {
                format!("payment {id}: {refunding} + {refunded} + {reversed} of {captured} went back")
            });
            verdict.must(sum("pending") == refunding, || format!("payment {id}: refunding is not its refunds' sum"));
            verdict.must(sum("done") == refunded, || format!("payment {id}: refunded is not its refunds' sum"));
            verdict.money_in += captured;
            verdict.money_out += refunded + if known { reversed } else { 0 };
            verdict.refunding += refunding;
        }
        Ok(())
    }

    async fn verify_sales(&self, sums: &Sums, verdict: &mut Verdict) -> Result<()> {
        let (mut sold, mut refunded) = (0, 0);
        let mut cursor = self.all("sales", &["sales", "refunds"]).await?;
        while let Some(line) = cursor.next(None).await? {
            sold += line.long("sales");
            refunded += line.long("refunds");
        }
        verdict.must(sold == sums.sold, || format!("sales say {sold}, the orders {}", sums.sold));
        verdict.must(refunded == sums.refunded, || format!("refunds say {refunded}, the orders {}", sums.refunded));
        for by in [ReportBy::City, ReportBy::Product, ReportBy::Sku] {
            for zone in [None, Some("America/New_York")] {
                let request = |source| ReportRequest {
                    by,
                    from: "2000-01-01".to_owned(),
                    to: "2100-01-01".to_owned(),
                    zone: zone.map(str::to_owned),
                    per_day: true,
                    source,
                };
                let rollup = self.report(&request(ReportSource::Rollup)).await?.rows;
                let counted = self.report(&request(ReportSource::Aggregation)).await?.rows;
                verdict.must(rollup == counted, || format!("the report by {by:?} in {zone:?} and its rollup differ"));
            }
        }
        Ok(())
    }

    async fn verify_users(&self, sums: &Sums, verdict: &mut Verdict) -> Result<()> {
        let mut kept = BTreeMap::new();
        let mut cursor = self.all("spending", &["userId", "currency", "orders", "spent"]).await?;
        while let Some(sum) = cursor.next(None).await? {
            let place = (sum.text("userId").to_owned(), sum.text("currency").to_owned());
            kept.insert(place, (sum.long("orders"), sum.long("spent")));
        }
        verdict.must(kept == sums.spending, || "what users spent by currency is not what their orders say".to_owned());
        let mut cursor = self.all("users", &["orderCount", "totalSpent", "coupons"]).await?;
        while let Some(user) = cursor.next(None).await? {
            let id = user.text("_id");
            let kept = (user.long("orderCount"), user.long("totalSpent"));
            let counted = sums.by_user.get(id).copied().unwrap_or_default();
            verdict.must(kept == counted, || format!("user {id}: kept {kept:?}, counted {counted:?}"));
            for coupon in user.parts("coupons") {
                let place = (id.to_owned(), coupon.text("couponId").to_owned());
                let order = sums.coupons.get(&place).map_or("", String::as_str);
                verdict.must(coupon.text("orderId") == order, || format!("coupon {place:?} is not {order:?}'s"));
            }
        }
        Ok(())
    }

    async fn verify_tracks(&self, sums: &Sums, verdict: &mut Verdict) -> Result<()> {
        let mut last: BTreeMap<String, (i64, String)> = BTreeMap::new();
        let mut cursor = self.all("logistics", &["orderId", "time", "last", "events"]).await?;
        while let Some(bucket) = cursor.next(None).await? {
            let id = bucket.text("_id").to_owned();
            let events = bucket.parts("events");
            let newest = events.iter().filter_map(|event| Some((event.time("time")?, event.text("id")))).max();
            let head = bucket.time("time").map(|time| (time, bucket.text("last")));
            verdict.must(newest == head, || format!("bucket {id}: its head is not its last event"));
            let place = (bucket.time("time").map_or(0, |time| time.millis()), id);
            let known = last.entry(bucket.text("orderId").to_owned()).or_insert_with(|| place.clone());
            if place > *known {
                *known = place;
            }
        }
        for (order, (_, bucket)) in &last {
            let kept = sums.latest.get(order);
            verdict.must(kept == Some(bucket), || format!("order {order}: latest is {kept:?}, not {bucket}"));
        }
        verdict.must(sums.latest.len() == last.len(), || "an order has a latest event without a track".to_owned());
        Ok(())
    }

    async fn verify_reviews(&self, verdict: &mut Verdict) -> Result<()> {
        let mut counted: BTreeMap<String, (i64, i64)> = BTreeMap::new();
        let mut cursor = self.all("reviews", &["productId", "rating", "status"]).await?;
        while let Some(review) = cursor.next(None).await? {
            if review.text("status") == "visible" {
                let sum = counted.entry(review.text("productId").to_owned()).or_default();
                *sum = (sum.0 + 1, sum.1 + review.long("rating"));
            }
        }
        let mut cursor = self.all("products", &["reviewCount", "ratingTotal", "latestReviews"]).await?;
        while let Some(product) = cursor.next(None).await? {
            let id = product.text("_id");
            let kept = (product.long("reviewCount"), product.long("ratingTotal"));
            let counted = counted.get(id).copied().unwrap_or_default();
            verdict.must(kept == counted, || format!("product {id}: kept {kept:?}, counted {counted:?}"));
            let latest = product.parts("latestReviews").len() as i64;
            verdict.must(latest == counted.0.min(3), || format!("product {id} shows {latest} reviews"));
        }
        Ok(())
    }
}

/// That an order's parts add up, and that no more came back of them than there is.
fn verify_amounts(order: &Document, verdict: &mut Verdict) {
    let id = order.text("_id");
    let items = order.parts("items");
    let sum = |field: &str| -> i64 { items.iter().map(|item| item.long(field)).sum() };
    let (subtotal, discount) = (order.long("subtotal"), order.long("discount"));
    let (shipping, total) = (order.long("shippingFee"), order.long("total"));
    let listed: i64 = order.parts("discounts").iter().map(|discount| discount.long("amount")).sum();
    verdict.must(sum("totalPrice") == subtotal && sum("discount") == discount && listed == discount, || {
        format!("order {id}: items and discounts don't add up")
    });
    verdict.must(sum("payable") + shipping == total && subtotal - discount + shipping == total, || {
        format!("order {id}: the total is not its parts' sum")
    });
    let summary = order.part("payment").cloned().unwrap_or_default();
    let (captured, refunded) = (summary.long("captured"), summary.long("refunded"));
    let (refunding, status) = (summary.long("refunding"), order.text("status"));
    let is_paid = ["paid", "shipped", "signed", "refunded"].contains(&status);
    verdict
        .must(captured == if is_paid { total } else { 0 }, || format!("order {id} is {status}, captured {captured}"));
    verdict.must(refunded + refunding <= captured, || format!("order {id}: more went back than came"));
    verdict.must((status == "refunded") == (is_paid && refunded == captured), || {
        format!("order {id} is {status}, {refunded} of {captured} went back")
    });
    let mut gone = 0;
    for line in order.parts("returns") {
        let sku = line.text("skuId");
        let item = element(order, "items", "skuId", sku);
        let most = item.map_or(shipping, |item| item.long("payable"));
        let units = item.map_or(0, |item| item.long("quantity"));
        gone += line.long("refunded");
        verdict.must((0..=most).contains(&line.long("refunded")), || format!("order {id}: refunds of {sku:?}"));
        verdict.must((0..=units).contains(&line.long("quantity")), || format!("order {id}: returns of {sku:?}"));
    }
    verdict.must(gone == refunded + refunding, || format!("order {id}: its lines' refunds are not its refunds"));
}
