//! `{$sort: {field: 1 | -1, …}}`: the rows in order; equal rows keep theirs.
//!
//! A `$limit` behind it makes it hold no more rows than the limit. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/aggregation/sort/>.

use crate::error::Result;
use crate::stage::pipeline::object;
use crate::stage::{ParseContext, Rows, SortPattern, Sorter, Stage, StageContext, StageKind, deferred};
use bson::RawBsonRef;
use std::sync::Arc;

pub(super) const STAGE: StageKind = StageKind::new("$sort", parse);

#[derive(Debug)]
struct Sort {
    pattern: SortPattern,
    limit: Option<u64>,
}

fn parse(argument: RawBsonRef<'_>, _: &mut ParseContext<'_>) -> Result<Vec<Arc<dyn Stage>>> {
    let pattern = object(argument, 15973, "the $sort key specification must be an object")?;
    Ok(vec![of(SortPattern::parse(pattern)?)])
}

/// An order as a stage.
pub(super) fn of(pattern: SortPattern) -> Arc<dyn Stage> {
    Arc::new(Sort { pattern, limit: None })
}

/// Reads all rows and gives them in order.
pub(super) fn sorted(
    mut input: Rows,
    pattern: &SortPattern,
    limit: Option<u64>,
    context: &StageContext,
) -> Result<Rows> {
    let folder = context.allow_disk_use.then(|| context.spill_folder.clone());
    let mut sorter = Sorter::new(limit, context.memory_bytes, folder);
    let environment = &context.environment;
    while let Some(row) = input.next()? {
        let key = pattern.key(&row, environment.collator(), &*environment.random)?;
        sorter.push(key, row)?;
    }
    sorter.finish()
}

impl Stage for Sort {
    fn open(self: Arc<Self>, input: Rows, context: &Arc<StageContext>) -> Result<Rows> {
        let context = Arc::clone(context);
        Ok(deferred(move || sorted(input, &self.pattern, self.limit, &context)))
    }

    fn order(&self) -> Option<&SortPattern> {
        Some(&self.pattern)
    }

    fn limit(&self) -> Option<u64> {
        self.limit
    }

    fn with_limit(&self, limit: u64) -> Option<Arc<dyn Stage>> {
        let limit = self.limit.map_or(limit, |known| known.min(limit));
        Some(Arc::new(Sort { pattern: self.pattern.clone(), limit: Some(limit) }))
    }
}
