//! `{$fill: {partitionBy | partitionByFields, sortBy, output: {field: {value} | {method: "linear" | "locf"}}}}`: values for
//! fields that are null or missing.
//!
//! Methods stand for `$setWindowFields` with `$linearFill` and `$locf`, values for `$addFields` with `$ifNull`. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/aggregation/fill/>.

use crate::document::{RawBsonRef, RawDocument, RawDocumentBuf, append};
use crate::error::{Error, Result};
use crate::stage::options::Options;
use crate::stage::{ParseContext, Stage, StageKind, add_fields, set_window_fields};
use bson::{RawArrayBuf, rawdoc};
use std::sync::Arc;

pub(super) const STAGE: StageKind = StageKind::new("$fill", parse);

fn parse(argument: RawBsonRef<'_>, context: &mut ParseContext<'_>) -> Result<Vec<Arc<dyn Stage>>> {
    let RawBsonRef::Document(specification) = argument else {
        return Err(Error::failed_to_parse("The argument to $fill must be an object"));
    };
    let mut options = Options::of("$fill", specification)?;
    let partition = options.take("partitionBy");
    let partition_fields = options.take("partitionByFields");
    let sort_by = options.document("sortBy")?;
    let output = options.document("output")?.ok_or_else(|| options.missing("output"))?;
    options.finish()?;
    if partition.is_some() && partition_fields.is_some() {
        return Err(Error::location(6050204, "Cannot specify both 'partitionBy' and 'partitionByFields'"));
    }
    if output.is_empty() {
        return Err(Error::failed_to_parse("The output field of $fill must have at least one field"));
    }
    let (methods, values) = parse_output(output, sort_by.is_some())?;
    let mut stages = Vec::new();
    if !methods.is_empty() {
        let mut windows = RawDocumentBuf::new();
        if let Some(partition) = partition {
            append(&mut windows, "partitionBy", partition)?;
        }
        if let Some(fields) = partition_fields {
            let fields = partition_by_fields(fields)?;
            append(&mut windows, "partitionBy", RawBsonRef::Document(&fields))?;
        }
        if let Some(sort_by) = sort_by {
            append(&mut windows, "sortBy", RawBsonRef::Document(sort_by))?;
        }
        append(&mut windows, "output", RawBsonRef::Document(&methods))?;
        stages.extend(set_window_fields::of(&windows, context)?);
    }
    if !values.is_empty() {
        stages.extend(add_fields::parse(RawBsonRef::Document(&values), context)?);
    }
    Ok(stages)
}

/// The output fields by method, and those by value.
fn parse_output(output: &RawDocument, sorted: bool) -> Result<(RawDocumentBuf, RawDocumentBuf)> {
    let (mut methods, mut values) = (RawDocumentBuf::new(), RawDocumentBuf::new());
    for field in output {
        let (name, specification) = field?;
        let name = name.as_str();
        let one =
            || Error::location(40657, format!("The field '{name}' of $fill must hold either 'value' or 'method'"));
        let specification = specification.as_document().ok_or_else(one)?;
        let mut fields = specification.iter();
        let (kind, value) = fields.next().transpose()?.ok_or_else(one)?;
        if fields.next().is_some() {
            return Err(one());
        }
        let path = format!("${name}");
        match (kind.as_str(), value) {
            ("value", value) => {
                let mut operands = RawArrayBuf::new();
                operands.push(path.as_str());
                operands.push(value);
                let default = rawdoc! { "$ifNull": operands };
                append(&mut values, name, RawBsonRef::Document(&default))?;
            }
            ("method", RawBsonRef::String(method @ ("linear" | "locf"))) => {
                if !sorted && method == "linear" {
                    return Err(Error::location(
                        605001,
                        "$linearFill must be specified with a top level sortBy expression",
                    ));
                }
                let function = if method == "linear" { "$linearFill" } else { "$locf" };
                let mut window = RawDocumentBuf::new();
                append(&mut window, function, RawBsonRef::String(&path))?;
                append(&mut methods, name, RawBsonRef::Document(&window))?;
            }
            ("method", RawBsonRef::String(_)) => {
                return Err(Error::location(6050202, "Method must be either 'locf' or 'linear'"));
            }
            ("method", _) => return Err(Error::type_mismatch("'method' must be a string")),
            _ => return Err(one()),
        }
    }
    Ok((methods, values))
}

/// `partitionBy` for names of fields.
fn partition_by_fields(names: RawBsonRef<'_>) -> Result<RawDocumentBuf> {
    let RawBsonRef::Array(names) = names else {
        return Err(Error::type_mismatch("'partitionByFields' must be an array of strings"));
    };
    let mut fields = RawDocumentBuf::new();
    for (at, name) in names.into_iter().enumerate() {
        let RawBsonRef::String(name) = name? else {
            return Err(Error::type_mismatch("'partitionByFields' must be an array of strings"));
        };
        append(&mut fields, &format!("field{at}"), RawBsonRef::String(&format!("${name}")))?;
    }
    Ok(fields)
}
