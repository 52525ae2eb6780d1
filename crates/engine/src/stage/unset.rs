//! `{$unset: "field"}` or `{$unset: ["field", …]}`: removes fields.
//!
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/aggregation/unset/>.

use crate::error::{Error, Result};
use crate::projection::Projection;
use crate::stage::{ParseContext, Stage, StageKind, project};
use bson::RawBsonRef;
use std::sync::Arc;

pub(super) const STAGE: StageKind = StageKind::new("$unset", parse);

fn parse(argument: RawBsonRef<'_>, _: &mut ParseContext<'_>) -> Result<Vec<Arc<dyn Stage>>> {
    let mut paths = Vec::new();
    match argument {
        RawBsonRef::String(path) => paths.push(path),
        RawBsonRef::Array(array) => {
            for path in array {
                let RawBsonRef::String(path) = path? else {
                    return Err(Error::location(
                        31120,
                        "$unset specification must be a string or an array containing only string values",
                    ));
                };
                paths.push(path);
            }
            if paths.is_empty() {
                return Err(Error::location(
                    31119,
                    "$unset specification must be a string or an array with at least one field",
                ));
            }
        }
        _ => return Err(Error::location(31002, "$unset specification must be a string or an array")),
    }
    Ok(vec![project::of(Projection::exclude(paths.into_iter())?)])
}
