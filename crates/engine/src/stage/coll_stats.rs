//! `{$collStats: {latencyStats, storageStats, count, queryExecStats}}`: statistics of the collection.
//!
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/aggregation/collStats/>.

use crate::document::{Number, RawBsonRef, RawDocument};
use crate::error::{Error, Result};
use crate::stage::options::Options;
use crate::stage::pipeline::object;
use crate::stage::{ParseContext, Position, Report, Stage, StageKind, report};
use std::sync::Arc;

pub(super) const STAGE: StageKind = StageKind::new("$collStats", parse).at(Position::First);

fn parse(argument: RawBsonRef<'_>, _: &mut ParseContext<'_>) -> Result<Vec<Arc<dyn Stage>>> {
    let specification = object(argument, 5447000, "$collStats must take a nested object")?;
    let mut options = Options::of("$collStats", specification)?;
    if let Some(latency) = options.document("latencyStats")? {
        let mut latency = Options::of("$collStats.latencyStats", latency)?;
        latency.boolean("histograms")?;
        latency.finish()?;
    }
    if let Some(storage) = options.document("storageStats")? {
        check_storage(storage)?;
    }
    for name in ["count", "queryExecStats"] {
        if options.document(name)?.is_some_and(|document| !document.is_empty()) {
            return Err(Error::location(31170, format!("'{name}' must be an empty object in $collStats")));
        }
    }
    options.boolean("targetAllNodes")?;
    options.finish()?;
    Ok(report::of(Report::Collection, specification.to_owned()))
}

fn check_storage(document: &RawDocument) -> Result<()> {
    let mut options = Options::of("$collStats.storageStats", document)?;
    if let Some(scale) = options.take("scale") {
        let number = Number::of(scale).ok_or_else(|| options.wrong_type("scale", scale, "number"))?;
        if number.to_i64_truncated() < 1 {
            return Err(Error::new(
                crate::Code(51024),
                format!("BSON field 'scale' value must be >= 1, actual value '{}'", number.to_i64_truncated()),
            ));
        }
    }
    options.boolean("verbose")?;
    options.boolean("waitForLock")?;
    options.boolean("numericOnly")?;
    options.finish()
}
