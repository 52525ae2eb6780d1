//! Whether a new index is one that exists already, or stands against one.
//!
//! Two indexes are the same when key pattern, collation, `unique`, `sparse`, partial filter and wildcard projection are.
//! Expiry and hiding are options beside that.

use super::IndexSpec;
use crate::document::collation;
use crate::error::{Code, Error, Result};
use bson::{RawBsonRef, RawDocument};

/// What an existing index says to a new one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Nothing: they have nothing to do with each other.
    Different,
    /// It is the same index: there is nothing to make.
    Same,
}

impl IndexSpec {
    /// Holds a new index against this existing one.
    ///
    /// # Errors
    /// `IndexKeySpecsConflict` (86) when the name is taken by another index, `IndexOptionsConflict` (85) when the same index
    /// exists under another name or with other options.
    pub fn judge(&self, new: &IndexSpec) -> Result<Verdict> {
        let same = self.is_same_index(new);
        if self.name == new.name {
            if !same {
                return Err(Error::new(
                    Code::INDEX_KEY_SPECS_CONFLICT,
                    format!(
                        "An existing index has the same name as the requested index. When index names are not specified, they \
                         are auto generated and can cause conflicts. Please refer to our documentation. Requested index: \
                         {:?}, existing index: {:?}",
                        new.document, self.document
                    ),
                ));
            }
            if self.expire_after_seconds != new.expire_after_seconds || self.hidden != new.hidden {
                return Err(self.options_conflict(
                    new,
                    "An equivalent index already exists with the same name but different options",
                ));
            }
            return Ok(Verdict::Same);
        }
        if same {
            let what = "Index already exists with a different name";
            return Err(self.options_conflict(new, what));
        }
        Ok(Verdict::Different)
    }

    fn options_conflict(&self, new: &IndexSpec, what: &str) -> Error {
        Error::new(
            Code::INDEX_OPTIONS_CONFLICT,
            format!("{what}: {}. Requested index: {:?}, existing index: {:?}", self.name, new.document, self.document),
        )
    }

    fn is_same_index(&self, other: &IndexSpec) -> bool {
        let projection = |spec: &IndexSpec| spec.wildcard.as_ref().map(|scope| scope.signature());
        let partial = |spec: &IndexSpec| spec.partial.as_ref().map(|partial| partial.clauses().to_vec());
        same_pattern(&self.pattern, &other.pattern)
            && collation::same(self.collator.as_deref(), other.collator.as_deref())
            && self.unique == other.unique
            && self.sparse == other.sparse
            && partial(self) == partial(other)
            && projection(self) == projection(other)
    }
}

/// Whether two key patterns are equal: the same names in the same order, numbers compared as numbers.
pub fn same_pattern(a: &RawDocument, b: &RawDocument) -> bool {
    let equal = crate::document::values_equal(RawBsonRef::Document(a), RawBsonRef::Document(b), None);
    equal.unwrap_or(false)
}
