//! Moving an order on: only along the state machine, with history, and only the version that was read.

use super::Order;
use crate::error::Result;
use crate::fields::Fields;
use crate::shop::Shop;
use crate::states::{ORDER, Step};
use crate::stock::Movement;
use crate::unit::Unit;
use bson::Document;

/// Moves an order on; gives it to be changed further.
pub(crate) async fn advance<'u>(
    unit: &'u mut Unit<'_>,
    order: &str,
    to: &'static str,
    by: &str,
    why: &str,
) -> Result<&'u mut Document> {
    let at = unit.now;
    let document = unit.edit("orders", "order", order).await?;
    ORDER.advance(document, to, Step { at, by, why })?;
    Ok(document)
}

/// Ends an order that was not paid: its hold goes, its coupon comes back.
pub(crate) async fn close_unpaid(
    unit: &mut Unit<'_>,
    order: &str,
    to: &'static str,
    why: &str,
    by: &str,
) -> Result<()> {
    crate::stock::end(unit, order, Movement::Release, why, by).await?;
    if unit.get("orders", order).await?.is_none() {
        return Ok(()); // somebody deleted it; the stock is not lost with it
    }
    let document = advance(unit, order, to, by, why).await?;
    document.remove("holdUntil");
    let (buyer, coupon) = (document.text("userId").to_owned(), document.text("coupon").to_owned());
    if !coupon.is_empty() {
        crate::coupon::give_back(unit, &buyer, &coupon, order).await?;
    }
    Ok(())
}

impl Shop {
    /// Cancels an order that is not paid (for a paid one, see [`Shop::refund_order`]).
    ///
    /// # Errors
    /// [`Error::IllegalMove`](crate::Error::IllegalMove), [`Error::VersionConflict`](crate::Error::VersionConflict), [`Error::NotFound`](crate::Error::NotFound).
    pub async fn cancel_order(&self, order: &str, by: &str, why: &str, expected: Option<i64>) -> Result<Order> {
        let (order, by, why) = (order.to_owned(), by.to_owned(), why.to_owned());
        let done = self.run(move |unit| {
            let (order, by, why) = (order.clone(), by.clone(), why.clone());
            Box::pin(async move {
                unit.expect_version("orders", "order", &order, expected).await?;
                unit.need("orders", "order", &order).await?;
                close_unpaid(unit, &order, "cancelled", &why, &by).await?;
                Order::of(&unit.need("orders", "order", &order).await?)
            })
        });
        done.await
    }

    /// The buyer has received all of an order.
    ///
    /// # Errors
    /// [`Error::IllegalMove`](crate::Error::IllegalMove), [`Error::VersionConflict`](crate::Error::VersionConflict), [`Error::NotFound`](crate::Error::NotFound).
    pub async fn sign_order(&self, order: &str, by: &str, expected: Option<i64>) -> Result<Order> {
        let (order, by) = (order.to_owned(), by.to_owned());
        let done = self.run(move |unit| {
            let (order, by) = (order.clone(), by.clone());
            Box::pin(async move {
                unit.expect_version("orders", "order", &order, expected).await?;
                Order::of(advance(unit, &order, "signed", &by, "received").await?)
            })
        });
        done.await
    }
}
