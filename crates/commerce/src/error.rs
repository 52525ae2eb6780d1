//! What the shop refuses, as facts of its business.

use crate::money::Currency;
use std::fmt;

/// What the shop's fallible functions return.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A refusal, or a failure of the store. [`Error::code`] names it for machines, [`Error::fault`] says whose it is.
#[derive(Clone, Debug)]
pub enum Error {
    /// There is less on the shelf than is wanted.
    OutOfStock {
        /// The SKU.
        sku: String,
        /// How many are wanted.
        wanted: i64,
        /// How many are left.
        left: i64,
    },
    /// A buyer wants more of a SKU than one buyer may have.
    LimitPerBuyer {
        /// The SKU.
        sku: String,
        /// How many a buyer may have.
        limit: i64,
        /// How many this one has already.
        had: i64,
    },
    /// There is no such thing.
    NotFound {
        /// What kind of thing: `order`, `sku`, `buyer` …
        what: &'static str,
        /// The id.
        id: String,
    },
    /// There is one of that id already.
    AlreadyExists {
        /// What kind of thing.
        what: &'static str,
        /// The id.
        id: String,
    },
    /// Something that was sent makes no sense.
    Invalid {
        /// Which field.
        field: &'static str,
        /// Why not.
        why: String,
    },
    /// It belongs to somebody else.
    NotYours {
        /// What kind of thing.
        what: &'static str,
        /// The id.
        id: String,
    },
    /// Two amounts in different currencies.
    CurrencyMismatch {
        /// One.
        left: Currency,
        /// The other.
        right: Currency,
    },
    /// An amount that does not fit.
    AmountTooLarge,
    /// A step that the state machine doesn't have.
    IllegalMove {
        /// What kind of thing.
        what: &'static str,
        /// The id.
        id: String,
        /// The state it is in.
        from: String,
        /// The state that was wanted.
        to: String,
    },
    /// It was changed since it was read.
    VersionConflict {
        /// What kind of thing.
        what: &'static str,
        /// The id.
        id: String,
        /// The version that was named.
        expected: i64,
        /// The version it has.
        found: i64,
    },
    /// The same idempotency key with another request.
    KeyReused {
        /// The key.
        key: String,
    },
    /// The cart is empty.
    EmptyCart,
    /// Something is full.
    Full {
        /// What.
        what: &'static str,
        /// How many it holds.
        max: usize,
    },
    /// A coupon can't be used for this.
    CouponRefused {
        /// The coupon.
        coupon: String,
        /// Why not.
        why: CouponRefusal,
    },
    /// A callback or webhook whose signature is wrong, or too old.
    BadSignature,
    /// A payment over another amount than was asked for.
    AmountMismatch {
        /// In minor units, what was asked for.
        expected: i64,
        /// In minor units, what was reported.
        reported: i64,
    },
    /// A refund of more than is left of what was captured.
    RefundTooLarge {
        /// In minor units, what was wanted.
        wanted: i64,
        /// In minor units, what is left.
        left: i64,
    },
    /// The order can't be shipped while its money is going back.
    RefundInProgress {
        /// The order.
        order: String,
    },
    /// More was to be returned than was bought and not yet returned.
    NothingToReturn {
        /// The SKU.
        sku: String,
        /// How many were wanted.
        wanted: i64,
        /// How many are left.
        left: i64,
    },
    /// Who didn't buy it can't review it.
    NotBought {
        /// The product.
        product: String,
    },
    /// The payment provider said no.
    ProviderRefused {
        /// Its words.
        why: String,
    },
    /// The provider gave no answer; what happened will be asked for again.
    ProviderSilent,
    /// More is waiting than the shop takes at once; try again.
    Busy,
    /// The stock cache failed, or gave no answer; ask again with the same key.
    Cache {
        /// Its words.
        why: String,
    },
    /// The store failed.
    Store(store::Error),
}

/// Why a coupon was refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CouponRefusal {
    /// It was used, maybe a moment ago by another order.
    Used,
    /// Its time is over, or has not begun.
    NotValidNow,
    /// The goods are worth less than it asks for.
    BelowThreshold,
    /// All of them are given out.
    AllGivenOut,
    /// This buyer has one already.
    AlreadyHeld,
}

/// Whose fault an error is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// It is not there.
    Missing,
    /// The request makes no sense.
    Request,
    /// Who asks may not.
    Rights,
    /// The state of things does not allow it; another request may have been faster.
    Conflict,
    /// Somebody else is at fault; try again.
    Unavailable,
}

impl Error {
    pub(crate) fn invalid(field: &'static str, why: impl Into<String>) -> Error {
        Error::Invalid { field, why: why.into() }
    }

    pub(crate) fn missing(what: &'static str, id: impl Into<String>) -> Error {
        Error::NotFound { what, id: id.into() }
    }

    /// A stable name for machines, such as `out-of-stock`.
    pub fn code(&self) -> &'static str {
        match self {
            Error::OutOfStock { .. } => "out-of-stock",
            Error::LimitPerBuyer { .. } => "limit-per-buyer",
            Error::NotFound { .. } => "not-found",
            Error::AlreadyExists { .. } => "already-exists",
            Error::Invalid { .. } => "invalid",
            Error::NotYours { .. } => "not-yours",
            Error::CurrencyMismatch { .. } => "currency-mismatch",
            Error::AmountTooLarge => "amount-too-large",
            Error::IllegalMove { .. } => "illegal-move",
            Error::VersionConflict { .. } => "version-conflict",
            Error::KeyReused { .. } => "key-reused",
            Error::EmptyCart => "empty-cart",
            Error::Full { .. } => "full",
            Error::CouponRefused { .. } => "coupon-refused",
            Error::BadSignature => "bad-signature",
            Error::AmountMismatch { .. } => "amount-mismatch",
            Error::RefundTooLarge { .. } => "refund-too-large",
            Error::RefundInProgress { .. } => "refund-in-progress",
            Error::NothingToReturn { .. } => "nothing-to-return",
            Error::NotBought { .. } => "not-bought",
            Error::ProviderRefused { .. } => "provider-refused",
            Error::ProviderSilent => "provider-silent",
            Error::Busy => "busy",
            Error::Cache { .. } => "cache",
            Error::Store(_) => "store",
        }
    }

    /// Whose fault it is.
    pub fn fault(&self) -> Fault {
        match self {
            Error::NotFound { .. } => Fault::Missing,
            Error::Invalid { .. }
            | Error::CurrencyMismatch { .. }
            | Error::AmountTooLarge
            | Error::KeyReused { .. } => Fault::Request,
            Error::NotYours { .. } | Error::BadSignature | Error::NotBought { .. } => Fault::Rights,
            Error::ProviderSilent | Error::Busy | Error::Cache { .. } | Error::Store(_) => Fault::Unavailable,
            _ => Fault::Conflict,
        }
    }
}

impl fmt::Display for CouponRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CouponRefusal::Used => "it has been used",
            CouponRefusal::NotValidNow => "it is not valid now",
            CouponRefusal::BelowThreshold => "the goods are worth less than it asks for",
            CouponRefusal::AllGivenOut => "all of them have been given out",
            CouponRefusal::AlreadyHeld => "this buyer has one already",
        })
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::OutOfStock { sku, wanted, left } => {
                write!(f, "out of stock: {wanted} of {sku} are wanted, {left} are left")
            }
            Error::LimitPerBuyer { sku, limit, had } => {
                write!(f, "a buyer may have {limit} of {sku}, and this one has {had} already")
            }
            Error::NotFound { what, id } => write!(f, "there is no {what} {id}"),
            Error::AlreadyExists { what, id } => write!(f, "there is a {what} {id} already"),
            Error::Invalid { field, why } => write!(f, "{field}: {why}"),
            Error::NotYours { what, id } => write!(f, "the {what} {id} belongs to somebody else"),
            Error::CurrencyMismatch { left, right } => {
                write!(f, "{left} and {right} can't be added up; all of an order is in one currency")
            }
            Error::AmountTooLarge => f.write_str("the amount is too large"),
            Error::IllegalMove { what, id, from, to } => write!(f, "the {what} {id} is {from} and can't become {to}"),
            Error::VersionConflict { what, id, expected, found } => {
                write!(f, "the {what} {id} has version {found}, not {expected}: read it again")
            }
            Error::KeyReused { key } => write!(f, "the key {key} was used for another request; take a new one"),
            Error::EmptyCart => f.write_str("the cart is empty"),
            Error::Full { what, max } => write!(f, "{what}: there is room for {max}"),
            Error::CouponRefused { coupon, why } => write!(f, "the coupon {coupon} can't be used: {why}"),
            Error::BadSignature => f.write_str("the signature is wrong or too old"),
            Error::AmountMismatch { expected, reported } => {
                write!(f, "{reported} were reported where {expected} had been asked for; they go back")
            }
            Error::RefundTooLarge { wanted, left } => {
                write!(f, "{wanted} can't be refunded: {left} are left of what was captured")
            }
            Error::RefundInProgress { order } => {
                write!(f, "the money of order {order} is going back; it can't be shipped")
            }
            Error::NothingToReturn { sku, wanted, left } => {
                write!(f, "{wanted} of {sku} can't be returned: {left} were bought and not returned")
            }
            Error::NotBought { product } => write!(f, "only who bought {product} can review it"),
            Error::ProviderRefused { why } => write!(f, "the payment provider refused: {why}"),
            Error::ProviderSilent => f.write_str("the payment provider gave no answer; it will be asked again"),
            Error::Busy => f.write_str("too much is waiting; try again in a moment"),
            Error::Cache { why } => write!(f, "the stock cache failed: {why}; try again in a moment"),
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

impl From<redis::RedisError> for Error {
    fn from(error: redis::RedisError) -> Error {
        Error::Cache { why: error.to_string() }
    }
}

impl From<bson::error::Error> for Error {
    fn from(error: bson::error::Error) -> Error {
        Error::Store(error.into())
    }
}
