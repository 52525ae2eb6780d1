//! `{$querySettings: {showDebugQueryShape}}`: the settings of shapes of queries.
//!
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/aggregation/querySettings/>.

use crate::document::{RawBsonRef, type_name};
use crate::error::{Error, Result};
use crate::stage::{ParseContext, Position, Report, Stage, StageKind, report};
use std::sync::Arc;

pub(super) const STAGE: StageKind =
    StageKind::new("$querySettings", parse).at(Position::FirstWithoutCollection).not_in_transaction();

fn parse(argument: RawBsonRef<'_>, _: &mut ParseContext<'_>) -> Result<Vec<Arc<dyn Stage>>> {
    let RawBsonRef::Document(options) = argument else {
        let kind = type_name(argument);
        return Err(Error::location(
            7_746_800,
            format!("$querySettings stage expects a document as argument, not {kind}"),
        ));
    };
    for field in options {
        let (name, value) = field?;
        if name.as_str() != "showDebugQueryShape" {
            return Err(Error::location(40415, format!("BSON field '$querySettings.{name}' is an unknown field.")));
        }
        if !matches!(value, RawBsonRef::Boolean(_)) {
            return Err(Error::type_mismatch(format!(
                "BSON field '$querySettings.{name}' is the wrong type '{}', expected type 'bool'",
                type_name(value)
            )));
        }
    }
    Ok(report::of(Report::QuerySettings, options.to_owned()))
}
