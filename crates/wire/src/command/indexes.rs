//! Indexes: `createIndexes`, `dropIndexes`, `listIndexes`.

use super::arguments::Uuid;
use super::documents::{Documents, write_batch};
use super::{Command, Context, Later, Run, arguments};
use crate::auth::{Action, Rights};
use crate::bson::Writer;
use bson::raw::RawBsonRef;
use bson::{RawDocument, RawDocumentBuf};
use engine::catalog::Collection;
use engine::operation::{CreateIndexesReply, DropIndexes};
use engine::{Code, Error, Namespace, Result};

/// `createIndexes`.
pub(crate) static CREATE: Command = Command {
    name: "createIndexes",
    help: "creates indexes and waits until they can be used",
    stable_api: true,
    in_transaction: true,
    writes: true,
    rights: Rights::Collection(Action::CreateIndex),
    run: Run::Later(create),
    ..Command::DEFAULT
};

/// `dropIndexes`.
pub(crate) static DROP: Command = Command {
    name: "dropIndexes",
    aliases: &["deleteIndexes"],
    help: "drops indexes",
    stable_api: true,
    writes: true,
    rights: Rights::Collection(Action::DropIndex),
    run: Run::Later(drop),
    ..Command::DEFAULT
};

/// `listIndexes`.
pub(crate) static LIST: Command = Command {
    name: "listIndexes",
    help: "lists the indexes of a collection",
    stable_api: true,
    rights: Rights::Collection(Action::ListIndexes),
    run: Run::Now(list),
    ..Command::DEFAULT
};

arguments! {
    struct CreateArguments<'a> {
        indexes: Documents<'a> = "indexes",
        commit_quorum: Option<RawBsonRef<'a>> = "commitQuorum",
        ignore_unknown: Option<bool> = "ignoreUnknownIndexOptions",
        raw_data: super::Flag = "rawData",
    }
}

arguments! {
    struct DropArguments<'a> {
        index: RawBsonRef<'a> = "index",
        uuid: Option<Uuid<'a>> = "collectionUUID",
        raw_data: super::Flag = "rawData",
    }
}

arguments! {
    struct ListArguments<'a> {
        cursor: Option<&'a RawDocument> = "cursor",
        build_info: super::Flag = "includeIndexBuildInfo",
        build_uuids: super::Flag = "includeBuildUUIDs",
        raw_data: super::Flag = "rawData",
    }
}

fn create<'x>(ctx: &'x mut Context<'_>, reply: &'x mut Writer) -> Later<'x> {
    Box::pin(async move {
        let namespace = ctx.collection()?;
        let arguments = CreateArguments::parse(ctx)?;
        refuse_system(&namespace)?;
        let mut specs: Vec<RawDocumentBuf> = Vec::new();
        for spec in arguments.indexes.iter("createIndexes", "indexes") {
            specs.push(spec?.to_owned());
        }
        if specs.is_empty() {
            return Err(Error::bad_value("Must specify at least one index to create"));
        }
        let created = ctx.shared.engine.create_indexes(&ctx.engine_context(), &namespace, &specs)?;
        let CreateIndexesReply { before, after, created_collection } = created.durable().await?;
        reply.put("numIndexesBefore", before as i32);
        reply.put("numIndexesAfter", after as i32);
        reply.put("createdCollectionAutomatically", created_collection);
        if before == after {
            reply.put("note", "all indexes already exist");
        }
        Ok(())
    })
}

/// Refuses collections of the server's own that may not have further indexes.
fn refuse_system(namespace: &Namespace) -> Result<()> {
    let open = ["system.js", "system.profile", "system.users", "system.roles", "system.version"];
    let name = namespace.collection.as_str();
    if name.starts_with("system.") && !name.starts_with("system.buckets.") && !open.contains(&name) {
        return Err(Error::new(Code::INVALID_NAMESPACE, format!("Invalid system namespace: {namespace}")));
    }
    Ok(())
}

fn which(index: RawBsonRef<'_>) -> Result<DropIndexes> {
    let path = super::Path { parent: "dropIndexes", field: "index" };
    match index {
        RawBsonRef::String("*") => Ok(DropIndexes::All),
        RawBsonRef::String(name) => Ok(DropIndexes::Names(vec![name.to_owned()])),
        RawBsonRef::Document(pattern) => Ok(DropIndexes::Pattern(pattern.to_owned())),
        RawBsonRef::Array(names) => {
            let mut list: Vec<String> = Vec::new();
            for name in names {
                let name = name?;
                let name = name.as_str().ok_or_else(|| path.wrong_type(name, &["string"]))?;
                if list.iter().any(|known| known == name) {
                    let message = format!("index not found with name [{name}]: it is named twice");
                    return Err(Error::new(Code::INDEX_NOT_FOUND, message));
                }
                list.push(name.to_owned());
            }
            if list == ["*"] { Ok(DropIndexes::All) } else { Ok(DropIndexes::Names(list)) }
        }
        other => Err(path.wrong_type(other, &["array", "string", "object"])),
    }
}

fn drop<'x>(ctx: &'x mut Context<'_>, reply: &'x mut Writer) -> Later<'x> {
    Box::pin(async move {
        let namespace = ctx.collection()?;
        let arguments = DropArguments::parse(ctx)?;
        ctx.check_uuid(&namespace, arguments.uuid)?;
        let which = which(arguments.index)?;
        refuse_view(ctx, &namespace)?;
        let namespace = ctx.shared.engine.series_of_buckets(&namespace).unwrap_or(namespace);
        let were = ctx.shared.engine.drop_indexes(&ctx.engine_context(), &namespace, &which)?.durable().await?;
        reply.put("nIndexesWas", were as i32);
        if matches!(which, DropIndexes::All) {
            reply.put("msg", "non-_id indexes dropped for collection");
        }
        Ok(())
    })
}

/// Refuses a view, which has no indexes.
fn refuse_view(ctx: &Context<'_>, namespace: &Namespace) -> Result<()> {
    if ctx.shared.engine.state().catalog.get(namespace).is_some_and(|found| found.is_view()) {
        let message = format!("Namespace {namespace} is a view, not a collection");
        return Err(Error::new(Code::COMMAND_NOT_SUPPORTED_ON_VIEW, message));
    }
    Ok(())
}

/// The index on `_id`, which every collection has.
pub(super) fn id_index(collection: &Collection) -> RawDocumentBuf {
    let mut index = Writer::new();
    index.put("v", 2);
    index.begin("key");
    index.put("_id", 1);
    index.end();
    index.put("name", "_id_");
    if let Ok(collation) = collection.options.get_document("collation")
        && collection.collator().is_some()
    {
        index.put("collation", collation);
    }
    index.finish_document()
}

/// An index with what there is to say about its build.
fn with_build_info(collection: &Collection, spec: &RawDocument) -> RawDocumentBuf {
    let mut entry = Writer::new();
    entry.put("spec", spec);
    let name = spec.get_str("name").unwrap_or_default();
    if collection.index(name).is_some_and(|index| !index.ready) {
        entry.begin("indexBuildInfo");
        entry.put("spec", spec);
        entry.end();
    }
    entry.finish_document()
}

fn list(ctx: &mut Context<'_>, reply: &mut Writer) -> Result<()> {
    let namespace = ctx.collection()?;
    let arguments = ListArguments::parse(ctx)?;
    if arguments.build_info.0 && arguments.build_uuids.0 {
        let message = "The includeBuildUUIDs flag can't be used with the includeIndexBuildInfo flag";
        return Err(Error::new(Code::INVALID_OPTIONS, message));
    }
    let batch_size = super::collections::batch_size(ctx, arguments.cursor)?;
    let context = ctx.engine_context();
    let shown = ctx.shared.engine.series_of_buckets(&namespace).unwrap_or_else(|| namespace.clone());
    let info = ctx.shared.engine.collection(&context, &shown)?;
    let collection = &info.collection;
    if collection.is_view() {
        let message = format!("Namespace {namespace} is a view, not a collection");
        return Err(Error::new(Code::COMMAND_NOT_SUPPORTED_ON_VIEW, message));
    }
    let mut documents = Vec::new();
    match collection.options.get_document("clusteredIndex") {
        Ok(clustered) => {
            let mut index = Writer::new();
            index.put_all(clustered);
            index.put("clustered", true);
            documents.push(index.finish_document());
        }
        // The profiler's entries are looked up by nobody.
        Err(_) if namespace.collection == engine::operation::PROFILE_COLLECTION => {}
        Err(_) if collection.implicit_indexes() > 0 => documents.push(id_index(collection)),
        Err(_) => {}
    }
    documents.extend(collection.indexes.iter().map(|index| index.spec.document().to_owned()));
    if arguments.build_info.0 {
        documents = documents.iter().map(|spec| with_build_info(collection, spec)).collect();
    }
    let name = Namespace { database: namespace.database.clone(), collection: namespace.collection.clone() };
    let batch = ctx.shared.engine.listing(&context, name, documents, batch_size)?;
    write_batch(reply, "firstBatch", &batch)
}
