//! `{$limit: n}`: the first rows.
//!
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/aggregation/limit/>.

use crate::document::{Row, number};
use crate::error::{Error, Result};
use crate::stage::{ParseContext, RowSource, Rows, Stage, StageContext, StageKind};
use bson::RawBsonRef;
use std::sync::Arc;

pub(super) const STAGE: StageKind = StageKind::new("$limit", parse);

#[derive(Debug)]
struct Limit {
    limit: u64,
}

fn parse(argument: RawBsonRef<'_>, _: &mut ParseContext<'_>) -> Result<Vec<Arc<dyn Stage>>> {
    let refused = || {
        Error::location(
            5107201,
            format!("invalid argument to $limit stage: Expected a non-negative whole number in: $limit: {argument:?}"),
        )
    };
    let limit = number::exact_i64(argument).and_then(|limit| u64::try_from(limit).ok()).ok_or_else(refused)?;
    if limit == 0 {
        return Err(Error::location(15958, "the limit must be positive"));
    }
    Ok(vec![of(limit)])
}

/// A limit as a stage.
pub(super) fn of(limit: u64) -> Arc<dyn Stage> {
    Arc::new(Limit { limit })
}

struct Limited {
    input: Option<Rows>,
    left: u64,
}

impl RowSource for Limited {
    fn next(&mut self) -> Result<Option<Row>> {
        let Some(input) = &mut self.input else { return Ok(None) };
        let row = input.next()?;
        self.left -= 1;
        if self.left == 0 {
            // The input's snapshot and buffers go as soon as nothing more is wanted.
            self.input = None;
        }
        Ok(row)
    }

    fn is_quick(&self) -> bool {
        self.input.as_ref().is_none_or(|input| input.is_quick())
    }
}

impl Stage for Limit {
    fn open(self: Arc<Self>, input: Rows, _: &Arc<StageContext>) -> Result<Rows> {
        Ok(Box::new(Limited { input: Some(input), left: self.limit }))
    }

    fn limit(&self) -> Option<u64> {
        Some(self.limit)
    }
}
