//! Sizes and counts: `collStats`, `dbStats`, `dataSize`.

use super::documents::put_count;
use super::{Command, Context, Path, Run, arguments};
use crate::auth::{Action, Rights};
use crate::bson::Writer;
use bson::RawDocument;
use bson::raw::RawBsonRef;
use engine::operation::{Find, Query, Sizes};
use engine::{Code, Error, Result};

/// `collStats`.
pub(crate) static COLLECTION: Command = Command {
    name: "collStats",
    aliases: &["collstats"],
    help: "returns sizes and counts of a collection",
    rights: Rights::Collection(Action::CollStats),
    run: Run::Now(collection),
    ..Command::DEFAULT
};

/// `dbStats`.
pub(crate) static DATABASE: Command = Command {
    name: "dbStats",
    aliases: &["dbstats"],
    help: "returns sizes and counts of a database",
    rights: Rights::Database(Action::DbStats),
    run: Run::Now(database),
    ..Command::DEFAULT
};

/// `dataSize`.
pub(crate) static DATA: Command = Command {
    name: "dataSize",
    help: "returns the size of a collection's documents",
    rights: Rights::LoggedIn,
    run: Run::Now(data),
    ..Command::DEFAULT
};

arguments! {
    struct Scaled<'a> {
        scale: Option<i64> = "scale",
        verbose: Option<RawBsonRef<'a>> = "verbose",
        free_storage: Option<i64> = "freeStorage",
    }
}

arguments! {
    struct DataArguments<'a> {
        pattern: Option<&'a RawDocument> = "keyPattern",
        min: Option<&'a RawDocument> = "min",
        max: Option<&'a RawDocument> = "max",
        estimate: super::Flag = "estimate",
    }
}

fn scale(ctx: &Context<'_>, scale: Option<i64>) -> Result<i64> {
    Path { parent: ctx.called, field: "scale" }.at_least(scale.unwrap_or(1), 1)
}

fn put_size(reply: &mut Writer, key: &str, size: i64) {
    put_count(reply, key, size.max(0) as u64);
}

fn collection(ctx: &mut Context<'_>, reply: &mut Writer) -> Result<()> {
    let namespace = ctx.collection()?;
    let scale = scale(ctx, Scaled::parse(ctx)?.scale)?;
    reply.put("ns", namespace.to_string().as_str());
    let info = match ctx.shared.engine.collection(&ctx.engine_context(), &namespace) {
        Ok(info) => Some(info),
        Err(error) if error.code == Code::NAMESPACE_NOT_FOUND => None,
        Err(error) => return Err(error),
    };
    if info.as_ref().is_some_and(|info| info.collection.is_view()) {
        let message = format!("Namespace {namespace} is a view, not a collection");
        return Err(Error::new(Code::COMMAND_NOT_SUPPORTED_ON_VIEW, message));
    }
    let totals = info.as_ref().map(|info| info.totals).unwrap_or_default();
    put_size(reply, "size", totals.size_bytes / scale);
    let series = info.as_ref().map(|info| ctx.shared.engine.series_stats(&info.collection)).transpose()?.flatten();
    if let Some(series) = series {
        reply.put("timeseries", &series);
    } else {
        put_size(reply, "count", totals.count);
        if totals.count > 0 {
            put_size(reply, "avgObjSize", totals.size_bytes / totals.count);
        }
    }
    put_size(reply, "numOrphanDocs", 0);
    let sizes = match &info {
        Some(info) => ctx.shared.engine.sizes(&ctx.engine_context(), &info.collection)?,
        None => Sizes::default(),
    };
    let scaled = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX) / scale;
    put_size(reply, "storageSize", scaled(sizes.storage_bytes));
    put_size(reply, "freeStorageSize", 0);
    let capped = info.as_ref().and_then(|info| info.collection.settings.capped);
    reply.put("capped", capped.is_some());
    if let Some(capped) = capped {
        put_size(reply, "max", capped.max as i64);
        put_size(reply, "maxSize", capped.size_bytes as i64 / scale);
    }
    reply.put("nindexes", sizes.indexes.len() as i32);
    reply.put_strings("indexBuilds", []);
    put_size(reply, "totalIndexSize", scaled(sizes.index_bytes()));
    put_size(reply, "totalSize", scaled(sizes.storage_bytes + sizes.index_bytes()));
    reply.begin("indexSizes");
    sizes.indexes.iter().for_each(|(name, bytes)| put_size(reply, name, scaled(*bytes)));
    reply.end();
    reply.put("scaleFactor", scale as i32);
    Ok(())
}

fn database(ctx: &mut Context<'_>, reply: &mut Writer) -> Result<()> {
    let scale = scale(ctx, Scaled::parse(ctx)?.scale)?;
    let all = ctx.shared.engine.list_collections(&ctx.engine_context(), ctx.database())?;
    let views = all.iter().filter(|info| info.collection.is_view()).count();
    let objects: i64 = all.iter().map(|info| info.totals.count).sum();
    let size: i64 = all.iter().map(|info| info.totals.size_bytes).sum();
    let (mut indexes, mut storage_bytes, mut index_bytes) = (0, 0, 0);
    for info in &all {
        let sizes = ctx.shared.engine.sizes(&ctx.engine_context(), &info.collection)?;
        indexes += sizes.indexes.len();
        storage_bytes += sizes.storage_bytes as i64 / scale;
        index_bytes += sizes.index_bytes() as i64 / scale;
    }
    reply.put("db", ctx.database());
    reply.put("collections", (all.len() - views) as i64);
    reply.put("views", views as i64);
    reply.put("objects", objects);
    reply.put("avgObjSize", if objects > 0 { size as f64 / objects as f64 } else { 0.0 });
    reply.put("dataSize", (size / scale) as f64);
    reply.put("storageSize", storage_bytes as f64);
    reply.put("indexes", indexes as i64);
    reply.put("indexSize", index_bytes as f64);
    reply.put("totalSize", (storage_bytes + index_bytes) as f64);
    reply.put("scaleFactor", scale);
    reply.put("fsUsedSize", 0.0);
    reply.put("fsTotalSize", 0.0);
    Ok(())
}

/// What a find is refused with whose range is empty.
const MIN_NOT_BELOW_MAX: Code = Code(51175);

/// The number of documents that a find gives, and their bytes.
fn totals_of(ctx: &Context<'_>, find: Find) -> Result<engine::Totals> {
    let context = ctx.engine_context();
    let mut totals = engine::Totals::default();
    let mut batch = match ctx.shared.engine.find(&context, &find) {
        Ok(batch) => batch,
        Err(error) if error.code == MIN_NOT_BELOW_MAX => return Ok(totals),
        Err(error) => return Err(error),
    };
    loop {
        totals.count += batch.documents.len() as i64;
        totals.size_bytes += batch.documents.iter().map(|document| document.len() as i64).sum::<i64>();
        if batch.cursor == 0 {
            return Ok(totals);
        }
        batch = ctx.shared.engine.get_more(&context, batch.cursor, &find.namespace, None, None)?;
    }
}

fn data(ctx: &mut Context<'_>, reply: &mut Writer) -> Result<()> {
    let value = ctx.value()?;
    let path = Path { parent: "dataSize", field: "dataSize" };
    let name = value.as_str().ok_or_else(|| path.wrong_type(value, &["string"]))?;
    let arguments = DataArguments::parse(ctx)?;
    if arguments.min.is_some() != arguments.max.is_some() {
        return Err(Error::bad_value("only one of min or max specified"));
    }
    let Some((database, collection)) = name.split_once('.') else {
        return Err(Error::new(Code::INVALID_NAMESPACE, format!("Invalid namespace specified '{name}'")));
    };
    let namespace = engine::Namespace::new(database, collection)?;
    let mut totals = match ctx.shared.engine.collection(&ctx.engine_context(), &namespace) {
        Ok(info) if info.collection.is_view() => {
            let message = format!("Namespace {namespace} is a view, not a collection");
            return Err(Error::new(Code::COMMAND_NOT_SUPPORTED_ON_VIEW, message));
        }
        Ok(info) if info.collection.settings.series.is_some() => {
            let message = format!("Namespace {namespace} is a time-series collection");
            return Err(Error::new(Code::COMMAND_NOT_SUPPORTED_ON_VIEW, message));
        }
        Ok(info) => info.totals,
        Err(error) if error.code == Code::NAMESPACE_NOT_FOUND => engine::Totals::default(),
        Err(error) => return Err(error),
    };
    if let (Some(min), Some(max)) = (arguments.min, arguments.max) {
        let Some(pattern) = arguments.pattern else {
            let message = "couldn't find valid index for min and max: give its keyPattern";
            return Err(Error::new(Code::OPERATION_FAILED, message));
        };
        let range = Query {
            min: Some(min.to_owned()),
            max: Some(max.to_owned()),
            hint: Some(RawBsonRef::Document(pattern).into()),
            ..Query::default()
        };
        totals = totals_of(ctx, Find { query: range, ..Find::new(namespace) })?;
    }
    reply.put("estimate", arguments.estimate.0);
    reply.put("size", totals.size_bytes);
    reply.put("numObjects", totals.count);
    reply.put("millis", 0);
    Ok(())
}
