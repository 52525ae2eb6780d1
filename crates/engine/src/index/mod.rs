//! Indexes: what `createIndexes` asks for, and the keys that a document has.
//!
//! An [`IndexSpec`] is parsed and checked once; afterwards it is a pure function from documents to [`Keys`]. It knows
//! neither where keys are stored nor who reads them.
//!
//! ```text
//!   createIndexes document ──parse.rs──> IndexSpec ──keys.rs, wildcard.rs──> Keys { entries, multikey }
//!                                            └──conflict.rs──> new, the same again, or a conflict with an existing one
//! ```

mod conflict;
mod keys;
mod parse;
mod partial;
mod wildcard;

pub use conflict::{Verdict, same_pattern};
pub(crate) use keys::keys_of;
pub use keys::{Entry, Keys, hash};
pub use partial::Partial;
pub use wildcard::WildcardScope;

use crate::document::collation::Collator;
use bson::{RawDocument, RawDocumentBuf};
use std::sync::Arc;

/// The name of the index on `_id`.
pub const ID_INDEX_NAME: &str = "_id_";

/// The most fields of a compound index.
pub const MAX_KEY_FIELDS: usize = 32;

/// A checked index specification.
#[derive(Debug)]
pub struct IndexSpec {
    document: RawDocumentBuf,
    pattern: RawDocumentBuf,
    name: String,
    fields: Vec<KeyField>,
    unique: bool,
    prepare_unique: bool,
    sparse: bool,
    hidden: bool,
    expire_after_seconds: Option<i64>,
    partial: Option<Partial>,
    collator: Option<Arc<Collator>>,
    wildcard: Option<WildcardScope>,
}

/// One field of a key pattern.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyField {
    /// The path; of a wildcard field, the path as written (`$**` or `a.$**`).
    pub path: String,
    /// How it is indexed.
    pub kind: FieldKind,
}

/// How a field is indexed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FieldKind {
    /// `1`.
    Ascending,
    /// `-1`.
    Descending,
    /// `"hashed"`.
    Hashed,
    /// `$**`, ascending.
    WildcardAscending,
    /// `$**`, descending.
    WildcardDescending,
}

impl FieldKind {
    /// Whether its values are stored in descending order.
    pub fn is_descending(self) -> bool {
        matches!(self, FieldKind::Descending | FieldKind::WildcardDescending)
    }

    /// Whether it is a wildcard field: its key is two fields, the path and the value.
    pub fn is_wildcard(self) -> bool {
        matches!(self, FieldKind::WildcardAscending | FieldKind::WildcardDescending)
    }
}

impl IndexSpec {
    /// The complete document, as `listIndexes` shows it and the catalogue stores it.
    pub fn document(&self) -> &RawDocument {
        &self.document
    }

    /// The key pattern as given.
    pub fn pattern(&self) -> &RawDocument {
        &self.pattern
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The fields of the key pattern.
    pub fn fields(&self) -> &[KeyField] {
        &self.fields
    }

    /// Whether two documents may not have the same key.
    pub fn unique(&self) -> bool {
        self.unique
    }

    /// Whether it is to become unique: new duplicates are refused, older ones may still be there.
    pub fn prepare_unique(&self) -> bool {
        self.prepare_unique
    }

    /// Whether no new duplicates may come.
    pub fn refuses_duplicates(&self) -> bool {
        self.unique || self.prepare_unique
    }

    /// Whether documents without any of the fields are left out.
    pub fn sparse(&self) -> bool {
        self.sparse
    }

    /// Whether queries don't see it.
    pub fn hidden(&self) -> bool {
        self.hidden
    }

    /// The seconds after which documents expire.
    pub fn expire_after_seconds(&self) -> Option<i64> {
        self.expire_after_seconds
    }

    /// The filter that documents must match to be indexed.
    pub fn partial(&self) -> Option<&Partial> {
        self.partial.as_ref()
    }

    /// The collation of its strings.
    pub fn collator(&self) -> Option<&Arc<Collator>> {
        self.collator.as_ref()
    }

    /// Which paths a wildcard index covers.
    pub fn wildcard(&self) -> Option<&WildcardScope> {
        self.wildcard.as_ref()
    }

    /// Whether one of the fields is hashed.
    pub fn is_hashed(&self) -> bool {
        self.fields.iter().any(|field| field.kind == FieldKind::Hashed)
    }

    /// Whether it is `{_id: 1}`, the index that every collection has.
    pub fn is_id(&self) -> bool {
        matches!(&self.fields[..], [field] if field.path == "_id" && field.kind == FieldKind::Ascending)
    }

    /// Whether a field's values are stored in descending order, for each field of the stored key: a wildcard field is two.
    pub fn descending(&self) -> Vec<bool> {
        let mut descending = Vec::with_capacity(self.fields.len() + 1);
        for field in &self.fields {
            if field.kind.is_wildcard() {
                descending.push(field.kind.is_descending());
            }
            descending.push(field.kind.is_descending());
        }
        descending
    }
}

#[cfg(test)]
mod tests;
