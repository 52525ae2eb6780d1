//! `{$match: filter}`: the rows that a query matches.
//!
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/aggregation/match/>.

use crate::error::{Error, Result};
use crate::expression::Environment;
use crate::filter::Filter;
use crate::stage::{ParseContext, Rows, Stage, StageContext, StageKind, filtered};
use bson::{RawBsonRef, RawDocument, RawDocumentBuf};
use std::sync::Arc;

pub(super) const STAGE: StageKind = StageKind::new("$match", parse);

#[derive(Debug)]
struct Match {
    filter: Filter,
}

fn parse(argument: RawBsonRef<'_>, context: &mut ParseContext<'_>) -> Result<Vec<Arc<dyn Stage>>> {
    let RawBsonRef::Document(filter) = argument else {
        return Err(Error::location(15959, "the match filter must be an expression in an object"));
    };
    refuse_near(RawBsonRef::Document(filter))?;
    let filter = Filter::parse(filter, context.parser, context.collator.clone())?;
    Ok(vec![Arc::new(Match { filter })])
}

fn refuse_near(value: RawBsonRef<'_>) -> Result<()> {
    let walk = |document: &RawDocument| {
        for field in document {
            let (name, value) = field?;
            if matches!(name.as_str(), "$near" | "$nearSphere" | "$geoNear") {
                return Err(Error::location(
                    5626500,
                    "$geoNear, $near, and $nearSphere are not allowed in this context",
                ));
            }
            refuse_near(value)?;
        }
        Ok(())
    };
    match value {
        RawBsonRef::Document(document) => walk(document),
        RawBsonRef::Array(array) => array.into_iter().try_for_each(|value| refuse_near(value?)),
        _ => Ok(()),
    }
}

impl Stage for Match {
    fn open(self: Arc<Self>, input: Rows, context: &Arc<StageContext>) -> Result<Rows> {
        let context = Arc::clone(context);
        Ok(filtered(input, move |row| {
            let found = self.filter.matches(row.document(), &context.environment)?;
            Ok(found.then_some(row))
        }))
    }

    fn map(&self, document: &RawDocument, environment: &Environment) -> Result<Option<RawDocumentBuf>> {
        Ok(self.filter.matches(document, environment)?.then(|| document.to_owned()))
    }

    fn filter(&self) -> Option<&Filter> {
        Some(&self.filter)
    }

    fn is_row_wise(&self) -> bool {
        true
    }
}
