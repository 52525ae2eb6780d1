//! `{$listClusterCatalog: {shards, balancingConfiguration}}`: the collections of a database, or of all from `admin`.
//!
//! Nothing is sharded here: `shards` is an empty list, and there is no configuration of a balancer.
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/aggregation/listClusterCatalog/>.

use crate::document::{RawBsonRef, type_name};
use crate::error::{Error, Result};
use crate::stage::{ParseContext, Place, Position, Report, Stage, StageKind, report};
use std::sync::Arc;

pub(super) const STAGE: StageKind =
    StageKind::new("$listClusterCatalog", parse).at(Position::First).in_facet().not_in_transaction();

fn parse(argument: RawBsonRef<'_>, context: &mut ParseContext<'_>) -> Result<Vec<Arc<dyn Stage>>> {
    if !context.namespace.collection.is_empty() || context.place != Place::Top {
        let message = "$listClusterCatalog must be run against the database with {aggregate: 1}, not a collection";
        return Err(Error::location(9_621_301, message));
    }
    let RawBsonRef::Document(options) = argument else {
        let kind = type_name(argument);
        return Err(Error::location(9_621_302, format!("$listClusterCatalog must take an object; found: {kind}")));
    };
    for field in options {
        let (name, value) = field?;
        let name = name.as_str();
        if !matches!(name, "shards" | "balancingConfiguration") {
            return Err(Error::location(
                40415,
                format!("BSON field '$listClusterCatalog.{name}' is an unknown field."),
            ));
        }
        if !matches!(value, RawBsonRef::Boolean(_)) {
            return Err(Error::type_mismatch(format!(
                "BSON field '$listClusterCatalog.{name}' is the wrong type '{}', expected type 'bool'",
                type_name(value)
            )));
        }
    }
    Ok(report::of(Report::Catalog, options.to_owned()))
}
