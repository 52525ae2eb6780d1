//! What the shop refuses, as facts of its business.

use std::fmt;

/// What the shop's fallible functions return.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A refusal, or a failure of the store.
#[derive(Clone, Debug)]
pub enum Error {
    /// There is less on the shelf than was asked for.
    OutOfStock {
        /// The SKU.
        sku: String,
        /// How many were asked for.
        asked: i64,
        /// How many there were.
        available: i64,
    },
    /// There is no such SKU.
    UnknownSku(String),
    /// There is no such buyer.
    UnknownBuyer(String),
    /// A quantity that is not positive, or no lines at all.
    InvalidLine(String),
    /// The lines are in different currencies.
    MixedCurrencies,
    /// The store failed.
    Store(store::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::OutOfStock { sku, asked, available } => {
                write!(f, "out of stock: {asked} of {sku} were asked for, {available} are there")
            }
            Error::UnknownSku(sku) => write!(f, "there is no SKU {sku}"),
            Error::UnknownBuyer(buyer) => write!(f, "there is no buyer {buyer}"),
            Error::InvalidLine(why) => write!(f, "the order can't be placed: {why}"),
            Error::MixedCurrencies => f.write_str("all lines of an order must be in one currency"),
            Error::Store(error) => write!(f, "the store failed: {error}"),
        }
    }
}

impl std::error::Error for Error {}

impl From<store::Error> for Error {
    fn from(error: store::Error) -> Error {
        Error::Store(error)
    }
}
