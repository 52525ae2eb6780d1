//! `{$sortByCount: expression}`: how often each value comes, the most frequent first.
//!
//! Stands for `{$group: {_id: expression, count: {$sum: 1}}}, {$sort: {count: -1}}`. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/aggregation/sortByCount/>.

use crate::error::{Error, Result};
use crate::stage::{ParseContext, SortPattern, Stage, StageKind, group, sort};
use bson::{RawBsonRef, rawdoc};
use std::sync::Arc;

pub(super) const STAGE: StageKind = StageKind::new("$sortByCount", parse);

fn parse(argument: RawBsonRef<'_>, context: &mut ParseContext<'_>) -> Result<Vec<Arc<dyn Stage>>> {
    match argument {
        RawBsonRef::Document(document) => {
            let first = document.iter().next().transpose()?;
            if !first.is_some_and(|(name, _)| name.as_str().starts_with('$')) {
                return Err(Error::location(
                    40147,
                    "the sortByCount field must be defined as a $-prefixed path or an expression inside an object",
                ));
            }
        }
        RawBsonRef::String(path) if path.starts_with('$') => {}
        RawBsonRef::String(_) => {
            return Err(Error::location(
                40148,
                "the sortByCount field must be defined as a $-prefixed path or an expression inside an object",
            ));
        }
        _ => {
            return Err(Error::location(40149, "the sortByCount field must be specified as a string or as an object"));
        }
    }
    let mut specification = bson::RawDocumentBuf::new();
    crate::document::append(&mut specification, "_id", argument)?;
    let sum = rawdoc! { "$sum": 1 };
    crate::document::append(&mut specification, "count", RawBsonRef::Document(&sum))?;
    let mut stages = group::parse(RawBsonRef::Document(&specification), context)?;
    stages.push(sort::of(SortPattern::by("count", true)));
    Ok(stages)
}
