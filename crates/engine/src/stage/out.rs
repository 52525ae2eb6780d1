//! `{$out: "collection"}` or `{$out: {db, coll, timeseries}}`: replaces a collection by the rows.
//!
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/aggregation/out/>.

use crate::document::{Number, RawBsonRef, RawDocument, RawDocumentBuf, append, type_name};
use crate::error::{Code, Error, Result};
use crate::namespace::Namespace;
use crate::stage::options::Options;
use crate::stage::{NoRows, ParseContext, Position, Rows, Stage, StageContext, StageKind, deferred};
use bson::rawdoc;
use std::sync::Arc;

/// The largest bucket of a time series: a year.
const MAX_BUCKET_SECONDS: i64 = 31_536_000;

pub(super) const STAGE: StageKind = StageKind::new("$out", parse).at(Position::Last);

#[derive(Debug)]
struct Out {
    into: Namespace,
    timeseries: Option<RawDocumentBuf>,
}

fn parse(argument: RawBsonRef<'_>, context: &mut ParseContext<'_>) -> Result<Vec<Arc<dyn Stage>>> {
    let (database, collection, timeseries) = match argument {
        RawBsonRef::String(collection) => (context.namespace.database.clone(), collection, None),
        RawBsonRef::Document(document) => {
            let mut options = Options::of("$out", document)?;
            let (database, collection) = (options.string("db")?, options.string("coll")?);
            let timeseries = options.document("timeseries")?;
            let missing = match (database, collection) {
                (None, _) => Some(options.missing("db")),
                (_, None) => Some(options.missing("coll")),
                _ => None,
            };
            options.finish()?;
            match (database, collection, missing) {
                (Some(database), Some(collection), None) => (database.to_owned(), collection, timeseries),
                (_, _, missing) => return Err(missing.unwrap_or_else(|| Error::internal("a missing option is named"))),
            }
        }
        other => {
            return Err(Error::location(
                16990,
                format!("$out only supports a string or object argument, but found {}", type_name(other)),
            ));
        }
    };
    let into = target(&database, collection)?;
    Ok(vec![Arc::new(Out { into, timeseries: timeseries.map(series_options).transpose()? })])
}

fn target(database: &str, collection: &str) -> Result<Namespace> {
    let into = Namespace { database: database.to_owned(), collection: collection.to_owned() };
    if into.is_system() {
        return Err(Error::location(17385, format!("Can't $out to special collection: {collection}")));
    }
    if collection.contains('$') || into.to_string().len() > crate::namespace::MAX_NAMESPACE_BYTES {
        return Err(Error::new(Code::ILLEGAL_OPERATION, format!("$out cannot write to the collection '{collection}'")));
    }
    let into = Namespace::new(database, collection)?;
    if matches!(database, "admin" | "config" | "local") {
        return Err(Error::location(31321, format!("Can't $out to internal database: {database}")));
    }
    Ok(into)
}

/// The options of a time series as `listCollections` shows them.
fn series_options(document: &RawDocument) -> Result<RawDocumentBuf> {
    let mut options = Options::of("$out.timeseries", document)?;
    let time_field = options.required_string("timeField")?;
    let meta_field = options.string("metaField")?;
    let granularity = options.string("granularity")?;
    let span_of_granularity = match granularity.unwrap_or("seconds") {
        "seconds" => 3600,
        "minutes" => 86_400,
        "hours" => 2_592_000,
        _ => return Err(Error::bad_value("Enumeration value for field 'granularity' is not a valid value.")),
    };
    let span = seconds(&mut options, "bucketMaxSpanSeconds")?;
    let rounding = seconds(&mut options, "bucketRoundingSeconds")?;
    options.finish()?;
    let mut series = rawdoc! { "timeField": time_field };
    if let Some(meta_field) = meta_field {
        append(&mut series, "metaField", RawBsonRef::String(meta_field))?;
    }
    match (span, rounding) {
        (None, None) => {
            append(&mut series, "granularity", RawBsonRef::String(granularity.unwrap_or("seconds")))?;
            append(&mut series, "bucketMaxSpanSeconds", RawBsonRef::Int32(span_of_granularity))?;
        }
        (Some(span), Some(rounding)) if span == rounding && granularity.is_none() => {
            append(&mut series, "bucketRoundingSeconds", RawBsonRef::Int32(rounding))?;
            append(&mut series, "bucketMaxSpanSeconds", RawBsonRef::Int32(span))?;
        }
        _ => {
            return Err(Error::new(
                Code::INVALID_OPTIONS,
                "bucketMaxSpanSeconds and bucketRoundingSeconds must be given together, be equal, and stand without granularity",
            ));
        }
    }
    Ok(series)
}

/// Seconds of a bucket: a double is cut off, a decimal rounded to even.
fn seconds(options: &mut Options<'_>, name: &str) -> Result<Option<i32>> {
    let Some(value) = options.take(name) else { return Ok(None) };
    let number = Number::of(value).ok_or_else(|| options.wrong_type(name, value, "number"))?;
    let exact = number.to_f64();
    let seconds = if number.is_decimal() { exact.round_ties_even() } else { exact.trunc() };
    // What is no number becomes 0, which is refused like all below 1.
    match seconds as i64 {
        whole @ 1..=MAX_BUCKET_SECONDS => Ok(Some(whole as i32)),
        _ => Err(Error::bad_value(format!(
            "BSON field '$out.timeseries.{name}' must be between 1 and {MAX_BUCKET_SECONDS}, not {exact}"
        ))),
    }
}

impl Stage for Out {
    fn open(self: Arc<Self>, input: Rows, context: &Arc<StageContext>) -> Result<Rows> {
        let context = Arc::clone(context);
        if let Some(timeseries) = &self.timeseries {
            context.collections.check_series(&self.into, timeseries)?;
        }
        context.collections.check_writable(&self.into, true, &context)?;
        Ok(deferred(move || {
            context.collections.replace(&self.into, input, self.timeseries.as_deref(), &context)?;
            Ok(Box::new(NoRows))
        }))
    }

    fn writes(&self) -> Option<Namespace> {
        Some(self.into.clone())
    }
}
