//! `{$project: {field: 1 | 0 | expression, …}}`: the fields that stay, go, or are computed.
//!
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/aggregation/project/>.

use crate::error::Result;
use crate::expression::Environment;
use crate::projection::{Mode, Projection};
use crate::stage::pipeline::object;
use crate::stage::{ParseContext, Rows, Stage, StageContext, StageKind, mapped_by};
use bson::{RawBsonRef, RawDocument, RawDocumentBuf};
use std::sync::Arc;

pub(super) const STAGE: StageKind = StageKind::new("$project", parse);

#[derive(Debug)]
struct Project {
    projection: Projection,
}

fn parse(argument: RawBsonRef<'_>, context: &mut ParseContext<'_>) -> Result<Vec<Arc<dyn Stage>>> {
    let specification = object(argument, 15969, "$project specification must be an object")?;
    Ok(vec![of(Projection::parse(specification, None, context.parser, Mode::Aggregate)?)])
}

/// A projection as a stage.
pub(super) fn of(projection: Projection) -> Arc<dyn Stage> {
    Arc::new(Project { projection })
}

impl Stage for Project {
    fn open(self: Arc<Self>, input: Rows, context: &Arc<StageContext>) -> Result<Rows> {
        Ok(mapped_by(self, input, context))
    }

    fn map(&self, document: &RawDocument, environment: &Environment) -> Result<Option<RawDocumentBuf>> {
        self.projection.apply(document, environment, None).map(Some)
    }

    fn is_row_wise(&self) -> bool {
        true
    }

    fn is_quick(&self) -> bool {
        !self.projection.computes()
    }
}
