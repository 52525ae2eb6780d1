//! `{$meta: name}` in a projection: a value that travels beside the document.
//!
//! Only the sort key does here. The values of text search are refused, others are never there, as in MongoDB when
//! nothing set them. Documented at <https://www.mongodb.com/docs/manual/reference/operator/aggregation/meta/>.

use crate::error::{Error, Result};
use bson::RawBsonRef;

/// Which value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Meta {
    /// The key that the document was sorted by.
    SortKey,
    /// One that no document has.
    Absent,
}

impl Meta {
    pub(super) fn parse(argument: RawBsonRef<'_>) -> Result<Meta> {
        let RawBsonRef::String(name) = argument else {
            return Err(Error::location(17307, "$meta only supports string arguments"));
        };
        match name {
            "sortKey" => Ok(Meta::SortKey),
            "textScore" => Err(Error::location(
                40218,
                "query requires text score metadata, but it is not available: Sheaf has no text indexes",
            )),
            "randVal"
            | "indexKey"
            | "recordId"
            | "searchScore"
            | "searchHighlights"
            | "searchScoreDetails"
            | "searchSequenceToken"
            | "vectorSearchScore"
            | "score"
            | "scoreDetails"
            | "geoNearDistance"
            | "geoNearPoint" => Ok(Meta::Absent),
            other => Err(Error::location(17308, format!("Unsupported argument to $meta: {other}"))),
        }
    }
}
