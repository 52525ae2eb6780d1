//! Projections: which fields of a document come out, and what is computed beside them.
//!
//! A specification is parsed into a tree by field names; a document goes through it in one pass over its bytes.
//!
//! - **Inclusion** (`{a: 1, "b.c": 1, d: {$add: […]}}`): the named fields in the document's order, then what is computed, in
//!   the specification's order; `_id` comes along unless it is excluded.
//! - **Exclusion** (`{a: 0, "b.c": 0}`): all but the named fields.
//! - `find` also knows `$slice`, `$elemMatch` and the positional `field.$`.
//! - [`AddFields`] keeps every field and sets the computed ones: `$addFields` and `$set`.
//!
//! Paths go through arrays: each document in an array is projected, arrays in arrays too; other elements are dropped by an
//! inclusion, kept by an exclusion and replaced by a computed field. Numbers in paths are names, never positions.
//! Documented at <https://www.mongodb.com/docs/manual/reference/method/db.collection.find/#projection> and
//! <https://www.mongodb.com/docs/manual/reference/operator/aggregation/project/>.

mod add_fields;
mod apply;
mod find_only;
mod meta;
mod parser;
mod tree;

pub use add_fields::AddFields;

use crate::error::Result;
use crate::expression::{self, Environment};
use crate::filter::Filter;
use bson::{RawBsonRef, RawDocument, RawDocumentBuf};
use std::collections::BTreeSet;
use tree::Branch;

/// Where a projection stands: `find` knows operators that the aggregation's `$project` doesn't, and takes an empty one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// `find` and `findAndModify`.
    Find,
    /// `$project` and `$unset`.
    Aggregate,
}

/// Whether the fields named are the ones that stay or the ones that go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// The named fields stay.
    Inclusion,
    /// The named fields go.
    Exclusion,
}

/// A parsed projection.
#[derive(Debug)]
pub struct Projection {
    kind: Kind,
    root: Branch,
    includes_id: bool,
}

impl Projection {
    /// Parses a specification. The filter is the one whose match gives the positional `$` its position; its collation is
    /// `$elemMatch`'s too.
    ///
    /// # Errors
    /// MongoDB's codes, such as `Location31249` and `Location31250` for colliding paths, `Location31253` and `Location31254` for
    /// mixed kinds, `Location51272` for an empty specification of an aggregation.
    pub fn parse(
        specification: &RawDocument,
        filter: Option<&Filter>,
        parser: &mut expression::Parser,
        mode: Mode,
    ) -> Result<Projection> {
        parser::parse(specification, filter, parser, mode)
    }

    /// The projection of `$unset`: an exclusion of paths.
    ///
    /// # Errors
    /// As [`Projection::parse`].
    pub fn exclude<'a>(paths: impl Iterator<Item = &'a str>) -> Result<Projection> {
        parser::exclude(paths)
    }

    /// Projects a document. The position is the filter's [`Filter::matched_position`], where [`Projection::needs_position`].
    ///
    /// # Errors
    /// `Location51246` and `Location51247` when the positional `$` has no position, and what expressions refuse.
    pub fn apply(
        &self,
        document: &RawDocument,
        environment: &Environment,
        position: Option<usize>,
    ) -> Result<RawDocumentBuf> {
        apply::project(self, document, None, environment, position)
    }

    /// Projects a document that was sorted by a key, which `{$meta: "sortKey"}` shows.
    ///
    /// # Errors
    /// As [`Projection::apply`].
    pub fn apply_sorted(
        &self,
        document: &RawDocument,
        sort_key: Option<RawBsonRef<'_>>,
        environment: &Environment,
        position: Option<usize>,
    ) -> Result<RawDocumentBuf> {
        apply::project(self, document, sort_key, environment, position)
    }

    /// Whether it has a positional `$`.
    pub fn needs_position(&self) -> bool {
        self.root.positional
    }

    /// Inclusion or exclusion.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Whether expressions are computed, or other operators: nobody knows how long they take.
    pub fn computes(&self) -> bool {
        self.root.computes
    }

    /// Whether documents come out as they went in.
    pub fn is_identity(&self) -> bool {
        self.kind == Kind::Exclusion && self.root.is_empty() && self.includes_id
    }

    /// Whether it shows the sort key, which must be kept for it then.
    pub fn needs_sort_key(&self) -> bool {
        self.root.shows_sort_key()
    }

    /// The paths that come out, where nothing else is needed to make the result: an inclusion without computed fields and
    /// operators. What an index must hold to cover the query.
    pub fn only_fields(&self) -> Option<BTreeSet<String>> {
        let mut paths = BTreeSet::new();
        if self.kind == Kind::Exclusion || !self.root.plain_paths("", &mut paths) {
            return None;
        }
        if self.includes_id && !paths.iter().any(|path| path == "_id" || path.starts_with("_id.")) {
            paths.insert("_id".to_owned());
        }
        Some(paths)
    }

    /// The paths of the document that the result depends on; `None` when it may be any.
    pub fn dependencies(&self) -> Option<BTreeSet<String>> {
        let mut paths = BTreeSet::new();
        if self.kind == Kind::Exclusion || self.root.positional || !self.root.dependencies("", &mut paths) {
            return None;
        }
        if self.includes_id {
            paths.insert("_id".to_owned());
        }
        Some(paths)
    }

    /// The top-level fields that a later stage can't see any more or sees changed; `None` when that is all but the
    /// fields of [`Projection::preserved`].
    pub fn excluded(&self) -> Option<BTreeSet<String>> {
        let mut names: BTreeSet<String> = self.root.names().map(str::to_owned).collect();
        if !self.includes_id {
            names.insert("_id".to_owned());
        }
        (self.kind == Kind::Exclusion).then_some(names)
    }

    /// The top-level fields that come out exactly as they are in the document, for an inclusion.
    pub fn preserved(&self) -> BTreeSet<String> {
        let mut names: BTreeSet<String> = match self.kind {
            Kind::Inclusion => self.root.included_names().map(str::to_owned).collect(),
            Kind::Exclusion => BTreeSet::new(),
        };
        if self.includes_id && !self.root.names().any(|name| name == "_id") {
            names.insert("_id".to_owned());
        }
        names
    }
}

#[cfg(test)]
mod tests;
