//! Which indexes a time series takes: as MongoDB, none that would have to know each measurement by itself.

use super::Series;
use crate::document::get;
use crate::error::{Code, Error, Result};
use bson::{RawBsonRef, RawDocument};

/// MongoDB's code for a wildcard where single fields are needed.
const WILDCARD: i32 = 7_246_201;

/// Refuses an index that a time series can't have.
///
/// # Errors
/// `InvalidOptions` (72) for unique, text and TTL indexes, and sparse ones on measurements; `CannotCreateIndex` (67) for hashed
/// ones on measurements; `Location7246201` for a wildcard over whole measurements.
pub(crate) fn check_index(series: &Series, spec: &RawDocument) -> Result<()> {
    let refuse = |what: &str| {
        let message = format!("{what} indexes are not supported on time-series collections");
        Err(Error::new(Code::INVALID_OPTIONS, message))
    };
    let is_set = |name: &str| -> Result<bool> {
        Ok(match get(spec, name)? {
            Some(RawBsonRef::Boolean(value)) => value,
            Some(value) => crate::document::Number::of(value).is_some_and(|number| number.to_f64() != 0.0),
            None => false,
        })
    };
    let Some(RawBsonRef::Document(pattern)) = get(spec, "key")? else { return Ok(()) };
    let mut all_meta = true;
    for field in pattern {
        let (path, kind) = field?;
        let is_meta = series.meta_field.as_deref() == path.as_str().split('.').next();
        all_meta &= is_meta || path.as_str() == &*series.time_field;
        if path.as_str() == "$**" {
            return Err(Error::location(
                WILDCARD,
                "a wildcard index on all fields is not supported on time-series collections",
            ));
        }
        match kind {
            RawBsonRef::String("text") => return refuse("text"),
            RawBsonRef::String("hashed") if !is_meta => {
                let message = "hashed indexes on measurements are not supported on time-series collections";
                return Err(Error::new(Code::CANNOT_CREATE_INDEX, message));
            }
            _ => {}
        }
    }
    if is_set("unique")? {
        return refuse("unique");
    }
    if is_set("sparse")? && !all_meta {
        return refuse("sparse");
    }
    let partial = get(spec, "partialFilterExpression")?;
    if get(spec, "expireAfterSeconds")?.is_some() && partial.is_none() {
        return refuse("TTL (without a partialFilterExpression on the metaField)");
    }
    Ok(())
}
