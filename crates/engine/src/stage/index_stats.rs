//! `{$indexStats: {}}`: how often each index was used.
//!
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/aggregation/indexStats/>.

use crate::document::RawBsonRef;
use crate::error::{Error, Result};
use crate::stage::{ParseContext, Position, Report, Stage, StageKind, report};
use bson::RawDocumentBuf;
use std::sync::Arc;

pub(super) const STAGE: StageKind = StageKind::new("$indexStats", parse).at(Position::First).not_in_transaction();

fn parse(argument: RawBsonRef<'_>, _: &mut ParseContext<'_>) -> Result<Vec<Arc<dyn Stage>>> {
    if !argument.as_document().is_some_and(bson::RawDocument::is_empty) {
        return Err(Error::location(28803, "The $indexStats stage specification must be an empty object"));
    }
    Ok(report::of(Report::Indexes, RawDocumentBuf::new()))
}
