//! The options of `create`: each checked for itself and against the others, and what `listCollections` shows of them.

use super::arguments::{is_null, number, whole};
use super::{Context, Flag, Path, arguments};
use crate::bson::Writer;
use bson::raw::RawBsonRef;
use bson::{RawArray, RawDocument, RawDocumentBuf};
use engine::{Code, Error, Result};

/// The largest size of a capped collection.
const MAX_CAPPED_BYTES: i64 = 1 << 50;
/// The largest bucket of a time-series collection: a year.
pub(super) const MAX_BUCKET_SECONDS: i64 = 31_536_000;
/// Storage engines that options may be given for; ours takes none of theirs.
const STORAGE_ENGINES: &[&str] = &["wiredTiger"];

arguments! {
    /// The arguments of `create`.
    struct CreateArguments<'a> {
        capped: Flag = "capped",
        auto_index_id: Option<Flag> = "autoIndexId",
        id_index: Option<&'a RawDocument> = "idIndex",
        size: Option<i64> = "size",
        max: Option<i64> = "max",
        storage_engine: Option<&'a RawDocument> = "storageEngine",
        validator: Option<&'a RawDocument> = "validator",
        validation_level: Option<&'a str> = "validationLevel",
        validation_action: Option<&'a str> = "validationAction",
        index_defaults: Option<&'a RawDocument> = "indexOptionDefaults",
        view_on: Option<&'a str> = "viewOn",
        pipeline: Option<&'a RawArray> = "pipeline",
        collation: Option<&'a RawDocument> = "collation",
        clustered_index: Option<RawBsonRef<'a>> = "clusteredIndex",
        expire_after_seconds: Option<i64> = "expireAfterSeconds",
        timeseries: Option<&'a RawDocument> = "timeseries",
        images: Option<&'a RawDocument> = "changeStreamPreAndPostImages",
        encrypted_fields: Option<&'a RawDocument> = "encryptedFields",
        temp: Flag = "temp",
        flags: Option<i64> = "flags",
        record_ids: Option<Flag> = "recordIdsReplicated",
    }
}

arguments! {
    struct TimeSeries<'a> {
        time_field: &'a str = "timeField",
        meta_field: Option<&'a str> = "metaField",
        granularity: Option<&'a str> = "granularity",
        max_span: Option<i64> = "bucketMaxSpanSeconds",
        rounding: Option<i64> = "bucketRoundingSeconds",
    }
}

arguments! {
    struct ClusteredIndex<'a> {
        key: &'a RawDocument = "key",
        unique: Option<Flag> = "unique",
        name: Option<&'a str> = "name",
        version: Option<i64> = "v",
    }
}

arguments! {
    struct Images<'a> {
        enabled: bool = "enabled",
    }
}

arguments! {
    struct IndexDefaults<'a> {
        storage_engine: Option<&'a RawDocument> = "storageEngine",
    }
}

fn invalid(message: impl Into<String>) -> Error {
    Error::new(Code::INVALID_OPTIONS, message)
}

/// Refuses a value that is none of the known ones.
pub(super) fn choice(path: Path<'_>, value: Option<&str>, known: &[&str]) -> Result<()> {
    match value {
        Some(value) if !known.contains(&value) => {
            Err(Error::bad_value(format!("Enumeration value '{value}' for field '{path}' is not a valid value.")))
        }
        _ => Ok(()),
    }
}

/// The options as `listCollections` shows them.
pub(super) fn options(ctx: &Context<'_>) -> Result<RawDocumentBuf> {
    let arguments = CreateArguments::parse(ctx)?;
    check(&arguments)?;
    let mut options = Writer::new();
    for element in ctx.body().iter().skip(1) {
        let (key, value) = element?;
        if is_null(value) {
            continue;
        }
        match key.as_str() {
            "capped" if arguments.capped.0 => options.put("capped", true),
            "temp" if arguments.temp.0 => options.put("temp", true),
            // Capped sizes are multiples of 256 bytes.
            "size" if arguments.capped.0 => {
                put_number(&mut options, "size", (arguments.size.unwrap_or(0) + 255) / 256 * 256)
            }
            "max" if arguments.capped.0 => put_number(&mut options, "max", arguments.max.unwrap_or(0)),
            "changeStreamPreAndPostImages"
                // Off is what holds anyway.
                if value.as_document().is_some_and(|images| images.get_bool("enabled").is_ok_and(|on| on)) => {
                    options.put(key.as_str(), value);
                }
            "validator"
            | "validationLevel"
            | "validationAction"
            | "viewOn"
            | "pipeline"
            | "collation"
            | "storageEngine"
            | "indexOptionDefaults" => options.put(key.as_str(), value),
            "timeseries" => put_time_series(&mut options, value)?,
            "expireAfterSeconds" => options.put_some("expireAfterSeconds", arguments.expire_after_seconds),
            "clusteredIndex" => put_clustered_index(&mut options, value)?,
            _ => {}
        }
    }
    Ok(options.finish_document())
}

fn put_number(options: &mut Writer, key: &str, number: i64) {
    match i32::try_from(number) {
        Ok(number) => options.put(key, number),
        Err(_) => options.put(key, number),
    }
}

fn put_clustered_index(options: &mut Writer, value: RawBsonRef<'_>) -> Result<()> {
    let Some(given) = value.as_document() else { return Ok(()) };
    options.begin("clusteredIndex");
    options.put("v", 2);
    options.put_some("key", given.get("key")?);
    options.put("name", given.get_str("name").unwrap_or("_id_"));
    options.put("unique", true);
    options.end();
    Ok(())
}

fn put_time_series(options: &mut Writer, value: RawBsonRef<'_>) -> Result<()> {
    let Some(given) = value.as_document() else { return Ok(()) };
    let series = TimeSeries::parse_nested("create.timeseries", given)?;
    options.begin("timeseries");
    options.put("timeField", series.time_field);
    options.put_some("metaField", series.meta_field);
    match (series.max_span, series.rounding) {
        (Some(span), Some(rounding)) if series.granularity.is_none() => {
            options.put("bucketRoundingSeconds", rounding as i32);
            options.put("bucketMaxSpanSeconds", span as i32);
        }
        _ => {
            let granularity = series.granularity.unwrap_or("seconds");
            options.put("granularity", granularity);
            options.put("bucketMaxSpanSeconds", span_of(granularity));
        }
    }
    options.end();
    Ok(())
}

/// The seconds that a bucket spans at a granularity.
pub(super) fn span_of(granularity: &str) -> i32 {
    match granularity {
        "minutes" => 86_400,
        "hours" => 2_592_000,
        _ => 3600,
    }
}

fn check(arguments: &CreateArguments<'_>) -> Result<()> {
    let parent = "create";
    choice(Path { parent, field: "validationLevel" }, arguments.validation_level, &["off", "strict", "moderate"])?;
    let actions = ["error", "warn", "errorAndLog"];
    choice(Path { parent, field: "validationAction" }, arguments.validation_action, &actions)?;
    if arguments.encrypted_fields.is_some() {
        let message = "encryptedFields is not supported: there is no queryable encryption";
        return Err(Error::new(Code::COMMAND_NOT_SUPPORTED, message));
    }
    check_storage_engine(arguments.storage_engine)?;
    if let Some(defaults) = arguments.index_defaults {
        check_storage_engine(IndexDefaults::parse_nested("create.indexOptionDefaults", defaults)?.storage_engine)?;
    }
    let clustered = check_clustered_index(arguments)?;
    check_capped(arguments, clustered)?;
    check_view(arguments)?;
    if let Some(series) = arguments.timeseries {
        check_time_series(arguments, series)?;
    }
    if let Some(images) = arguments.images {
        let enabled = check_images(images)?;
        if arguments.timeseries.is_some() || enabled && arguments.view_on.is_some() {
            return Err(invalid("changeStreamPreAndPostImages can't be used on views and time-series collections"));
        }
    }
    if let Some(index) = arguments.id_index {
        check_id_index(arguments, index, clustered)?;
    }
    check_expiry(arguments, clustered)
}

/// Checks `changeStreamPreAndPostImages`; whether it is on.
pub(super) fn check_images(images: &RawDocument) -> Result<bool> {
    Ok(Images::parse_nested("changeStreamPreAndPostImages", images)?.enabled)
}

fn check_storage_engine(options: Option<&RawDocument>) -> Result<()> {
    for element in options.into_iter().flatten() {
        let (name, value) = element?;
        let Some(document) = value.as_document() else {
            return Err(Error::bad_value(format!("storageEngine.{} must be an embedded document", name.as_str())));
        };
        if !STORAGE_ENGINES.contains(&name.as_str()) {
            return Err(invalid(format!("{} is not a registered storage engine for this server", name.as_str())));
        }
        for option in document {
            let (key, value) = option?;
            match (key.as_str(), value.as_str()) {
                ("configString", Some(text)) if text.contains('\0') => {
                    return Err(Error::failed_to_parse("storageEngine's configString holds a null byte"));
                }
                ("configString", Some("")) => {}
                ("configString", _) => {
                    return Err(Error::bad_value(
                        "storageEngine's configString means nothing to this storage; leave it out",
                    ));
                }
                (other, _) => return Err(invalid(format!("'{other}' is not a supported option of storageEngine"))),
            }
        }
    }
    Ok(())
}

fn check_capped(arguments: &CreateArguments<'_>, clustered: bool) -> Result<()> {
    if clustered && arguments.max.is_some() {
        return Err(Error::location(6049204, "The 'max' option can't be used with a clustered collection"));
    }
    if !arguments.capped.0 {
        if arguments.size.is_some() || arguments.max.is_some() {
            return Err(invalid("the 'size' and 'max' fields are allowed only when 'capped' is true"));
        }
        return Ok(());
    }
    let Some(size) = arguments.size else {
        return Err(invalid("the 'size' field is required when 'capped' is true"));
    };
    Path { parent: "create", field: "size" }.at_least(size, 1)?;
    if size > MAX_CAPPED_BYTES {
        let message = format!("BSON field 'size' value must be <= {MAX_CAPPED_BYTES}, actual value '{size}'");
        return Err(Error::bad_value(message));
    }
    if arguments.max.is_some_and(|max| max > i64::from(i32::MAX)) {
        return Err(Error::bad_value("max in a capped collection has to be < 2^31 or not set"));
    }
    Ok(())
}

fn check_view(arguments: &CreateArguments<'_>) -> Result<()> {
    let Some(on) = arguments.view_on else {
        return match arguments.pipeline {
            Some(_) => Err(invalid("'pipeline' requires 'viewOn' to also be specified")),
            None => Ok(()),
        };
    };
    if on.is_empty() {
        return Err(Error::bad_value("'viewOn' cannot be empty"));
    }
    for (index, stage) in arguments.pipeline.into_iter().flatten().enumerate() {
        let stage = stage?;
        if stage.as_document().is_none() {
            let field = format!("pipeline.{index}");
            return Err(Path { parent: "create", field: &field }.wrong_type(stage, &["object"]));
        }
    }
    if arguments.timeseries.is_some() || arguments.id_index.is_some() {
        return Err(invalid("a view has neither timeseries nor idIndex"));
    }
    Ok(())
}

/// Whether the collection is clustered.
fn check_clustered_index(arguments: &CreateArguments<'_>) -> Result<bool> {
    let Some(value) = arguments.clustered_index.filter(|value| !is_null(*value)) else { return Ok(false) };
    let path = Path { parent: "create", field: "clusteredIndex" };
    if arguments.capped.0 {
        return Err(Error::location(6049200, "A capped collection can't be clustered"));
    }
    let document = match value {
        RawBsonRef::Document(document) => document,
        RawBsonRef::Boolean(false) => return Ok(false),
        other if number(other) == Some(0) => return Ok(false),
        RawBsonRef::Boolean(true) => return Err(legacy_clustered_index()),
        other if number(other).is_some() => return Err(legacy_clustered_index()),
        other => return Err(path.wrong_type(other, &["bool", "object", "double", "int", "long", "decimal"])),
    };
    let index = ClusteredIndex::parse_nested("create.clusteredIndex", document)?;
    let Some(unique) = index.unique else {
        return Err(Path { parent: "create.clusteredIndex", field: "unique" }.missing());
    };
    if !unique.0 {
        return Err(Error::location(5979700, "The clusteredIndex option requires unique: true to be specified"));
    }
    let mut fields = index.key.iter();
    let first = fields.next().transpose()?;
    let is_id = first.is_some_and(|(name, order)| name.as_str() == "_id" && number(order) == Some(1));
    if !is_id || fields.next().is_some() {
        let message = "The clusteredIndex option is only supported for key: {_id: 1}";
        return Err(Error::new(Code::INVALID_INDEX_SPECIFICATION_OPTION, message));
    }
    if index.version.is_some_and(|version| version != 2) {
        return Err(Error::location(5979704, "The clusteredIndex option supports only v: 2"));
    }
    if arguments.view_on.is_some() {
        return Err(Error::location(6026500, "A view can't be clustered"));
    }
    if arguments.timeseries.is_some() {
        return Err(invalid("A time-series collection can't be given a clusteredIndex"));
    }
    Ok(true)
}

fn legacy_clustered_index() -> Error {
    Error::location(5979703, "The clusteredIndex option is a document: {key: {_id: 1}, unique: true}")
}

fn check_time_series(arguments: &CreateArguments<'_>, document: &RawDocument) -> Result<()> {
    let series = TimeSeries::parse_nested("create.timeseries", document)?;
    let parent = "create.timeseries";
    choice(Path { parent, field: "granularity" }, series.granularity, &["seconds", "minutes", "hours"])?;
    for (what, field) in [("timeField", Some(series.time_field)), ("metaField", series.meta_field)] {
        let Some(field) = field else { continue };
        if field.contains('\0') {
            return Err(Error::bad_value(format!("'{what}' can't contain a null byte")));
        }
        if field.contains('.') {
            return Err(invalid(format!("'{what}' can't contain dots")));
        }
    }
    if series.meta_field == Some("_id") {
        return Err(invalid("The 'metaField' cannot be '_id'"));
    }
    if series.meta_field == Some(series.time_field) {
        return Err(invalid("The 'metaField' cannot be the same as the 'timeField'"));
    }
    for (field, seconds) in [("bucketMaxSpanSeconds", series.max_span), ("bucketRoundingSeconds", series.rounding)] {
        let Some(seconds) = seconds else { continue };
        Path { parent, field }.at_least(seconds, 1)?;
        if seconds > MAX_BUCKET_SECONDS {
            let message =
                format!("BSON field '{field}' value must be <= {MAX_BUCKET_SECONDS}, actual value '{seconds}'");
            return Err(Error::bad_value(message));
        }
    }
    check_buckets(&series)?;
    let others = arguments.capped.0
        || arguments.validator.is_some()
        || arguments.validation_level.is_some()
        || arguments.validation_action.is_some()
        || arguments.id_index.is_some();
    if others {
        return Err(invalid(
            "a time-series collection has no capped, validator, validationLevel, validationAction or idIndex",
        ));
    }
    Ok(())
}

fn check_buckets(series: &TimeSeries<'_>) -> Result<()> {
    match (series.max_span, series.rounding) {
        (None, None) => Ok(()),
        (Some(span), None) if series.granularity.is_some_and(|name| i64::from(span_of(name)) == span) => Ok(()),
        (_, Some(_)) if series.granularity.is_some() => {
            Err(invalid("granularity and bucketRoundingSeconds can't be given together"))
        }
        (Some(span), Some(rounding)) if span == rounding => Ok(()),
        _ => Err(invalid("bucketMaxSpanSeconds and bucketRoundingSeconds must be given together and be equal")),
    }
}

fn check_id_index(arguments: &CreateArguments<'_>, index: &RawDocument, clustered: bool) -> Result<()> {
    if clustered {
        return Err(invalid("a clustered collection has no idIndex"));
    }
    let mut names = (false, false);
    for element in index {
        let (key, value) = element?;
        let path = Path { parent: "create.idIndex", field: key.as_str() };
        match key.as_str() {
            "key" => {
                let pattern = value.as_document().ok_or_else(|| path.wrong_type(value, &["object"]))?;
                let mut fields = pattern.iter();
                let first = fields.next().transpose()?;
                if !first.is_some_and(|(name, order)| name.as_str() == "_id" && number(order) == Some(1))
                    || fields.next().is_some()
                {
                    return Err(Error::bad_value("The field 'key' for an _id index must be {_id: 1}"));
                }
                names.0 = true;
            }
            "name" => {
                let name = value.as_str().ok_or_else(|| path.wrong_type(value, &["string"]))?;
                if name.is_empty() {
                    return Err(Error::new(Code::CANNOT_CREATE_INDEX, "The index name cannot be empty"));
                }
                names.1 = true;
            }
            "v" => {
                let version =
                    whole(value, "v").map_err(|_| Error::bad_value("Index version must be a whole number"))?;
                let version = version.ok_or_else(|| path.wrong_type(value, &["int", "long", "double", "decimal"]))?;
                if !matches!(version, 1 | 2) {
                    return Err(Error::new(Code::CANNOT_CREATE_INDEX, format!("Invalid index version {version}")));
                }
            }
            "collation" => {
                let own = value.as_document().ok_or_else(|| path.wrong_type(value, &["object"]))?;
                let same =
                    arguments.collation.is_some_and(|all| all.get_str("locale").ok() == own.get_str("locale").ok());
                if !same && (own.get_str("locale").unwrap_or("simple") != "simple" || arguments.collation.is_some()) {
                    return Err(Error::bad_value("The _id index must have the same collation as the collection"));
                }
            }
            "ns" => {}
            other => {
                let message = format!("The field '{other}' is not valid for an _id index specification");
                return Err(Error::new(Code::INVALID_INDEX_SPECIFICATION_OPTION, message));
            }
        }
    }
    match names {
        (true, true) => Ok(()),
        _ => Err(Error::failed_to_parse("The 'key' and 'name' fields of an index specification are required")),
    }
}

fn check_expiry(arguments: &CreateArguments<'_>, clustered: bool) -> Result<()> {
    let Some(seconds) = arguments.expire_after_seconds else { return Ok(()) };
    if arguments.timeseries.is_none() && !clustered {
        return Err(invalid(
            "'expireAfterSeconds' is only supported on time-series collections or with 'clusteredIndex'",
        ));
    }
    if seconds < 0 {
        return Err(invalid("'expireAfterSeconds' can't be negative"));
    }
    let now_seconds = bson::DateTime::now().timestamp_millis() / 1000;
    if seconds.checked_mul(1000).is_none() || seconds > now_seconds {
        return Err(invalid("'expireAfterSeconds' must be within the range from 0 to the time since 1970"));
    }
    Ok(())
}
