//! What a model keeps, one declaration at a time: what backfill and audit go through.

use super::bucket::Pack;
use super::effect::{Apart, Extreme, Newest, Packed, Stocked};
use super::timeline::Fan;
use super::{CopyIn, Roll};
use bson::RawDocumentBuf;
use std::sync::Arc;

/// One kept thing.
#[derive(Clone, Debug)]
pub struct Declaration {
    /// Its name, e.g. `user.orderCount`.
    pub name: String,
    /// The collection that holds what is kept.
    pub collection: String,
    /// The collection that it follows.
    pub source: String,
    /// How it follows.
    pub rule: Rule,
}

/// How a kept thing follows its source.
#[derive(Clone, Debug)]
pub enum Rule {
    /// A count or sum on a parent over its children.
    Number(Number),
    /// A `min` or `max`.
    Extreme(Arc<Extreme>),
    /// A `latest` or `recent`.
    Newest(Arc<Newest>),
    /// A live copy or a snapshot.
    Copy(Arc<CopyIn>),
    /// A reference; a document that it names may be missing.
    Reference {
        /// Its path in the holders.
        path: String,
        /// Whether a holder may have several.
        many: bool,
    },
    /// A rollup.
    Roll(Arc<Roll>),
    /// Children packed into chunks.
    Bucket(Arc<Pack>),
    /// Fields in a document of their own.
    Split(Arc<Apart>),
    /// A large field, compressed.
    Compressed(Arc<Packed>),
    /// A quantity with its ledger and holds.
    Stock(Arc<Stocked>),
    /// Items in inboxes.
    Timeline(Arc<Fan>),
    /// The two rows of a mutual edge.
    Mirror {
        /// The field it starts from.
        from: String,
        /// The field it leads to.
        to: String,
    },
}

/// A count or sum.
#[derive(Clone, Debug, PartialEq)]
pub struct Number {
    /// The parent's field.
    pub field: String,
    /// The children's field with the parent's id.
    pub by: String,
    /// Which children count.
    pub filter: RawDocumentBuf,
    /// What of a child is added up; 1 without it.
    pub amount: Option<String>,
}

impl Declaration {
    /// Whether it is exactly what another one says, so that nothing has to be filled again.
    pub fn means_the_same(&self, other: &Declaration) -> bool {
        let places = (&self.name, &self.collection, &self.source) == (&other.name, &other.collection, &other.source);
        places
            && match (&self.rule, &other.rule) {
                (Rule::Number(a), Rule::Number(b)) => a == b,
                (Rule::Extreme(a), Rule::Extreme(b)) => a == b,
                (Rule::Newest(a), Rule::Newest(b)) => a == b,
                (Rule::Copy(a), Rule::Copy(b)) => a == b,
                (Rule::Reference { path: a, .. }, Rule::Reference { path: b, .. }) => a == b,
                (Rule::Roll(a), Rule::Roll(b)) => a.means_the_same(b),
                (Rule::Bucket(a), Rule::Bucket(b)) => a == b,
                (Rule::Split(a), Rule::Split(b)) => a == b,
                (Rule::Compressed(a), Rule::Compressed(b)) => a == b,
                (Rule::Stock(a), Rule::Stock(b)) => a == b,
                (Rule::Timeline(a), Rule::Timeline(b)) => a == b,
                (Rule::Mirror { from: a, to: b }, Rule::Mirror { from: c, to: d }) => (a, b) == (c, d),
                _ => false,
            }
    }

    /// Whether a backfill has something to do for it.
    pub fn is_filled(&self) -> bool {
        !matches!(self.rule, Rule::Reference { .. })
    }

    /// What kind of declaration it is, for people.
    pub fn kind(&self) -> &'static str {
        match &self.rule {
            Rule::Number(number) if number.amount.is_none() => "count",
            Rule::Number(_) => "sum",
            Rule::Extreme(rule) if rule.largest => "max",
            Rule::Extreme(_) => "min",
            Rule::Newest(rule) if rule.keep.is_none() => "latest",
            Rule::Newest(_) => "recent",
            Rule::Copy(copy) if copy.fill.is_none() => "live",
            Rule::Copy(_) => "snapshot",
            Rule::Reference { .. } => "ref",
            Rule::Roll(_) => "rollup",
            Rule::Bucket(_) => "bucket",
            Rule::Split(_) => "split",
            Rule::Compressed(_) => "compress",
            Rule::Stock(_) => "stock",
            Rule::Timeline(_) => "timeline",
            Rule::Mirror { .. } => "edge",
        }
    }
}

impl Roll {
    fn means_the_same(&self, other: &Roll) -> bool {
        let parts = |roll: &Roll| (roll.unwind.clone(), roll.counts.clone(), roll.sums.clone(), roll.tz.clone());
        parts(self) == parts(other)
            && self.extremes == other.extremes
            && self.keys == other.keys
            && self.filter.source == other.filter.source
    }

    /// Which documents are rolled up.
    pub fn filter(&self) -> &bson::RawDocument {
        &self.filter.source
    }
}
