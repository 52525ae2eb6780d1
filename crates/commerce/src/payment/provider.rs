//! What the shop asks of a payment provider.

use crate::money::Currency;
use crate::time::Time;
use serde::{Deserialize, Serialize};
use std::fmt;
use store::BoxFuture;

/// A payment provider. Every call may be repeated: a charge is known by its payment, a refund by its key.
pub trait Provider: Send + Sync {
    /// Asks for the money of a payment; whether it came is said by a callback.
    fn charge<'a>(&'a self, charge: &'a ChargeRequest) -> BoxFuture<'a, Result<(), ProviderError>>;

    /// Gives money back; done when it answers.
    fn refund<'a>(&'a self, refund: &'a RefundRequest) -> BoxFuture<'a, Result<(), ProviderError>>;

    /// All that was reported of a payment, for when an answer or a callback was lost; `None` if it never heard of it.
    fn look_up<'a>(&'a self, payment: &'a str) -> BoxFuture<'a, Result<Option<Vec<Callback>>, ProviderError>>;

    /// What was reported of all payments after a place, the oldest first, and the place after it; from the beginning
    /// without one. For what nobody asks about: money that the provider took back while its callback was lost.
    fn events<'a>(&'a self, after: Option<&'a str>) -> BoxFuture<'a, Result<Events, ProviderError>>;
}

/// A page of what a provider reported.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Events {
    /// The events; none at the end.
    pub events: Vec<Callback>,
    /// Where the next page begins.
    pub place: String,
}

/// Why a provider did not do what it was asked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ProviderError {
    /// No answer: it may have done it or not.
    Silent,
    /// It said no, and has not done it.
    Refused(String),
}

impl fmt::Display for ProviderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProviderError::Silent => f.write_str("the provider gave no answer"),
            ProviderError::Refused(why) => write!(f, "the provider refused: {why}"),
        }
    }
}

impl std::error::Error for ProviderError {}

/// Asks for a payment's money.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChargeRequest {
    /// The attempt.
    pub payment_id: String,
    /// In minor units.
    pub amount: i64,
    /// Of what.
    pub currency: Currency,
    /// `card`, `wallet` or `transfer`.
    pub method: String,
}

/// Asks for money to go back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RefundRequest {
    /// The payment.
    pub payment_id: String,
    /// The refund's key: the same one is the same refund.
    pub key: String,
    /// In minor units.
    pub amount: i64,
    /// Of what.
    pub currency: Currency,
}

/// What a callback reports.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reported {
    /// The money came.
    Captured,
    /// It will not come.
    Failed,
    /// A refund was made.
    Refunded,
    /// A refund will not be made.
    RefundFailed,
    /// The provider took money back by itself, as after a complaint at the bank.
    Reversed,
}

/// What a provider reports of a payment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Callback {
    /// The event; a repetition has the same.
    pub id: String,
    /// The attempt.
    pub payment_id: String,
    /// What happened.
    pub report: Reported,
    /// In minor units.
    pub amount: i64,
    /// Of what.
    pub currency: Currency,
    /// The refund's key, for reports of refunds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refund_key: Option<String>,
    /// When it happened.
    pub at: Time,
}
