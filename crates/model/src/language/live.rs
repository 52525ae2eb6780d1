//! `live [NAME] via=REF [txn max=N [overflow=refuse|lag]] [max-lag=DURATION] { fields … }`: a copy kept in sync.
//!
//! `txn` changes the copies in the source's own transaction; `max` bounds how many there may be, and beyond it the
//! change is refused (the default) or the copies follow later (`overflow=lag`). Without `txn` the copies follow the
//! source within `max-lag` (5 s unless given). With a NAME they stand in a sub-document, otherwise beside the reference.

use super::copy::{self, Copied};
use super::{Args, Declaration, Place, Reader, Target};
use crate::problem::Span;
use crate::value::Duration;
use kdl::KdlNode;
use serde::{Deserialize, Serialize};

/// The row in the table of declarations.
pub const ROW: Declaration = Declaration {
    name: "live",
    places: &[Place::Entity, Place::Embed, Place::Edge],
    syntax: "live NAME via=REF max-lag=\"5s\" { fields … } or live NAME txn via=REF max=N overflow=refuse { fields … }",
    meaning: "fields of a referred document, kept in sync",
    parse,
};

/// How far a lagging copy may be behind unless the model says otherwise.
pub const DEFAULT_MAX_LAG: Duration = Duration { ms: 5_000 };

/// The most copies a transaction may change: a hook adds at most so many writes.
pub const MAX_TXN_COPIES: u64 = 1_000;

/// A copy kept in sync.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Live {
    /// The sub-document it stands in; beside the reference without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The reference to the source.
    pub via: String,
    /// When the copies follow.
    pub sync: Sync,
    /// What is copied.
    pub fields: Vec<Copied>,
    /// Where it is declared.
    #[serde(skip)]
    pub span: Span,
}

/// When copies follow their source.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sync {
    /// In the source's own transaction.
    Txn {
        /// The most copies of one source.
        max: u64,
        /// What happens beyond it.
        overflow: Overflow,
    },
    /// Afterwards, within this time.
    Lag {
        /// The longest delay.
        max: Duration,
    },
}

/// What a source with more copies than `max` does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Overflow {
    /// Its change is refused.
    Refuse,
    /// Its copies follow later.
    Lag,
}

fn parse(reader: &mut Reader, node: &KdlNode, mut target: Target<'_>) {
    let mut args = Args::new(reader, node, ROW.syntax);
    let span = args.span();
    let txn = args.flag("txn");
    let max = args.positive_integer("max");
    let overflow = args.choice("overflow", &[("refuse", Overflow::Refuse), ("lag", Overflow::Lag)]);
    let max_lag = args.duration("max-lag");
    let sync = match (txn, max) {
        (true, Some(max)) => {
            if max > MAX_TXN_COPIES {
                let span = args.span_of("max");
                args.wrong("bad-value", span, format!("a transaction changes at most {MAX_TXN_COPIES} copies"));
            }
            if max_lag.is_some() {
                let span = args.span_of("max-lag");
                args.wrong("bad-value", span, "a copy is kept by `txn` or within `max-lag`, not both".into());
            }
            Sync::Txn { max, overflow: overflow.unwrap_or(Overflow::Refuse) }
        }
        (true, None) => {
            args.wrong("missing", span, "a `txn` copy needs `max=N`, the most copies one source may have".into());
            Sync::Txn { max: MAX_TXN_COPIES, overflow: Overflow::Refuse }
        }
        (false, _) => {
            if max.is_some() || overflow.is_some() {
                args.wrong("bad-value", span, "`max` and `overflow` belong to a `txn` copy".into());
            }
            Sync::Lag { max: max_lag.unwrap_or(DEFAULT_MAX_LAG) }
        }
    };
    let via = args.required("via");
    let name = args.word();
    args.finish();
    let fields = copy::block(reader, node, name.as_deref().unwrap_or("live"));
    if fields.is_empty() {
        let mut args = Args::new(reader, node, ROW.syntax);
        args.wrong("missing", span, "name the fields to copy in a block".into());
    }
    target.body().lives.push(Live { name, via, sync, fields, span });
}
