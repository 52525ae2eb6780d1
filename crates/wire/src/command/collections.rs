//! Collections: `create`, `drop`, `renameCollection`, `listCollections`.

use super::arguments::{Field, Uuid};
use super::documents::{to_owned, write_batch};
use super::{Command, Context, Flag, Later, Path, Run, arguments};
use crate::auth::{Action, Resource, Rights};
use crate::bson::Writer;
use bson::raw::{RawBinaryRef, RawBsonRef};
use bson::spec::BinarySubtype;
use bson::{RawDocument, RawDocumentBuf};
use engine::operation::{CollectionInfo, Create, Rename};
use engine::{Code, Error, Namespace, Result};

/// System collections that may be created.
const WRITABLE_SYSTEM: &[&str] = &["system.js", "system.profile", "system.views"];

/// `create`.
pub(crate) static CREATE: Command = Command {
    name: "create",
    help: "creates a collection or a view",
    stable_api: true,
    in_transaction: true,
    writes: true,
    rights: Rights::Collection(Action::CreateCollection),
    run: Run::Later(create),
    ..Command::DEFAULT
};

/// `drop`.
pub(crate) static DROP: Command = Command {
    name: "drop",
    help: "drops a collection or a view",
    stable_api: true,
    writes: true,
    rights: Rights::Collection(Action::DropCollection),
    run: Run::Later(drop),
    ..Command::DEFAULT
};

/// `renameCollection`.
pub(crate) static RENAME: Command = Command {
    name: "renameCollection",
    help: "gives a collection another name",
    admin_only: true,
    writes: true,
    rights: Rights::Custom(rename_rights),
    run: Run::Later(rename),
    ..Command::DEFAULT
};

/// `listCollections`.
pub(crate) static LIST: Command = Command {
    name: "listCollections",
    help: "lists the collections and views of a database",
    stable_api: true,
    reads: false,
    rights: Rights::Database(Action::ListCollections),
    run: Run::Now(list),
    ..Command::DEFAULT
};

arguments! {
    struct RenameArguments<'a> {
        to: &'a str = "to",
        drop_target: Option<RawBsonRef<'a>> = "dropTarget",
        stay_temp: Option<bool> = "stayTemp",
        uuid: Option<Uuid<'a>> = "collectionUUID",
    }
}

arguments! {
    struct DropArguments<'a> {
        uuid: Option<Uuid<'a>> = "collectionUUID",
    }
}

arguments! {
    struct ListArguments<'a> {
        filter: Option<&'a RawDocument> = "filter",
        name_only: Option<bool> = "nameOnly",
        authorized: Option<bool> = "authorizedCollections",
        cursor: Option<&'a RawDocument> = "cursor",
        include_pending_drops: Flag = "includePendingDrops",
        raw_data: Flag = "rawData",
    }
}

arguments! {
    struct CursorArguments<'a> {
        batch_size: Option<i64> = "batchSize",
    }
}

/// `cursor: {batchSize}` of a command that lists.
pub(super) fn batch_size(ctx: &Context<'_>, cursor: Option<&RawDocument>) -> Result<Option<usize>> {
    let Some(cursor) = cursor else { return Ok(None) };
    let parent = format!("{}.cursor", ctx.called);
    let size = CursorArguments::parse_nested(&parent, cursor)?.batch_size;
    let size = size.map(|size| Path { parent: &parent, field: "batchSize" }.at_least(size, 0)).transpose()?;
    Ok(size.map(|size| size as usize))
}

fn create<'x>(ctx: &'x mut Context<'_>, _reply: &'x mut Writer) -> Later<'x> {
    Box::pin(async move {
        let namespace = ctx.collection()?;
        let options = super::create_options::options(ctx)?;
        let is_series = options.get("timeseries")?.is_some();
        if namespace.collection.starts_with("system.buckets.") && !is_series {
            let message = format!("{namespace} can hold the buckets of a time-series collection only");
            return Err(Error::new(Code::ILLEGAL_OPERATION, message));
        }
        if namespace.is_system() && !WRITABLE_SYSTEM.contains(&namespace.collection.as_str()) && !is_series {
            let message = format!("Invalid system namespace: {namespace}");
            return Err(Error::new(Code::INVALID_NAMESPACE, message));
        }
        let create = Create { namespace, options };
        ctx.shared.engine.create(&ctx.engine_context(), &create)?.durable().await
    })
}

fn drop<'x>(ctx: &'x mut Context<'_>, reply: &'x mut Writer) -> Later<'x> {
    Box::pin(async move {
        let namespace = ctx.written_collection()?;
        ctx.check_uuid(&namespace, DropArguments::parse(ctx)?.uuid)?;
        if namespace.collection == engine::operation::PROFILE_COLLECTION
            && ctx.shared.profiler.level(&namespace.database) > 0
        {
            let message = "turn off profiling before dropping system.profile collection";
            return Err(Error::new(Code::ILLEGAL_OPERATION, message));
        }
        let is_view = ctx.shared.engine.state().catalog.get(&namespace).is_some_and(|found| found.is_view());
        let dropped = ctx.shared.engine.drop_collection(&ctx.engine_context(), &namespace)?.durable().await?;
        if let Some(indexes) = dropped {
            ctx.shared.usage.forget(&namespace.to_string());
            if !is_view {
                reply.put("nIndexesWas", indexes as i32);
            }
            reply.put("ns", namespace.to_string().as_str());
        }
        Ok(())
    })
}

/// A full namespace, `database.collection`.
fn full(name: &str) -> Result<Namespace> {
    match name.split_once('.') {
        Some(_) if name.contains('$') || name.len() > engine::namespace::MAX_NAMESPACE_BYTES => {
            Err(Error::new(Code::ILLEGAL_OPERATION, format!("error with the namespace '{name}'")))
        }
        Some((database, collection)) => Namespace::new(database, collection),
        None => Err(Error::new(Code::INVALID_NAMESPACE, format!("Invalid namespace specified '{name}'"))),
    }
}

fn renamed(ctx: &Context<'_>) -> Result<(Namespace, Namespace)> {
    let path = Path { parent: "renameCollection", field: "renameCollection" };
    let value = ctx.value()?;
    if super::arguments::is_null(value) {
        return Err(path.missing());
    }
    let from = full(value.as_str().ok_or_else(|| path.wrong_type(value, &["string"]))?)?;
    let path = Path { parent: "renameCollection", field: "to" };
    let to = ctx.body().get("to")?.ok_or_else(|| path.missing())?;
    Ok((from, full(to.as_str().ok_or_else(|| path.wrong_type(to, &["string"]))?)?))
}

fn rename_rights(ctx: &Context<'_>) -> Result<Vec<(Action, Resource)>> {
    let (from, to) = renamed(ctx)?;
    if from.database == to.database {
        return Ok(vec![(Action::RenameCollectionSameDb, Resource::namespace(&from.database, ""))]);
    }
    let on = |namespace: &Namespace| Resource::namespace(&namespace.database, &namespace.collection);
    Ok(vec![
        (Action::Find, on(&from)),
        (Action::DropCollection, on(&from)),
        (Action::Insert, on(&to)),
        (Action::CreateIndex, on(&to)),
    ])
}

fn rename<'x>(ctx: &'x mut Context<'_>, _reply: &'x mut Writer) -> Later<'x> {
    Box::pin(async move {
        let arguments = RenameArguments::parse(ctx)?;
        let (from, to) = renamed(ctx)?;
        ctx.check_uuid(&from, arguments.uuid)?;
        let path = Path { parent: "renameCollection", field: "dropTarget" };
        let drop_target = match arguments.drop_target {
            None => false,
            Some(RawBsonRef::Boolean(drop)) => drop,
            Some(uuid @ RawBsonRef::Binary(binary)) => {
                if binary.subtype != BinarySubtype::Uuid || binary.bytes.len() != 16 {
                    let message = "uuid must be a 16-byte binary field with UUID (4) subtype";
                    return Err(Error::new(Code::INVALID_UUID, message));
                }
                if from.database != to.database {
                    return Err(Error::new(
                        Code::INVALID_OPTIONS,
                        "a dropTarget with a UUID needs a rename within a database",
                    ));
                }
                ctx.check_uuid(&to, Some(Uuid::from_value(path, uuid)?))?;
                true
            }
            Some(other) => return Err(path.wrong_type(other, &["bool", "binData"])),
        };
        let is_oplog = to.database == "local" && to.collection.starts_with("oplog.");
        let state = ctx.shared.engine.state();
        let is_series = |namespace: &Namespace| {
            state.catalog.get(namespace).is_some_and(|found| found.settings.time_series.is_some() || found.is_view())
        };
        if drop_target && is_series(&to) {
            let message = format!("cannot rename to an existing view or time-series collection: {to}");
            return Err(Error::new(Code::NAMESPACE_EXISTS, message));
        }
        if is_series(&from) {
            let message = "views and time-series collections can't be renamed";
            return Err(Error::new(Code::COMMAND_NOT_SUPPORTED_ON_VIEW, message));
        }
        if to.is_system() != from.is_system() || from.is_system() || is_oplog {
            return Err(Error::new(Code::ILLEGAL_OPERATION, "system collections can't be renamed"));
        }
        let rename = Rename { from, to, drop_target };
        ctx.shared.engine.rename(&ctx.engine_context(), &rename)?.durable().await
    })
}

fn list(ctx: &mut Context<'_>, reply: &mut Writer) -> Result<()> {
    let arguments = ListArguments::parse(ctx)?;
    let batch_size = batch_size(ctx, arguments.cursor)?;
    let context = ctx.engine_context();
    let collections = ctx.shared.engine.list_collections(&context, ctx.database())?;
    let name_only = arguments.name_only.unwrap_or(false);
    let buckets = collections.iter().filter(|info| info.collection.settings.series.is_some());
    let buckets = buckets.map(|info| buckets_entry(info, name_only));
    let documents = collections.iter().map(|info| entry(info, name_only)).chain(buckets).collect();
    let filter = to_owned(arguments.filter).unwrap_or_default();
    let documents = ctx.shared.engine.matching(&filter, documents)?;
    let namespace = Namespace { database: ctx.database().to_owned(), collection: "$cmd.listCollections".to_owned() };
    let batch = ctx.shared.engine.listing(&context, namespace, documents, batch_size)?;
    write_batch(reply, "firstBatch", &batch)
}

/// The buckets of a time series, as `listCollections` shows them.
fn buckets_entry(info: &CollectionInfo, name_only: bool) -> RawDocumentBuf {
    let collection = &info.collection;
    let mut entry = Writer::new();
    entry.put("name", format!("system.buckets.{}", collection.namespace.collection).as_str());
    entry.put("type", "collection");
    if name_only {
        return entry.finish_document();
    }
    entry.begin("options");
    entry.begin("validator");
    entry.begin("$jsonSchema");
    entry.put("bsonType", "object");
    entry.put_strings("required", ["_id", "control", "data"]);
    entry.end();
    entry.end();
    entry.put("clusteredIndex", true);
    entry.put_all(&collection.options);
    entry.end();
    entry.begin("info");
    entry.put("readOnly", false);
    entry.put("uuid", RawBinaryRef { subtype: BinarySubtype::Uuid, bytes: &collection.uuid });
    entry.end();
    entry.finish_document()
}

/// A collection as `listCollections` shows it.
fn entry(info: &CollectionInfo, name_only: bool) -> RawDocumentBuf {
    let collection = &info.collection;
    let is_view = collection.is_view();
    let mut entry = Writer::new();
    entry.put("name", collection.namespace.collection.as_str());
    let kind = match (is_view, &collection.settings.time_series) {
        (_, Some(_)) => "timeseries",
        (true, None) => "view",
        (false, None) => "collection",
    };
    entry.put("type", kind);
    if name_only {
        return entry.finish_document();
    }
    entry.put("options", &collection.options);
    entry.begin("info");
    entry.put("readOnly", is_view);
    if !is_view && collection.settings.series.is_none() {
        entry.put("uuid", RawBinaryRef { subtype: BinarySubtype::Uuid, bytes: &collection.uuid });
    }
    entry.end();
    if !is_view && collection.implicit_indexes() > 0 {
        entry.put("idIndex", &super::indexes::id_index(collection));
    }
    entry.finish_document()
}
