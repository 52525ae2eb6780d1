//! `{$currentOp: {allUsers, idleConnections, idleCursors, idleSessions, localOps, backtrace, truncateOps}}`: the operations that run.
//!
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/aggregation/currentOp/>.

use crate::document::{RawBsonRef, type_name};
use crate::error::{Code, Error, Result};
use crate::stage::{ParseContext, Position, Report, Stage, StageKind, report};
use std::sync::Arc;

pub(super) const STAGE: StageKind =
    StageKind::new("$currentOp", parse).at(Position::FirstWithoutCollection).not_in_transaction();

fn parse(argument: RawBsonRef<'_>, context: &mut ParseContext<'_>) -> Result<Vec<Arc<dyn Stage>>> {
    if context.namespace.database != "admin" {
        return Err(Error::new(
            Code::INVALID_NAMESPACE,
            "$currentOp must be run against the 'admin' database with {aggregate: 1}",
        ));
    }
    let RawBsonRef::Document(options) = argument else {
        return Err(Error::type_mismatch(format!(
            "$currentOp options must be specified in an object, but found: {}",
            type_name(argument)
        )));
    };
    let mut all_nodes = false;
    for field in options {
        let (name, value) = field?;
        let name = name.as_str();
        if !matches!(
            name,
            "allUsers"
                | "idleConnections"
                | "idleCursors"
                | "idleSessions"
                | "localOps"
                | "backtrace"
                | "targetAllNodes"
                | "truncateOps"
        ) {
            return Err(Error::location(40415, format!("BSON field '$currentOp.{name}' is an unknown field.")));
        }
        let RawBsonRef::Boolean(given) = value else {
            return Err(Error::type_mismatch(format!(
                "The '{name}' parameter of the $currentOp stage must be a boolean value, but found: {}",
                type_name(value)
            )));
        };
        all_nodes |= name == "targetAllNodes" && given;
    }
    if all_nodes {
        let message = "The 'targetAllNodes' parameter of the $currentOp stage is for sharded clusters";
        return Err(Error::failed_to_parse(message));
    }
    Ok(report::of(Report::Operations, options.to_owned()))
}
