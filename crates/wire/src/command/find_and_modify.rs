//! `findAndModify`: one document changed or deleted, and returned.

use super::arguments::Uuid;
use super::documents::{Hint, owned, to_owned};
use super::{Command, Context, Flag, Later, Path, Run, arguments};
use crate::auth::{Action, Rights};
use crate::bson::Writer;
use bson::raw::{RawBson, RawBsonRef};
use bson::{RawArray, RawDocument};
use engine::operation::{FindAndModify, FindAndModifyReply, Modification, Query};
use engine::{Error, Result};

/// The command.
pub(crate) static COMMAND: Command = Command {
    name: "findAndModify",
    aliases: &["findandmodify"],
    help: "changes or deletes one document and returns it",
    stable_api: true,
    in_transaction: true,
    writes: true,
    retryable: true,
    rights: Rights::Collection(Action::Update),
    run: Run::Later(run),
    ..Command::DEFAULT
};

arguments! {
    struct Arguments<'a> {
        query: Option<&'a RawDocument> = "query",
        sort: Option<&'a RawDocument> = "sort",
        remove: Flag = "remove",
        update: Option<RawBsonRef<'a>> = "update",
        new: Flag = "new",
        fields: Option<&'a RawDocument> = "fields",
        upsert: Flag = "upsert",
        bypass: Flag = "bypassDocumentValidation",
        collation: Option<&'a RawDocument> = "collation",
        array_filters: Option<&'a RawArray> = "arrayFilters",
        hint: Option<Hint<'a>> = "hint",
        variables: Option<&'a RawDocument> = "let",
        sample: Option<RawBsonRef<'a>> = "sampleId",
        uuid: Option<Uuid<'a>> = "collectionUUID",
        raw_data: Flag = "rawData",
    }
}

fn modification(arguments: &Arguments<'_>) -> Result<Modification> {
    let refuse = |message: &str| Err(Error::failed_to_parse(message));
    let Some(update) = arguments.update else {
        return match (arguments.remove.0, arguments.upsert.0, arguments.new.0) {
            (false, _, _) => refuse("Either an update or remove=true must be specified"),
            (true, true, _) => refuse("Cannot specify both upsert=true and remove=true "),
            (true, _, true) => {
                refuse("Cannot specify both new=true and remove=true; 'remove' always returns the deleted document")
            }
            _ if arguments.array_filters.is_some() => refuse("Cannot specify arrayFilters and remove=true"),
            _ => Ok(Modification::Remove),
        };
    };
    if arguments.remove.0 {
        return refuse("Cannot specify both an update and remove=true");
    }
    if !matches!(update, RawBsonRef::Document(_) | RawBsonRef::Array(_)) {
        return refuse("Update argument must be either an object or an array");
    }
    let path = Path { parent: "findAndModify", field: "arrayFilters" };
    Ok(Modification::Update {
        update: RawBson::from(update),
        upsert: arguments.upsert.0,
        new: arguments.new.0,
        array_filters: owned(arguments.array_filters, path)?,
    })
}

/// A `findAndModify` from a command's arguments.
pub(super) fn find_and_modify(ctx: &Context<'_>) -> Result<FindAndModify> {
    let namespace = ctx.written_collection()?;
    let arguments = Arguments::parse(ctx)?;
    ctx.check_uuid(&namespace, arguments.uuid)?;
    let modification = modification(&arguments)?;
    let given = |document: Option<&RawDocument>| to_owned(document.filter(|document| !document.is_empty()));
    Ok(FindAndModify {
        namespace,
        query: Query {
            filter: to_owned(arguments.query).unwrap_or_default(),
            sort: given(arguments.sort),
            hint: arguments.hint.and_then(Hint::to_owned),
            collation: given(arguments.collation),
            variables: to_owned(arguments.variables),
            ..Query::default()
        },
        modification,
        fields: given(arguments.fields),
        bypass_document_validation: arguments.bypass.0,
        statement_id: ctx.generic.statement_id.unwrap_or(0),
    })
}

fn run<'x>(ctx: &'x mut Context<'_>, reply: &'x mut Writer) -> Later<'x> {
    Box::pin(async move {
        let find_and_modify = find_and_modify(ctx)?;
        let removes = matches!(find_and_modify.modification, Modification::Remove);
        let written = ctx.shared.engine.find_and_modify(&ctx.engine_context(), &find_and_modify)?;
        let FindAndModifyReply { value, n, updated_existing, upserted } = written.durable().await?;
        reply.begin("lastErrorObject");
        reply.put("n", n);
        if !removes {
            reply.put("updatedExisting", updated_existing.unwrap_or(false));
            reply.put_some("upserted", upserted.as_ref());
        }
        reply.end();
        match &value {
            Some(value) => reply.put("value", value),
            None => reply.put("value", RawBsonRef::Null),
        }
        Ok(())
    })
}
