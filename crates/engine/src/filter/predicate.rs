//! What a condition on one path must be able to do.

use super::{Bounds, Node};
use crate::document::collation::Collator;
use crate::document::traverse::Leaf;
use crate::error::Result;
use crate::expression::Environment;
use bson::{RawBsonRef, RawDocumentBuf};
use std::fmt::Debug;

/// What bounds depend on: properties of the index that a planner asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IndexTraits {
    /// Arrays lie on the path: one document may have several keys, and an array itself is no key (but `undefined` stands for
    /// the empty one).
    pub multikey: bool,
    /// Its strings are ordered by a collation.
    pub collated: bool,
}

/// A condition on the values at a path. The default methods say the least: that nothing is known.
pub trait Predicate: Debug + Send + Sync {
    /// Whether one of the values that the path shows satisfies it; `None` is a missing value.
    ///
    /// # Errors
    /// What can only be refused while matching.
    fn matches(&self, value: Option<RawBsonRef<'_>>, environment: &Environment) -> Result<bool>;

    /// The operator's name.
    fn name(&self) -> &'static str;

    /// The operators as a user writes them: `{$gt: 5}`.
    fn describe(&self) -> RawDocumentBuf;

    /// What the path shows where it ends at an array.
    fn leaf(&self) -> Leaf {
        Leaf::ElementsAndArray
    }

    /// The position of the element of an array that satisfies it, for a predicate that looks into arrays itself.
    ///
    /// # Errors
    /// As [`Predicate::matches`].
    fn position(&self, value: RawBsonRef<'_>, environment: &Environment) -> Result<Option<usize>> {
        let _ = (value, environment);
        Ok(None)
    }

    /// Between which keys of an index on the path every matching document has at least one; `None` when that can't be said.
    fn bounds(&self, index: IndexTraits) -> Option<Bounds> {
        let _ = index;
        None
    }

    /// The value that it demands equality with.
    fn equality(&self) -> Option<RawBsonRef<'_>> {
        None
    }

    /// The collation that it compares strings by.
    fn collator(&self) -> Option<&Collator> {
        None
    }

    /// Whether it never matches a missing value, so that an index without entries for such documents will do.
    fn needs_existence(&self) -> bool {
        true
    }

    /// The condition on an array's elements: with paths (`true`) or on the elements themselves.
    fn elements(&self) -> Option<(&Node, bool)> {
        None
    }
}
