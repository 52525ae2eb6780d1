//! `{$skip: n}`: all rows but the first.
//!
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/aggregation/skip/>.

use crate::document::{Row, number};
use crate::error::{Error, Result};
use crate::stage::{ParseContext, RowSource, Rows, Stage, StageContext, StageKind};
use bson::RawBsonRef;
use std::sync::Arc;

pub(super) const STAGE: StageKind = StageKind::new("$skip", parse);

#[derive(Debug)]
struct Skip {
    count: u64,
}

fn parse(argument: RawBsonRef<'_>, _: &mut ParseContext<'_>) -> Result<Vec<Arc<dyn Stage>>> {
    let count = number::exact_i64(argument).and_then(|count| u64::try_from(count).ok()).ok_or_else(|| {
        Error::location(
            5107200,
            format!("invalid argument to $skip stage: Expected a non-negative whole number in: $skip: {argument:?}"),
        )
    })?;
    Ok(vec![Arc::new(Skip { count })])
}

struct Skipping {
    input: Rows,
    left: u64,
}

impl RowSource for Skipping {
    fn next(&mut self) -> Result<Option<Row>> {
        while self.left > 0 {
            if self.input.next()?.is_none() {
                return Ok(None);
            }
            self.left -= 1;
        }
        self.input.next()
    }
}

impl Stage for Skip {
    fn open(self: Arc<Self>, input: Rows, _: &Arc<StageContext>) -> Result<Rows> {
        Ok(Box::new(Skipping { input, left: self.count }))
    }

    fn skip(&self) -> Option<u64> {
        Some(self.count)
    }
}
