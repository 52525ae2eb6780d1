//! `{$documents: [document, …]}`: rows from literals, where there is no collection.
//!
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/aggregation/documents/>.

use crate::document::{RawBsonRef, RawDocumentBuf, Row};
use crate::error::{Error, Result};
use crate::expression::{self, Compiled, Scope};
use crate::stage::{ParseContext, Position, Ready, Rows, Stage, StageContext, StageKind};
use std::sync::Arc;

pub(super) const STAGE: StageKind = StageKind::new("$documents", parse).at(Position::FirstWithoutCollection);

#[derive(Debug)]
struct Documents {
    array: Compiled,
}

fn parse(argument: RawBsonRef<'_>, context: &mut ParseContext<'_>) -> Result<Vec<Arc<dyn Stage>>> {
    Ok(vec![Arc::new(Documents { array: expression::parse(argument, context.parser)? })])
}

impl Stage for Documents {
    fn open(self: Arc<Self>, _: Rows, context: &Arc<StageContext>) -> Result<Rows> {
        let refused = || Error::location(5858203, "an array of objects is expected as the argument of $documents");
        let empty = RawDocumentBuf::new();
        let value = self.array.evaluate(&Scope::new(&empty, &context.environment))?;
        let Some(RawBsonRef::Array(array)) = value.get() else { return Err(refused()) };
        let mut rows = Vec::new();
        for document in array {
            let RawBsonRef::Document(document) = document? else { return Err(refused()) };
            rows.push(Row::from(document.to_owned()));
        }
        Ok(Box::new(Ready::new(rows)))
    }
}
