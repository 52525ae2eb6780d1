//! `{$addFields: {field: expression, …}}`: sets computed fields; all others stay.
//!
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/aggregation/addFields/>.

use crate::error::Result;
use crate::expression::Environment;
use crate::projection::AddFields;
use crate::stage::pipeline::object;
use crate::stage::{ParseContext, Rows, Stage, StageContext, StageKind, mapped_by};
use bson::{RawBsonRef, RawDocument, RawDocumentBuf};
use std::sync::Arc;

pub(super) const STAGE: StageKind = StageKind::new("$addFields", parse);

#[derive(Debug)]
struct Computed {
    fields: AddFields,
}

pub(super) fn parse(argument: RawBsonRef<'_>, context: &mut ParseContext<'_>) -> Result<Vec<Arc<dyn Stage>>> {
    let specification = object(argument, 40272, "$addFields specification stage must be an object")?;
    Ok(vec![Arc::new(Computed { fields: AddFields::parse(specification, context.parser)? })])
}

impl Stage for Computed {
    fn open(self: Arc<Self>, input: Rows, context: &Arc<StageContext>) -> Result<Rows> {
        Ok(mapped_by(self, input, context))
    }

    fn map(&self, document: &RawDocument, environment: &Environment) -> Result<Option<RawDocumentBuf>> {
        self.fields.apply(document, environment).map(Some)
    }

    fn is_row_wise(&self) -> bool {
        true
    }
}
