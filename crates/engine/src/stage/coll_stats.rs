//! `{$collStats: {latencyStats, storageStats, count, queryExecStats}}`: statistics of the collection.
//!
//! A section that is null is left out. Latencies and collection scans are not measured by collection and shown as zero.
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/aggregation/collStats/>.

use crate::document::{Number, RawBsonRef, RawDocument, append, get, type_name};
use crate::error::{Error, Result};
use crate::stage::pipeline::object;
use crate::stage::{ParseContext, Position, Report, Stage, StageKind, report};
use bson::{RawDocumentBuf, rawdoc};
use std::sync::Arc;

pub(super) const STAGE: StageKind = StageKind::new("$collStats", parse).at(Position::First).not_in_transaction();

fn parse(argument: RawBsonRef<'_>, _: &mut ParseContext<'_>) -> Result<Vec<Arc<dyn Stage>>> {
    let specification = object(argument, 5447000, "$collStats must take a nested object")?;
    let mut options = RawDocumentBuf::new();
    for field in specification {
        let (name, value) = field?;
        let name = name.as_str();
        if !matches!(name, "latencyStats" | "storageStats" | "count" | "queryExecStats" | "targetAllNodes") {
            return Err(Error::location(40415, format!("BSON field '$collStats.{name}' is an unknown field.")));
        }
        let section = match (name, value) {
            (_, RawBsonRef::Null) | ("targetAllNodes", RawBsonRef::Boolean(_)) => continue,
            ("targetAllNodes", other) => return Err(wrong_type(name, other, "bool")),
            (_, RawBsonRef::Document(section)) => section,
            (_, other) => return Err(wrong_type(name, other, "object")),
        };
        let section = match name {
            "latencyStats" => latency(section)?,
            "storageStats" => storage(section)?,
            _ if section.is_empty() => RawDocumentBuf::new(),
            _ => return Err(Error::location(31170, format!("'{name}' must be an empty object in $collStats"))),
        };
        if get(&options, name)?.is_none() {
            append(&mut options, name, RawBsonRef::Document(&section))?;
        }
    }
    Ok(report::of(Report::Collection, options))
}

fn wrong_type(name: &str, value: RawBsonRef<'_>, expected: &str) -> Error {
    Error::type_mismatch(format!(
        "BSON field '$collStats.{name}' is the wrong type '{}', expected type '{expected}'",
        type_name(value)
    ))
}

fn latency(section: &RawDocument) -> Result<RawDocumentBuf> {
    let mut histograms = false;
    for field in section {
        let (name, value) = field?;
        match (name.as_str(), value) {
            ("histograms", RawBsonRef::Boolean(wanted)) => histograms = wanted,
            ("histograms", other) => return Err(wrong_type("latencyStats.histograms", other, "bool")),
            (other, _) => {
                return Err(Error::location(
                    40415,
                    format!("BSON field '$collStats.latencyStats.{other}' is an unknown field."),
                ));
            }
        }
    }
    Ok(rawdoc! { "histograms": histograms })
}

/// The scale as a number of bytes; what else stands here means nothing.
fn storage(section: &RawDocument) -> Result<RawDocumentBuf> {
    let scale = match get(section, "scale")? {
        None | Some(RawBsonRef::Null | RawBsonRef::Undefined) => 1,
        Some(value) => {
            let number = Number::of(value).ok_or_else(|| wrong_type("storageStats.scale", value, "number"))?;
            number.to_i64_option().min(i64::from(i32::MAX))
        }
    };
    if scale < 1 {
        return Err(Error::bad_value(format!("BSON field 'scale' value must be >= 1, actual value '{scale}'")));
    }
    Ok(rawdoc! { "scale": scale })
}
