//! An update by an aggregation pipeline of the stages that map one document to one.
//!
//! The `_id` stays: a pipeline that drops it gets it back, one that changes it is refused. Zero timestamps at the top level
//! become the operation's cluster time. Documented at
//! <https://www.mongodb.com/docs/manual/tutorial/update-documents-with-aggregation-pipeline/>.

use crate::document::{RawArray, RawDocument, RawDocumentBuf, append, get, validate};
use crate::error::Result;
use crate::expression::Parser;
use crate::stage;
use crate::update::{UpdateContext, check_id, immutable_id};

/// A parsed pipeline.
#[derive(Debug)]
pub(crate) struct Pipeline {
    stages: stage::Pipeline,
}

impl Pipeline {
    /// Parses the stages.
    ///
    /// # Errors
    /// `InvalidOptions` (72) for a stage that may not stand in an update, and what the stages refuse.
    pub(crate) fn parse(stages: &RawArray, parser: &mut Parser) -> Result<Pipeline> {
        Ok(Pipeline { stages: stage::Pipeline::parse_update(stages, parser)? })
    }

    /// The document after.
    ///
    /// # Errors
    /// `ImmutableField` (66) when the pipeline changes the `_id`, and what the stages refuse.
    pub(crate) fn apply(&self, before: &RawDocument, context: &UpdateContext<'_>) -> Result<RawDocumentBuf> {
        let after = self.stages.map(before, context.environment)?.unwrap_or_default();
        let after = validate::with_timestamps(after, context.environment.cluster_time)?;
        let Some(id) = get(before, "_id")? else { return Ok(after) };
        if get(&after, "_id")?.is_some() {
            check_id(before, &after, immutable_id)?;
            return Ok(after);
        }
        let mut kept = RawDocumentBuf::new();
        append(&mut kept, "_id", id)?;
        for field in &after {
            let (name, value) = field?;
            kept.append(name, value);
        }
        Ok(kept)
    }
}
