//! `{$planCacheStats: {allHosts: false}}`: the remembered plans of the collection.
//!
//! A plan is remembered once it won a trial and is used from then on, so all are active.
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/aggregation/planCacheStats/>.

use crate::document::{RawBsonRef, type_name};
use crate::error::{Error, Result};
use crate::stage::{ParseContext, Position, Report, Stage, StageKind, report};
use bson::RawDocumentBuf;
use std::sync::Arc;

pub(super) const STAGE: StageKind = StageKind::new("$planCacheStats", parse).at(Position::First).not_in_transaction();

fn parse(argument: RawBsonRef<'_>, _: &mut ParseContext<'_>) -> Result<Vec<Arc<dyn Stage>>> {
    let RawBsonRef::Document(options) = argument else {
        let kind = type_name(argument);
        return Err(Error::failed_to_parse(format!("$planCacheStats value must be an object. Found: {kind}")));
    };
    let mut all_hosts = None;
    for field in options {
        let (name, value) = field?;
        if name.as_str() != "allHosts" || all_hosts.is_some() {
            return Err(Error::failed_to_parse(format!(
                "$planCacheStats parameters object may contain only 'allHosts' once; found: {name}"
            )));
        }
        let RawBsonRef::Boolean(given) = value else {
            let kind = type_name(value);
            return Err(Error::location(13111, format!("'allHosts' must be a boolean, found: {kind}")));
        };
        all_hosts = Some(given);
    }
    if all_hosts == Some(true) {
        let message = "$planCacheStats stage supports allHosts parameter only for sharded clusters";
        return Err(Error::location(4_503_200, message));
    }
    Ok(report::of(Report::Plans, RawDocumentBuf::new()))
}
