//! Collections: `create`, `drop`, `renameCollection`, `listCollections`.

use super::documents::{to_owned, write_batch};
use super::{Command, Context, Flag, Later, Path, Run, arguments};
use crate::auth::{Action, Resource, Rights};
use crate::bson::Writer;
use bson::raw::{RawBinaryRef, RawBsonRef};
use bson::spec::BinarySubtype;
use bson::{RawArray, RawDocument, RawDocumentBuf};
use engine::operation::{CollectionInfo, Create, Rename};
use engine::{Code, Error, Namespace, Result};

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
    struct RenameArguments<'a> {
        to: &'a str = "to",
        drop_target: Option<RawBsonRef<'a>> = "dropTarget",
        stay_temp: Flag = "stayTemp",
        uuid: Option<RawBsonRef<'a>> = "collectionUUID",
    }
}

arguments! {
    struct DropArguments<'a> {
        uuid: Option<RawBsonRef<'a>> = "collectionUUID",
    }
}

arguments! {
    struct ListArguments<'a> {
        filter: Option<&'a RawDocument> = "filter",
        name_only: Flag = "nameOnly",
        authorized: Flag = "authorizedCollections",
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

fn choice(path: Path<'_>, value: Option<&str>, known: &[&str]) -> Result<()> {
    match value {
        Some(value) if !known.contains(&value) => {
            Err(Error::bad_value(format!("Enumeration value '{value}' for field '{path}' is not a valid value.")))
        }
        _ => Ok(()),
    }
}

/// The options as `listCollections` shows them.
fn options(arguments: &CreateArguments<'_>, body: &RawDocument) -> Result<RawDocumentBuf> {
    check_options(arguments)?;
    let mut options = Writer::new();
    for element in body.iter().skip(1) {
        let (key, value) = element?;
        match key.as_str() {
            "capped" | "temp" => {
                let flag = if key.as_str() == "capped" { arguments.capped } else { arguments.temp };
                if flag.0 {
                    options.put(key.as_str(), true);
                }
            }
            "size" if arguments.capped.0 => options.put("size", rounded_size(arguments.size.unwrap_or(0))),
            "max" if arguments.capped.0 => put_number(&mut options, "max", arguments.max.unwrap_or(0)),
            "validator"
            | "validationLevel"
            | "validationAction"
            | "viewOn"
            | "pipeline"
            | "collation"
            | "timeseries"
            | "storageEngine"
            | "indexOptionDefaults"
            | "changeStreamPreAndPostImages"
                if !super::arguments::is_null(value) =>
            {
                options.put(key.as_str(), value);
            }
            "expireAfterSeconds" => {
                options.put_some("expireAfterSeconds", arguments.expire_after_seconds);
            }
            "clusteredIndex" => put_clustered_index(&mut options, value)?,
            _ => {}
        }
    }
    Ok(options.finish_document())
}

/// Capped sizes are multiples of 256 bytes.
fn rounded_size(size: i64) -> i64 {
    (size.max(0) + 255) / 256 * 256
}

fn put_number(options: &mut Writer, key: &str, number: i64) {
    match i32::try_from(number) {
        Ok(number) => options.put(key, number),
        Err(_) => options.put(key, number),
    }
}

fn put_clustered_index(options: &mut Writer, value: RawBsonRef<'_>) -> Result<()> {
    let Some(given) = value.as_document() else {
        options.put("clusteredIndex", value);
        return Ok(());
    };
    options.begin("clusteredIndex");
    options.put("v", 2);
    options.put_some("key", given.get("key")?);
    options.put("name", given.get_str("name").unwrap_or("_id_"));
    options.put("unique", true);
    options.end();
    Ok(())
}

fn check_options(arguments: &CreateArguments<'_>) -> Result<()> {
    let invalid = |message: &str| Err(Error::new(Code::INVALID_OPTIONS, message));
    let parent = "create";
    choice(Path { parent, field: "validationLevel" }, arguments.validation_level, &["off", "strict", "moderate"])?;
    let actions = ["error", "warn", "errorAndLog"];
    choice(Path { parent, field: "validationAction" }, arguments.validation_action, &actions)?;
    if arguments.encrypted_fields.is_some() {
        let message = "encryptedFields is not supported: there is no queryable encryption";
        return Err(Error::new(Code::COMMAND_NOT_SUPPORTED, message));
    }
    if arguments.capped.0 {
        let Some(size) = arguments.size else { return invalid("the 'size' field is required when 'capped' is true") };
        if size <= 0 {
            return Err(Path { parent, field: "size" }
                .at_least(size, 1)
                .err()
                .unwrap_or_else(|| Error::bad_value("size")));
        }
        if size > 1 << 50 {
            return Err(Error::location(
                51024,
                format!("BSON field 'size' value must be <= {}, actual value '{size}'", 1_i64 << 50),
            ));
        }
    } else if arguments.size.is_some() || arguments.max.is_some() {
        return invalid("the 'size' and 'max' fields are allowed only when 'capped' is true");
    }
    if arguments.pipeline.is_some() && arguments.view_on.is_none() {
        return invalid("'pipeline' requires 'viewOn' to also be specified");
    }
    if let Some(on) = arguments.view_on {
        if on.is_empty() {
            return Err(Error::bad_value("'viewOn' cannot be empty"));
        }
        let storing = arguments.capped.0
            || arguments.validator.is_some()
            || arguments.timeseries.is_some()
            || arguments.id_index.is_some()
            || arguments.auto_index_id.is_some();
        if storing {
            return invalid("a view has no capped, validator, timeseries, idIndex or autoIndexId");
        }
    }
    check_clustered_index(arguments)
}

fn check_clustered_index(arguments: &CreateArguments<'_>) -> Result<()> {
    let invalid = |message: &str| Err(Error::new(Code::INVALID_OPTIONS, message));
    let Some(clustered) = arguments.clustered_index else {
        if arguments.expire_after_seconds.is_some() && arguments.timeseries.is_none() {
            return invalid(
                "'expireAfterSeconds' is only supported on time-series collections or when the 'clusteredIndex' option is specified",
            );
        }
        return Ok(());
    };
    let path = Path { parent: "create", field: "clusteredIndex" };
    match clustered {
        RawBsonRef::Boolean(_) => {}
        RawBsonRef::Document(document) => {
            let key = document.get_document("key").ok();
            if key.is_none_or(|key| {
                let mut fields = key.iter();
                let first = fields.next().and_then(|field| field.ok());
                !first.is_some_and(|(name, value)| name.as_str() == "_id" && super::number(value) == Some(1))
                    || fields.next().is_some()
            }) {
                return Err(Error::new(
                    Code::INVALID_INDEX_SPECIFICATION_OPTION,
                    "The clusteredIndex option is only supported for key: {_id: 1}",
                ));
            }
            if document.get("unique")?.and_then(|unique| unique.as_bool()) != Some(true) {
                return Err(Error::location(
                    5979700,
                    "The clusteredIndex option requires unique: true to be specified",
                ));
            }
        }
        other => return Err(path.wrong_type(other, &["bool", "object"])),
    }
    if arguments.capped.0 {
        return Err(Error::location(6049200, "A capped collection cannot be created with the 'clusteredIndex' option"));
    }
    Ok(())
}

fn create<'x>(ctx: &'x mut Context<'_>, _reply: &'x mut Writer) -> Later<'x> {
    Box::pin(async move {
        let namespace = ctx.collection()?;
        let arguments = CreateArguments::parse(ctx)?;
        let options = options(&arguments, ctx.body())?;
        let create = Create { namespace, options };
        ctx.shared.engine.create(&ctx.engine_context(), &create)?.durable().await
    })
}

fn drop<'x>(ctx: &'x mut Context<'_>, reply: &'x mut Writer) -> Later<'x> {
    Box::pin(async move {
        let namespace = ctx.written_collection()?;
        ctx.check_uuid(&namespace, DropArguments::parse(ctx)?.uuid)?;
        let dropped = ctx.shared.engine.drop_collection(&ctx.engine_context(), &namespace)?.durable().await?;
        if let Some(indexes) = dropped {
            reply.put("nIndexesWas", indexes as i32);
            reply.put("ns", namespace.to_string().as_str());
        }
        Ok(())
    })
}

/// A full namespace, `database.collection`.
fn full(name: &str) -> Result<Namespace> {
    match name.split_once('.') {
        Some((database, collection)) => Namespace::new(database, collection),
        None => Err(Error::new(Code::INVALID_NAMESPACE, format!("Invalid namespace specified '{name}'"))),
    }
}

fn renamed(ctx: &Context<'_>) -> Result<(Namespace, Namespace)> {
    let path = Path { parent: "renameCollection", field: "renameCollection" };
    let value = ctx.value()?;
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
            Some(RawBsonRef::Binary(_)) => true,
            Some(other) => match super::number(other) {
                Some(number) => number != 0,
                None if super::arguments::is_null(other) => false,
                None => return Err(path.wrong_type(other, &["bool", "long", "int", "decimal", "double", "binData"])),
            },
        };
        if to.is_system() != from.is_system() || from.is_system() {
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
    let documents = collections.iter().map(|info| entry(info, false)).collect();
    let filter = to_owned(arguments.filter).unwrap_or_default();
    let mut documents = ctx.shared.engine.matching(&filter, documents)?;
    if arguments.name_only.0 {
        let names = documents.iter().map(|document| document.get_str("name").unwrap_or_default());
        let infos =
            names.filter_map(|name| collections.iter().find(|info| info.collection.namespace.collection == name));
        documents = infos.map(|info| entry(info, true)).collect();
    }
    let namespace = Namespace { database: ctx.database().to_owned(), collection: "$cmd.listCollections".to_owned() };
    let batch = ctx.shared.engine.listing(&context, namespace, documents, batch_size)?;
    write_batch(reply, "firstBatch", &batch)
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
    if !is_view {
        entry.put("uuid", RawBinaryRef { subtype: BinarySubtype::Uuid, bytes: &collection.uuid });
    }
    entry.end();
    if !is_view && !collection.settings.clustered {
        entry.put("idIndex", &super::indexes::id_index(collection));
    }
    entry.finish_document()
}
