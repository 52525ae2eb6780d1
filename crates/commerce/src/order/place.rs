//! Placing an order: prices, coupon, stock and the order in one transaction.

use super::{Address, Item, Line, MAX_LINES, MAX_QUANTITY, Order, OrderRequest, currency};
use crate::error::{Error, Result};
use crate::fields::{Fields, to_document};
use crate::id;
use crate::money::{Currency, Money};
use crate::note::Note;
use crate::shop::Shop;
use crate::states::{ORDER, Step};
use crate::unit::{Place, Unit};
use bson::{Bson, Document, doc};
use std::collections::BTreeMap;

impl Shop {
    /// Places an order: all lines are held or none, and what product, price, buyer and address are at this moment is
    /// kept. The order is to be paid before [`Order::hold_until`].
    ///
    /// Under a key it is placed once: the same request again gives the same order.
    ///
    /// # Errors
    /// [`Error::OutOfStock`], [`Error::LimitPerBuyer`], [`Error::NotFound`], [`Error::Invalid`],
    /// [`Error::CurrencyMismatch`], [`Error::CouponRefused`], [`Error::KeyReused`], [`Error::AlreadyExists`] for a number
    /// that is taken.
    pub async fn place_order(&self, request: &OrderRequest) -> Result<Order> {
        self.place_order_noted(request, None).await
    }

    /// The same, with a note of what became of it in the order's own transaction.
    ///
    /// # Errors
    /// As [`Shop::place_order`].
    pub async fn place_order_noted(&self, request: &OrderRequest, note: Option<Note<Order>>) -> Result<Order> {
        let request = request.clone();
        sum_lines(&request.lines)?;
        let number = request.number.clone();
        let placed = self.run_noted(
            reads(&request)?,
            move |unit| {
                let request = request.clone();
                Box::pin(async move { Order::of(&place(unit, &request, None).await?) })
            },
            note,
        );
        match (placed.await, number) {
            (Err(Error::Store(error)), Some(id)) if error.is_duplicate_key() => {
                Err(Error::AlreadyExists { what: "order number", id })
            }
            (placed, _) => placed,
        }
    }
}

/// What placing an order will read, as far as the request says.
pub(crate) fn reads(request: &OrderRequest) -> Result<Vec<Place>> {
    let mut places = vec![("users", request.buyer.clone())];
    if request.key.is_some() {
        let id = order_id(request)?;
        places.extend([("orders", id.clone()), ("stockHolds", id)]);
    }
    for line in &request.lines {
        places.push(("skus", line.sku.clone()));
        places.push(("purchases", crate::stock::purchase_id(&line.sku, &request.buyer)));
    }
    Ok(places)
}

/// The lines with those for the same SKU added up.
pub(crate) fn sum_lines(lines: &[Line]) -> Result<BTreeMap<String, i64>> {
    let mut sums: BTreeMap<String, i64> = BTreeMap::new();
    for Line { sku, quantity } in lines {
        if !(1..=MAX_QUANTITY).contains(quantity) {
            return Err(Error::invalid("lines", format!("the quantity of {sku} must be from 1 to {MAX_QUANTITY}")));
        }
        let sum = sums.entry(sku.clone()).or_default();
        *sum = (*sum + quantity).min(MAX_QUANTITY + 1);
        if *sum > MAX_QUANTITY {
            return Err(Error::invalid("lines", format!("the quantity of {sku} must be from 1 to {MAX_QUANTITY}")));
        }
    }
    match sums.len() {
        0 => Err(Error::invalid("lines", "there are none")),
        1..=MAX_LINES => Ok(sums),
        _ => Err(Error::Full { what: "order", max: MAX_LINES }),
    }
}

/// What the request asks for, to tell a repetition from another request under the same key.
fn fingerprint(request: &OrderRequest, lines: &BTreeMap<String, i64>) -> String {
    let said = serde_json::json!({
        "lines": lines, "address": request.address, "coupon": request.coupon, "remark": request.remark,
    });
    id::derived(&[&said.to_string()])
}

/// The id that a request's order gets: a key gives it always the same one.
pub(crate) fn order_id(request: &OrderRequest) -> Result<String> {
    match &request.key {
        Some(key) if key.len() > id::MAX_ID_BYTES => {
            Err(Error::invalid("key", format!("it is longer than {} bytes", id::MAX_ID_BYTES)))
        }
        Some(key) => Ok(id::derived(&["order", &request.buyer, key])),
        None => Ok(id::fresh()),
    }
}

/// Places an order in a unit, of what is on the shelf or of what a flash sale's hold has set aside; gives its document.
pub(crate) async fn place(unit: &mut Unit<'_>, request: &OrderRequest, sale: Option<&str>) -> Result<Document> {
    let lines = sum_lines(&request.lines)?;
    let fingerprint = fingerprint(request, &lines);
    let order_id = order_id(request)?;
    if let (Some(key), Some(placed)) = (&request.key, unit.get("orders", &order_id).await?) {
        return match placed.text("fingerprint") == fingerprint {
            true => Ok(placed.clone()),
            false => Err(Error::KeyReused { key: key.clone() }),
        };
    }
    let buyer = unit.need("users", "buyer", &request.buyer).await?;
    let address = match (&request.address, buyer.part("defaultAddress")) {
        (Some(address), _) => address.clone(),
        (None, Some(address)) => crate::fields::from_document(address)?,
        (None, None) => return Err(Error::invalid("address", "the buyer has no default address: name one")),
    };
    let (items, subtotal) = price(unit, &lines).await?;
    let priced = discount(unit, request, &order_id, items, subtotal).await?;
    let until = unit.now.plus(unit.shop.settings().hold_for);
    crate::stock::hold(unit, &order_id, &request.buyer, &lines, until, sale).await?;
    let order = document(unit, request, &order_id, &buyer, &address, priced, &fingerprint)?;
    unit.insert("orders", "order", order.clone()).await?;
    Ok(order)
}

/// The items at today's prices, and their sum.
async fn price(unit: &mut Unit<'_>, lines: &BTreeMap<String, i64>) -> Result<(Vec<Item>, Money)> {
    let mut items = Vec::with_capacity(lines.len());
    let mut subtotal: Option<Money> = None;
    for (sku_id, quantity) in lines {
        let sku = unit.need("skus", "sku", sku_id).await?;
        let product_id = sku.text("productId").to_owned();
        let product = unit.get("products", &product_id).await?;
        let product = product.ok_or_else(|| Error::missing("product", &product_id))?;
        if product.text("status") != "active" {
            return Err(Error::missing("product on sale", &product_id));
        }
        let unit_price = Money::new(sku.long("price"), currency(product)?);
        let total = unit_price.times(*quantity)?;
        subtotal = Some(match subtotal {
            Some(sum) => sum.plus(total)?,
            None => total,
        });
        items.push(Item {
            sku_id: sku_id.clone(),
            product_name: product.text("productName").to_owned(),
            image_url: product.text("imageUrl").to_owned(),
            product_id,
            specs: specs(&sku),
            unit_price: unit_price.amount_minor,
            quantity: *quantity,
            total_price: total.amount_minor,
            discount: 0,
            payable: total.amount_minor,
        });
    }
    Ok((items, subtotal.expect("an order has lines")))
}

/// What distinguishes a SKU: `colour: red, size: M`.
fn specs(sku: &Document) -> String {
    let Some(attributes) = sku.part("attributes") else { return String::new() };
    let pairs: Vec<String> =
        attributes.iter().filter_map(|(name, value)| Some(format!("{name}: {}", value.as_str()?))).collect();
    pairs.join(", ")
}

/// An order's prices.
struct Priced {
    items: Vec<Item>,
    subtotal: i64,
    discount: i64,
    shipping_fee: i64,
    total: i64,
    currency: Currency,
}

/// Uses the coupon, and splits its discount over the items.
async fn discount(
    unit: &mut Unit<'_>,
    request: &OrderRequest,
    order_id: &str,
    mut items: Vec<Item>,
    subtotal: Money,
) -> Result<Priced> {
    let off = match &request.coupon {
        Some(coupon) => crate::coupon::redeem(unit, &request.buyer, coupon, order_id, subtotal).await?,
        None => Money::zero(subtotal.currency),
    };
    let goods = subtotal.minus(off)?;
    if off.amount_minor > 0 {
        let weights: Vec<i64> = items.iter().map(|item| item.total_price).collect();
        for (item, part) in items.iter_mut().zip(off.split(&weights)?) {
            item.discount = part.amount_minor;
            item.payable = item.total_price - part.amount_minor;
        }
    }
    let settings = unit.shop.settings();
    let free = settings.free_shipping_from_minor.is_some_and(|from| goods.amount_minor >= from);
    let shipping = Money::new(if free { 0 } else { settings.shipping_fee_minor }, goods.currency);
    let total = goods.plus(shipping)?;
    let parts: i64 = items.iter().map(|item| item.payable).sum();
    assert_eq!(parts + shipping.amount_minor, total.amount_minor, "the parts of an order add up to its total");
    Ok(Priced {
        items,
        subtotal: subtotal.amount_minor,
        discount: off.amount_minor,
        shipping_fee: shipping.amount_minor,
        total: total.amount_minor,
        currency: total.currency,
    })
}

fn document(
    unit: &Unit<'_>,
    request: &OrderRequest,
    order_id: &str,
    buyer: &Document,
    address: &Address,
    priced: Priced,
    fingerprint: &str,
) -> Result<Document> {
    let items: Vec<Bson> =
        priced.items.iter().map(|item| Ok(Bson::Document(to_document(item)?))).collect::<Result<_>>()?;
    let mut order = doc! {
        "_id": order_id,
        "orderNumber": request.number.clone().unwrap_or_else(|| id::order_number(unit.now)),
        "userId": &request.buyer,
        "buyer": { "username": buyer.text("username"), "phone": buyer.text("phone") },
        "shippingAddress": to_document(address)?,
        "items": items,
        "subtotal": priced.subtotal,
        "discount": priced.discount,
        "shippingFee": priced.shipping_fee,
        "total": priced.total,
        "currency": priced.currency.code(),
        "createdAt": unit.now,
        "holdUntil": unit.now.plus(unit.shop.settings().hold_for),
        "payment": { "attempts": [], "captured": 0_i64, "refunding": 0_i64, "refunded": 0_i64 },
        "fingerprint": fingerprint,
        "version": 1_i64,
    };
    if !request.remark.is_empty() {
        order.insert("remark", &request.remark);
    }
    if let Some(coupon) = &request.coupon {
        order.insert("coupon", coupon);
        order.insert("discounts", vec![doc! { "kind": "coupon", "id": coupon, "amount": priced.discount }]);
    }
    ORDER.begin(&mut order, Step { at: unit.now, by: &request.buyer, why: "placed" });
    Ok(order)
}
