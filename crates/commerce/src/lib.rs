//! Commerce on a store: products with guarded stock and its ledger, orders with snapshots.
//!
//! The documents are those of `models/shop`. What is here so far is the way from the shelf to an order: [`Shop::place_order`]
//! deducts the stock, writes the ledger and the order in one transaction, all lines or none.

mod error;
mod order;
mod shop;

pub use error::{Error, Result};
pub use order::{Line, OrderRequest, PlacedOrder};
pub use shop::{Product, Shop, Sku};
