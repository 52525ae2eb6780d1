//! Coupons: a campaign gives out so many, a buyer holds them in their own document, an order uses one once.
//!
//! The campaign's counter is only touched when a coupon is given out. Using one changes the buyer's own document, in the
//! transaction that places the order: whoever loses a race for a coupon loses only their own order.

use crate::error::{CouponRefusal, Error, Result};
use crate::fields::{Fields, element, element_mut, from_document, to_document};
use crate::money::{Currency, Money, Rate};
use crate::shop::Shop;
use crate::time::Time;
use crate::unit::Unit;
use bson::{Bson, Document, doc};
use serde::{Deserialize, Serialize};

/// The most coupons that a buyer holds.
pub const MAX_COUPONS: usize = 50;

/// What a coupon takes off.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Reduction {
    /// So much, in minor units; never more than the goods are worth.
    Amount(i64),
    /// A percentage of the goods' value.
    Percent(Rate),
}

/// A campaign that gives out coupons.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Campaign {
    /// Its id.
    #[serde(alias = "_id")]
    pub id: String,
    /// What buyers see.
    pub name: String,
    /// What a coupon takes off.
    pub reduction: Reduction,
    /// The goods' least value in minor units.
    pub threshold: i64,
    /// Of what.
    pub currency: Currency,
    /// How many coupons there are in all.
    pub total: i64,
    /// From when they can be used.
    pub valid_from: Time,
    /// Until when (exclusive).
    pub valid_until: Time,
}

/// A coupon that a buyer holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Coupon {
    /// Its id: that of the campaign, of which a buyer gets one.
    pub coupon_id: String,
    /// What buyers see.
    pub name: String,
    /// What it takes off.
    pub reduction: Reduction,
    /// The goods' least value in minor units.
    pub threshold: i64,
    /// Of what.
    pub currency: Currency,
    /// From when it can be used.
    pub valid_from: Time,
    /// Until when (exclusive).
    pub expire_time: Time,
    /// `unused` or `used`.
    pub status: String,
    /// The order that used it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order_id: Option<String>,
}

impl Shop {
    /// Starts a campaign.
    ///
    /// # Errors
    /// [`Error::AlreadyExists`], [`Error::Invalid`].
    pub async fn add_campaign(&self, campaign: &Campaign) -> Result<()> {
        if campaign.total < 0 || campaign.threshold < 0 || matches!(campaign.reduction, Reduction::Amount(..=0)) {
            return Err(Error::invalid(
                "campaign",
                "total and threshold are not negative, and a reduction is positive",
            ));
        }
        let mut document = to_document(campaign)?;
        let id = document.remove("id").unwrap_or(Bson::Null);
        document.insert("_id", id);
        document.insert("given", 0_i64);
        let done = self.run(move |unit| {
            let document = document.clone();
            Box::pin(async move { unit.insert("coupons", "campaign", document).await })
        });
        done.await
    }

    /// Gives a buyer a coupon of a campaign: one each, never more than there are.
    ///
    /// # Errors
    /// [`Error::CouponRefused`], [`Error::NotFound`], [`Error::Full`].
    pub async fn claim_coupon(&self, buyer: &str, campaign: &str) -> Result<Coupon> {
        let (buyer, campaign) = (buyer.to_owned(), campaign.to_owned());
        let done = self.run(move |unit| {
            let (buyer, campaign) = (buyer.clone(), campaign.clone());
            Box::pin(async move { claim(unit, &buyer, &campaign).await })
        });
        done.await
    }

    /// The coupons that a buyer holds.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub async fn coupons(&self, buyer: &str) -> Result<Vec<Coupon>> {
        let user = self.by_id("users", "buyer", buyer).await?;
        user.parts("coupons").into_iter().map(from_document).collect()
    }
}

fn refused(coupon: &str, why: CouponRefusal) -> Error {
    Error::CouponRefused { coupon: coupon.to_owned(), why }
}

async fn claim(unit: &mut Unit<'_>, buyer: &str, id: &str) -> Result<Coupon> {
    let now = unit.now;
    let document = unit.need("coupons", "campaign", id).await?;
    let campaign: Campaign = from_document(&document)?;
    if now >= campaign.valid_until {
        return Err(refused(id, CouponRefusal::NotValidNow));
    }
    let user = unit.need("users", "buyer", buyer).await?;
    if element(&user, "coupons", "couponId", id).is_some() {
        return Err(refused(id, CouponRefusal::AlreadyHeld));
    }
    let given = document.long("given");
    if given >= campaign.total {
        return Err(refused(id, CouponRefusal::AllGivenOut));
    }
    let coupon = Coupon {
        coupon_id: id.to_owned(),
        name: campaign.name,
        reduction: campaign.reduction,
        threshold: campaign.threshold,
        currency: campaign.currency,
        valid_from: campaign.valid_from,
        expire_time: campaign.valid_until,
        status: "unused".to_owned(),
        order_id: None,
    };
    unit.edit("coupons", "campaign", id).await?.insert("given", given + 1);
    let user = unit.edit("users", "buyer", buyer).await?;
    make_room(user, now)?;
    crate::fields::push(user, "coupons", to_document(&coupon)?, MAX_COUPONS);
    Ok(coupon)
}

/// Drops what can't be used any more when a buyer's list is full.
fn make_room(user: &mut Document, now: Time) -> Result<()> {
    let Ok(coupons) = user.get_array_mut("coupons") else { return Ok(()) };
    if coupons.len() >= MAX_COUPONS {
        coupons.retain(|coupon| {
            let over =
                coupon.as_document().and_then(|coupon| coupon.time("expireTime")).is_some_and(|time| time <= now);
            !over
        });
    }
    match coupons.len() < MAX_COUPONS {
        true => Ok(()),
        false => Err(Error::Full { what: "coupons", max: MAX_COUPONS }),
    }
}

/// Uses a coupon for an order; gives what it takes off.
pub(crate) async fn redeem(unit: &mut Unit<'_>, buyer: &str, coupon: &str, order: &str, goods: Money) -> Result<Money> {
    let now = unit.now;
    let user = unit.edit("users", "buyer", buyer).await?;
    let Some(document) = element_mut(user, "coupons", "couponId", coupon) else {
        return Err(Error::missing("coupon", coupon));
    };
    let held: Coupon = from_document(document)?;
    if held.status != "unused" {
        return Err(refused(coupon, CouponRefusal::Used));
    }
    if now < held.valid_from || now >= held.expire_time {
        return Err(refused(coupon, CouponRefusal::NotValidNow));
    }
    goods.same_currency(Money::zero(held.currency))?;
    if goods.amount_minor < held.threshold {
        return Err(refused(coupon, CouponRefusal::BelowThreshold));
    }
    let off = match held.reduction {
        Reduction::Amount(amount) => amount,
        Reduction::Percent(rate) => rate.of(goods.amount_minor)?,
    };
    document.insert("status", "used");
    document.insert("orderId", order);
    Ok(Money::new(off.clamp(0, goods.amount_minor), goods.currency))
}

/// An order that had given its coupon back is paid after all: it uses it again, unless another order did meanwhile.
pub(crate) async fn use_again(unit: &mut Unit<'_>, buyer: &str, coupon: &str, order: &str) -> Result<()> {
    let user = unit.edit("users", "buyer", buyer).await?;
    match element_mut(user, "coupons", "couponId", coupon) {
        Some(document) if document.text("status") == "unused" => {
            document.insert("status", "used");
            document.insert("orderId", order);
            Ok(())
        }
        _ => Err(refused(coupon, CouponRefusal::Used)),
    }
}

/// An order that used a coupon was not paid: the coupon can be used again.
pub(crate) async fn give_back(unit: &mut Unit<'_>, buyer: &str, coupon: &str, order: &str) -> Result<()> {
    if unit.get("users", buyer).await?.is_none() {
        return Ok(());
    }
    let user = unit.edit("users", "buyer", buyer).await?;
    if let Some(document) = element_mut(user, "coupons", "couponId", coupon)
        && document.text("orderId") == order
    {
        document.insert("status", "unused");
        document.remove("orderId");
    }
    Ok(())
}
