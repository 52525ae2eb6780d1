//! Reviews: one a buyer and product, by those who bought it. The product carries how many there are, their ratings added
//! up, and the latest three.

use crate::error::{Error, Result};
use crate::fields::{Fields, element, from_document};
use crate::page::{Page, Paging};
use crate::shop::Shop;
use crate::time::Time;
use crate::unit::Unit;
use bson::doc;
use serde::{Deserialize, Serialize};

/// The most bytes of a review's text.
pub const MAX_REVIEW_BYTES: usize = 4_000;

/// What a buyer says of a product.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NewReview {
    /// The order in which it was bought.
    pub order: String,
    /// The product.
    pub product: String,
    /// From 1 to 5.
    pub rating: i64,
    /// In words.
    pub text: String,
}

/// A review.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Review {
    /// Its id.
    #[serde(rename(deserialize = "_id"), alias = "id")]
    pub id: String,
    /// The product.
    pub product_id: String,
    /// Who wrote it.
    pub user_id: String,
    /// Their name.
    #[serde(default)]
    pub user_name: String,
    /// From 1 to 5.
    pub rating: i64,
    /// In words.
    pub text: String,
    /// `visible` or `hidden`.
    pub status: String,
    /// When.
    pub created_at: Time,
}

impl Shop {
    /// Writes a review; a second one of the same product by the same buyer takes the place of the first.
    ///
    /// # Errors
    /// [`Error::NotBought`] unless the order is the buyer's, holds the product and was shipped or signed;
    /// [`Error::Invalid`].
    pub async fn review(&self, buyer: &str, review: &NewReview) -> Result<Review> {
        if !(1..=5).contains(&review.rating) {
            return Err(Error::invalid("rating", "it is from 1 to 5"));
        }
        if review.text.len() > MAX_REVIEW_BYTES {
            return Err(Error::invalid("text", format!("it has at most {MAX_REVIEW_BYTES} bytes")));
        }
        let (buyer, review) = (buyer.to_owned(), review.clone());
        let done = self.run(move |unit| {
            let (buyer, review) = (buyer.clone(), review.clone());
            Box::pin(async move { write(unit, &buyer, &review).await })
        });
        done.await
    }

    /// Shows or hides a review.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub async fn show_review(&self, id: &str, visible: bool) -> Result<Review> {
        let id = id.to_owned();
        let done = self.run(move |unit| {
            let id = id.clone();
            Box::pin(async move {
                let document = unit.edit("reviews", "review", &id).await?;
                document.insert("status", if visible { "visible" } else { "hidden" });
                from_document(document)
            })
        });
        done.await
    }

    /// A page of a product's visible reviews, the newest first.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a cursor that is none.
    pub async fn reviews(&self, product: &str, paging: &Paging) -> Result<Page<Review>> {
        let filter = doc! { "productId": product, "status": "visible" };
        let page = paging.newest_first(self, "reviews", filter, None, "createdAt").await?;
        page.map(|found| from_document(&found))
    }
}

async fn write(unit: &mut Unit<'_>, buyer: &str, review: &NewReview) -> Result<Review> {
    let not_bought = || Error::NotBought { product: review.product.clone() };
    let order = unit.get("orders", &review.order).await?.ok_or_else(not_bought)?;
    let bought = order.text("userId") == buyer
        && ["shipped", "signed"].contains(&order.text("status"))
        && element(order, "items", "productId", &review.product).is_some();
    if !bought {
        return Err(not_bought());
    }
    let name = unit.need("users", "buyer", buyer).await?.text("username").to_owned();
    let id = crate::id::derived(&["review", &review.product, buyer]);
    let now = unit.now;
    if unit.get("reviews", &id).await?.is_some() {
        let document = unit.edit("reviews", "review", &id).await?;
        document.insert("rating", review.rating as i32);
        document.insert("text", &review.text);
        document.insert("createdAt", now);
        return from_document(document);
    }
    let document = doc! {
        "_id": id, "productId": &review.product, "userId": buyer, "userName": name, "orderId": &review.order,
        "rating": review.rating as i32, "text": &review.text, "status": "visible", "createdAt": now,
    };
    unit.insert("reviews", "review", document.clone()).await?;
    from_document(&document)
}
