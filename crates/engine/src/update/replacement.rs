//! An update that replaces the document as a whole, except for its `_id`.
//!
//! Zero timestamps at the top level become the operation's cluster time, as on insert.

use crate::document::{RawBsonRef, RawDocument, RawDocumentBuf, append, get};
use crate::error::{Code, Error, Result};
use crate::update::apply::dollar_prefixed;
use crate::update::{UpdateContext, check_id, show};

/// A parsed replacement.
#[derive(Debug)]
pub(crate) struct Replacement {
    document: RawDocumentBuf,
}

impl Replacement {
    /// Parses a replacement.
    ///
    /// # Errors
    /// `DollarPrefixedFieldName` (52) for a top-level field whose name begins with `$`.
    pub(crate) fn parse(document: &RawDocument) -> Result<Replacement> {
        for field in document {
            let (name, _) = field?;
            if name.as_str().starts_with('$') {
                return Err(dollar_prefixed(name.as_str()));
            }
        }
        Ok(Replacement { document: document.to_owned() })
    }

    /// The document after.
    ///
    /// # Errors
    /// `ImmutableField` (66) when the replacement has another `_id`.
    pub(crate) fn apply(&self, before: &RawDocument, context: &UpdateContext<'_>) -> Result<RawDocumentBuf> {
        let mut after = RawDocumentBuf::new();
        if let Some(id) = get(before, "_id")?.or(get(&self.document, "_id")?) {
            append(&mut after, "_id", id)?;
        }
        for field in &self.document {
            let (name, value) = field?;
            match (name.as_str(), value) {
                ("_id", id) => {
                    let mut given = RawDocumentBuf::new();
                    append(&mut given, "_id", id)?;
                    check_id(before, &given, || {
                        Error::new(
                            Code::IMMUTABLE_FIELD,
                            format!(
                                "After applying the update, the (immutable) field '_id' was found to have been altered to \
                                 _id: {}",
                                show(id)
                            ),
                        )
                    })?;
                }
                (name, RawBsonRef::Timestamp(time)) if time.time == 0 && time.increment == 0 => {
                    append(&mut after, name, RawBsonRef::Timestamp(context.environment.cluster_time))?;
                }
                (name, value) => append(&mut after, name, value)?,
            }
        }
        Ok(after)
    }
}
