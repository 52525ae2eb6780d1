//! Which updates of a time series there are: of the meta value, of all that match by it.

use super::Series;
use crate::catalog::Collection;
use crate::error::{Code, Error, Result};
use crate::expression::Parser;
use crate::filter::Filter;
use crate::operation::UpdateStatement;
use bson::RawBsonRef;

/// What an update is refused with.
pub(crate) fn refuse_update(collection: &Collection, why: &str) -> Error {
    Error::new(
        Code::INVALID_OPTIONS,
        format!("Cannot perform this update on the time-series collection {}: {why}", collection.namespace),
    )
}

/// Refuses an update that changes or looks at anything but the meta value, changes one only, or upserts.
///
/// # Errors
/// `InvalidOptions` (72).
pub(crate) fn check_update(collection: &Collection, statement: &UpdateStatement) -> Result<()> {
    let refuse = |why: &str| Err(refuse_update(collection, why));
    let Some(series) = &collection.settings.series else { return Ok(()) };
    if !statement.multi {
        return refuse("multi must be true");
    }
    if statement.upsert {
        return refuse("upsert is not supported");
    }
    let RawBsonRef::Document(update) = (&statement.update).into() else { return refuse("a pipeline is not supported") };
    for operator in update {
        let (name, fields) = operator?;
        let RawBsonRef::Document(fields) = fields else { return refuse("it must have update operators") };
        if !name.as_str().starts_with('$') {
            return refuse("a replacement is not supported");
        }
        if name.as_str() == "$rename" {
            return refuse("$rename is not supported");
        }
        for field in fields {
            if !is_meta(series, field?.0.as_str()) {
                return refuse("only the metaField can be changed");
            }
        }
    }
    let filter = Filter::parse(&statement.query.filter, &mut Parser::new(), None)?;
    let paths = if filter.is_empty() { Some(Default::default()) } else { filter.paths() };
    match paths {
        Some(paths) if paths.iter().all(|path| is_meta(series, path)) => Ok(()),
        _ => refuse("its query may only look at the metaField"),
    }
}

fn is_meta(series: &Series, path: &str) -> bool {
    let first = path.split('.').next().unwrap_or(path);
    series.meta_field.as_deref() == Some(first)
}
