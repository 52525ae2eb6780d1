//! `{$out: "collection"}` or `{$out: {db, coll, timeseries}}`: replaces a collection by the rows.
//!
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/aggregation/out/>.

use crate::document::{RawBsonRef, RawDocument, RawDocumentBuf, type_name};
use crate::error::{Code, Error, Result};
use crate::namespace::Namespace;
use crate::stage::options::Options;
use crate::stage::{NoRows, ParseContext, Position, Rows, Stage, StageContext, StageKind, deferred};
use std::sync::Arc;

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
    if let Some(options) = timeseries {
        check_timeseries(options)?;
    }
    Ok(vec![Arc::new(Out { into, timeseries: timeseries.map(RawDocument::to_owned) })])
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

fn check_timeseries(document: &RawDocument) -> Result<()> {
    let mut options = Options::of("$out.timeseries", document)?;
    options.required_string("timeField")?;
    options.string("metaField")?;
    let granularity = options.string("granularity")?;
    if granularity.is_some_and(|name| !matches!(name, "seconds" | "minutes" | "hours")) {
        return Err(Error::bad_value("Enumeration value for field 'granularity' is not a valid value."));
    }
    for name in ["bucketMaxSpanSeconds", "bucketRoundingSeconds"] {
        if let Some(value) = options.take(name)
            && crate::document::Number::of(value).is_none()
        {
            return Err(options.wrong_type(name, value, "number"));
        }
    }
    options.finish()
}

impl Stage for Out {
    fn open(self: Arc<Self>, input: Rows, context: &Arc<StageContext>) -> Result<Rows> {
        let context = Arc::clone(context);
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
