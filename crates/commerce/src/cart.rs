//! Carts: one a buyer, and what becomes an order leaves it in the same transaction.

use crate::error::{Error, Result};
use crate::fields::{Fields, from_document};
use crate::note::Note;
use crate::order::{Address, Line, MAX_LINES, MAX_QUANTITY, Order, OrderRequest};
use crate::shop::Shop;
use crate::unit::Unit;
use bson::{Bson, Document, doc};
use serde::{Deserialize, Serialize};

/// What a buyer has in the cart.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Cart {
    /// The lines, in the order in which they were put there.
    pub lines: Vec<Line>,
    /// How often it was changed.
    pub version: i64,
}

/// How a cart becomes an order.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Checkout {
    /// The idempotency key of the button: pressed again with the same key, it gives the same order.
    pub key: String,
    /// Where to; the buyer's default address unless given.
    pub address: Option<Address>,
    /// A coupon that the buyer holds.
    pub coupon: Option<String>,
    /// What the buyer wants to say.
    pub remark: String,
}

impl Shop {
    /// A buyer's cart; empty if there is none.
    ///
    /// # Errors
    /// A store that fails.
    pub async fn cart(&self, buyer: &str) -> Result<Cart> {
        let found = self.collection("carts").find_one(doc! { "_id": buyer }, None).await?;
        found.as_ref().map_or(Ok(Cart::default()), from_document)
    }

    /// Puts so many of a SKU into the cart, in place of what was there of it; zero takes it out.
    ///
    /// # Errors
    /// [`Error::NotFound`] for buyer or SKU, [`Error::Invalid`], [`Error::Full`], [`Error::VersionConflict`].
    pub async fn put_in_cart(&self, buyer: &str, sku: &str, quantity: i64, expected: Option<i64>) -> Result<Cart> {
        if !(0..=MAX_QUANTITY).contains(&quantity) {
            return Err(Error::invalid("quantity", format!("it is from 0 to {MAX_QUANTITY}")));
        }
        let (buyer, sku) = (buyer.to_owned(), sku.to_owned());
        let id = buyer.clone();
        let done = self.run(move |unit| {
            let (buyer, sku) = (buyer.clone(), sku.clone());
            Box::pin(async move {
                if unit.get("users", &buyer).await?.is_none() {
                    return Err(Error::missing("buyer", buyer));
                }
                if quantity > 0 && unit.get("skus", &sku).await?.is_none() {
                    return Err(Error::missing("sku", sku));
                }
                if unit.get("carts", &buyer).await?.is_none() {
                    if expected.is_some_and(|expected| expected != 0) {
                        return Err(Error::missing("cart", buyer));
                    }
                    unit.insert("carts", "cart", doc! { "_id": &buyer, "lines": [] }).await?;
                } else {
                    unit.expect_version("carts", "cart", &buyer, expected).await?;
                }
                put(unit.edit("carts", "cart", &buyer).await?, &sku, quantity)
            })
        });
        done.await?;
        self.cart(&id).await
    }

    /// Makes an order of the cart and empties it: both or neither, and once for a key.
    ///
    /// # Errors
    /// [`Error::EmptyCart`], and what [`Shop::place_order`] refuses; the cart then stays as it is.
    pub async fn checkout(&self, buyer: &str, checkout: &Checkout) -> Result<Order> {
        self.checkout_noted(buyer, checkout, None).await
    }

    /// The same, with a note of what became of it in the order's own transaction.
    ///
    /// # Errors
    /// As [`Shop::checkout`].
    pub async fn checkout_noted(&self, buyer: &str, checkout: &Checkout, note: Option<Note<Order>>) -> Result<Order> {
        if checkout.key.is_empty() {
            return Err(Error::invalid("key", "a checkout needs an idempotency key"));
        }
        let (buyer, checkout) = (buyer.to_owned(), checkout.clone());
        let id = cart_order(&buyer, &checkout.key);
        let reads =
            vec![("users", buyer.clone()), ("carts", buyer.clone()), ("orders", id.clone()), ("stockHolds", id)];
        let done = self.run_noted(
            reads,
            move |unit| {
                let (buyer, checkout) = (buyer.clone(), checkout.clone());
                Box::pin(async move { check_out(unit, &buyer, &checkout).await })
            },
            note,
        );
        done.await
    }
}

fn cart_key(key: &str) -> String {
    format!("cart:{key}")
}

/// The id of the order that a cart becomes under a key.
fn cart_order(buyer: &str, key: &str) -> String {
    crate::id::derived(&["order", buyer, &cart_key(key)])
}

fn put(cart: &mut Document, sku: &str, quantity: i64) -> Result<()> {
    let mut lines: Vec<Document> = cart.parts("lines").into_iter().cloned().collect();
    match lines.iter().position(|line| line.text("skuId") == sku) {
        Some(index) if quantity == 0 => drop(lines.remove(index)),
        Some(index) => drop(lines[index].insert("quantity", quantity)),
        None if quantity == 0 => {}
        None if lines.len() >= MAX_LINES => return Err(Error::Full { what: "cart", max: MAX_LINES }),
        None => lines.push(doc! { "skuId": sku, "quantity": quantity }),
    }
    cart.insert("lines", lines.into_iter().map(Bson::Document).collect::<Vec<_>>());
    Ok(())
}

async fn check_out(unit: &mut Unit<'_>, buyer: &str, checkout: &Checkout) -> Result<Order> {
    // The key alone says which order it is: the cart that it was made of is empty by now.
    let (key, id) = (cart_key(&checkout.key), cart_order(buyer, &checkout.key));
    if let Some(placed) = unit.get("orders", &id).await? {
        return Order::of(placed);
    }
    let cart = unit.get("carts", buyer).await?.cloned().unwrap_or_default();
    let lines: Vec<Line> = cart.parts("lines").into_iter().map(from_document).collect::<Result<_>>()?;
    if lines.is_empty() {
        return Err(Error::EmptyCart);
    }
    let request = OrderRequest {
        key: Some(key),
        buyer: buyer.to_owned(),
        lines,
        address: checkout.address.clone(),
        coupon: checkout.coupon.clone(),
        remark: checkout.remark.clone(),
        ..OrderRequest::default()
    };
    let order = Order::of(&crate::order::place(unit, &request, None).await?)?;
    unit.edit("carts", "cart", buyer).await?.insert("lines", Bson::Array(Vec::new()));
    Ok(order)
}
