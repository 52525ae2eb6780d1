//! `{$count: "name"}`: one row with the number of rows; no row when there are none.
//!
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/aggregation/count/>.

use crate::document::{Row, append};
use crate::error::{Error, Result};
use crate::stage::{NoRows, ParseContext, Ready, Rows, Stage, StageContext, StageKind, deferred};
use bson::{RawBsonRef, RawDocumentBuf};
use std::sync::Arc;

pub(super) const STAGE: StageKind = StageKind::new("$count", parse);

#[derive(Debug)]
struct Count {
    name: String,
}

fn parse(argument: RawBsonRef<'_>, _: &mut ParseContext<'_>) -> Result<Vec<Arc<dyn Stage>>> {
    let RawBsonRef::String(name) = argument else {
        return Err(Error::location(40156, "the count field must be a non-empty string"));
    };
    let problem = if name.is_empty() {
        (40157, "the count field must be a non-empty string")
    } else if name.starts_with('$') {
        (40158, "the count field cannot be a $-prefixed path")
    } else if name.contains('\0') {
        (40159, "the count field cannot contain a null byte")
    } else if name.contains('.') {
        (40160, "the count field cannot contain '.'")
    } else if name == "_id" {
        (9039800, "the count field cannot be '_id'")
    } else {
        return Ok(vec![Arc::new(Count { name: name.to_owned() })]);
    };
    Err(Error::location(problem.0, problem.1))
}

impl Stage for Count {
    fn open(self: Arc<Self>, mut input: Rows, _: &Arc<StageContext>) -> Result<Rows> {
        Ok(deferred(move || {
            let mut count = 0_i64;
            input.each(&mut |_| {
                count += 1;
                Ok(())
            })?;
            if count == 0 {
                return Ok(Box::new(NoRows));
            }
            let mut document = RawDocumentBuf::new();
            let count = i32::try_from(count).map_or(RawBsonRef::Int64(count), RawBsonRef::Int32);
            append(&mut document, &self.name, count)?;
            Ok(Box::new(Ready::new(vec![Row::from(document)])))
        }))
    }
}
