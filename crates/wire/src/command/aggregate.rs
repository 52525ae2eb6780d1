//! `aggregate`: a pipeline over a collection, a database, or nothing.

use super::arguments::{Field, Uuid};
use super::documents::{Hint, to_owned, write_batch_at};
use super::{Command, Context, Counter, Flag, Path, Run, arguments};
use crate::auth::{Action, Resource, Rights};
use crate::bson::Writer;
use bson::raw::RawBsonRef;
use bson::{RawArray, RawDocument};
use engine::operation::{Aggregate, Explain};
use engine::{Code, Error, Namespace, Result};
use std::sync::Arc;

/// The command.
pub(crate) static COMMAND: Command = Command {
    name: "aggregate",
    help: "runs a pipeline",
    stable_api: true,
    in_transaction: true,
    reads: true,
    writes: true,
    counter: Counter::Command,
    rights: Rights::Custom(rights),
    run: Run::Now(run),
    ..Command::DEFAULT
};

arguments! {
    struct Arguments<'a> {
        pipeline: &'a RawArray = "pipeline",
        cursor: Option<&'a RawDocument> = "cursor",
        explain: Option<bool> = "explain",
        allow_disk_use: Option<bool> = "allowDiskUse",
        bypass: Flag = "bypassDocumentValidation",
        collation: Option<&'a RawDocument> = "collation",
        hint: Option<Hint<'a>> = "hint",
        variables: Option<&'a RawDocument> = "let",
        uuid: Option<Uuid<'a>> = "collectionUUID",
        from_mongos: Option<RawBsonRef<'a>> = "fromMongos",
        needs_merge: Option<RawBsonRef<'a>> = "needsMerge",
        exchange: Option<RawBsonRef<'a>> = "exchange",
        metrics: Flag = "includeQueryStatsMetrics",
        query_settings: Option<&'a RawDocument> = "querySettings",
        raw_data: Flag = "rawData",
    }
}

/// The collection that the command names; an empty one for a pipeline on a database.
fn namespace(ctx: &Context<'_>) -> Result<Namespace> {
    let value = ctx.value()?;
    match value {
        RawBsonRef::String(_) => ctx.collection(),
        _ if is_one(value) => Ok(Namespace { database: ctx.database().to_owned(), collection: String::new() }),
        _ if super::number(value).is_some() => {
            Err(Error::bad_value("Invalid command format: the 'aggregate' field must specify a collection name or 1"))
        }
        other => {
            let kind = super::type_name(other.element_type());
            Err(Error::new(Code::INVALID_NAMESPACE, format!("collection name has invalid type {kind}")))
        }
    }
}

/// Whether a number is exactly one.
fn is_one(value: RawBsonRef<'_>) -> bool {
    <f64 as Field<'_>>::from_value(Path { parent: "aggregate", field: "aggregate" }, value)
        .is_ok_and(|number| number == 1.0)
}

fn parse<'c>(ctx: &Context<'c>) -> Result<(Namespace, Arguments<'c>)> {
    let namespace = namespace(ctx)?;
    if let Some(pipeline) = ctx.field("pipeline").filter(|value| value.as_array().is_none()) {
        return Err(Path { parent: "aggregate", field: "pipeline" }.wrong_type(pipeline, &["array"]));
    }
    let arguments = Arguments::parse(ctx)?;
    ctx.check_uuid(&namespace, arguments.uuid)?;
    Ok((namespace, arguments))
}

fn rights(ctx: &Context<'_>) -> Result<Vec<(Action, Resource)>> {
    let (namespace, arguments) = parse(ctx)?;
    let access = ctx.shared.engine.pipeline_access(&namespace, arguments.pipeline, arguments.variables)?;
    let on = |namespace: &Namespace| Resource::namespace(&namespace.database, &namespace.collection);
    let mut needed = vec![(Action::Find, on(&namespace))];
    needed.extend(reported(arguments.pipeline));
    needed.extend(access.reads.iter().map(|read| (Action::Find, on(read))));
    if access.watches {
        needed.push((Action::ChangeStream, on(&namespace)));
    }
    if let Some(target) = &access.writes {
        needed.extend([Action::Insert, Action::Update, Action::Remove].map(|action| (action, on(target))));
    }
    Ok(needed)
}

/// An `aggregate` from a command's arguments, and whether it is only to be explained.
pub(super) fn aggregate(ctx: &Context<'_>) -> Result<(Aggregate, bool)> {
    let (namespace, arguments) = parse(ctx)?;
    let explain = arguments.explain.unwrap_or(false);
    if explain && ctx.body().get("writeConcern")?.is_some() {
        return Err(Error::failed_to_parse("Aggregation explain does not support the 'writeConcern' option"));
    }
    if arguments.cursor.is_none() && !explain && ctx.explained.is_none() {
        let message = "The 'cursor' option is required, except for aggregate with the explain argument";
        return Err(Error::failed_to_parse(message));
    }
    refuse_linearizable_write(ctx, arguments.pipeline)?;
    check_first_stage(ctx, arguments.pipeline)?;
    let batch_size = super::collections::batch_size(ctx, arguments.cursor)?;
    let mut aggregate = Aggregate::new(namespace, arguments.pipeline.to_owned());
    aggregate.variables = to_owned(arguments.variables);
    aggregate.collation = to_owned(arguments.collation.filter(|collation| !collation.is_empty()));
    aggregate.hint = arguments.hint.and_then(Hint::to_owned);
    aggregate.batch_size = batch_size;
    aggregate.allow_disk_use = arguments.allow_disk_use.unwrap_or(true);
    aggregate.bypass_document_validation = arguments.bypass.0;
    Ok((aggregate, explain))
}

fn run(ctx: &mut Context<'_>, reply: &mut Writer) -> Result<()> {
    let (aggregate, explain) = aggregate(ctx)?;
    if explain {
        return super::explain::explain_aggregate(ctx, aggregate, reply);
    }
    let mut context = ctx.engine_context();
    context.index_hints = super::query_settings::of(ctx, || Explain::Aggregate(Box::new(aggregate.clone())))?;
    if reports(&aggregate.pipeline) {
        let viewer = super::current_op::viewer(ctx);
        context.reporter = Some(Arc::new(move |report, options| viewer.report(report, options)));
    }
    let batch = ctx.shared.engine.aggregate(&context, &aggregate)?;
    write_batch_at(reply, "firstBatch", &batch, ctx.snapshot_time())
}

/// Refuses to write what was read by a concern that is only for reading.
fn refuse_linearizable_write(ctx: &Context<'_>, pipeline: &RawArray) -> Result<()> {
    let concern = ctx.body().get_document("readConcern").and_then(|concern| concern.get_str("level"));
    let last = pipeline.into_iter().last().and_then(|stage| stage.ok()).and_then(|stage| stage.as_document());
    let name = last.and_then(|stage| stage.iter().next()?.ok()).map(|field| field.0.as_str());
    match (concern, name) {
        (Ok("linearizable"), Some(name @ ("$out" | "$merge"))) => {
            let message = format!("{name} cannot be used with a 'linearizable' read concern level");
            Err(Error::new(Code::INVALID_OPTIONS, message))
        }
        _ => Ok(()),
    }
}

/// Stages that are not part of the stable API, version 1.
const UNSTABLE: &[&str] = &[
    "$currentOp",
    "$indexStats",
    "$listCatalog",
    "$listLocalSessions",
    "$listSessions",
    "$planCacheStats",
    "$search",
    "$searchMeta",
    "$vectorSearch",
];

/// Stages that report on the server as it is, whatever has been written.
const LOCAL_ONLY: &[&str] = &["$currentOp", "$listClusterCatalog", "$listLocalSessions", "$planCacheStats"];

/// Refuses a first stage that the stable API or the read concern does not allow.
fn check_first_stage(ctx: &Context<'_>, pipeline: &RawArray) -> Result<()> {
    let first = pipeline.into_iter().next().and_then(|stage| stage.ok()).and_then(|stage| stage.as_document());
    let Some((name, options)) = first.and_then(|stage| stage.iter().next()?.ok()) else { return Ok(()) };
    let name = name.as_str();
    let only_counts = || {
        let options = options.as_document();
        options.is_some_and(|options| options.iter().flatten().all(|(name, _)| name.as_str() == "count"))
    };
    if ctx.generic.api_strict && (UNSTABLE.contains(&name) || name == "$collStats" && !only_counts()) {
        let message = format!("stage {name} is not allowed with 'apiStrict: true' in API Version 1");
        return Err(Error::new(Code::API_STRICT_ERROR, message));
    }
    let expands =
        || options.as_document().is_some_and(|options| options.get("showExpandedEvents").ok().flatten().is_some());
    if ctx.generic.api_strict && name == "$changeStream" && expands() {
        let message = "BSON field '$changeStream.showExpandedEvents' is not allowed with apiStrict: true";
        return Err(Error::new(Code::API_STRICT_ERROR, message));
    }
    let concern = ctx.body().get_document("readConcern").and_then(|concern| concern.get_str("level"));
    match concern {
        Ok(level) if name == "$changeStream" && level != "majority" => {
            let message = format!("$changeStream cannot be used with a '{level}' read concern, only with 'majority'");
            Err(Error::new(Code::INVALID_OPTIONS, message))
        }
        Ok(level) if LOCAL_ONLY.contains(&name) && level != "local" => {
            let message = format!("{name} cannot be used with a '{level}' read concern, only with 'local'");
            Err(Error::new(Code::INVALID_OPTIONS, message))
        }
        _ => Ok(()),
    }
}

/// Whether a pipeline may hold a stage that reports on the server.
fn reports(pipeline: &RawArray) -> bool {
    let stages: [&[u8]; 4] = [b"currentOp", b"listLocalSessions", b"listSessions", b"querySettings"];
    let mut names = pipeline.as_bytes().split(|byte| *byte == b'$');
    names.any(|name| stages.iter().any(|stage| name.starts_with(stage)))
}

/// What the first stage asks for where it shows what belongs to others.
fn reported(pipeline: &RawArray) -> Option<(Action, Resource)> {
    let first = pipeline.into_iter().next()?.ok()?.as_document()?;
    let (name, options) = first.iter().next()?.ok()?;
    let options = options.as_document()?;
    let others = options.get_bool("allUsers").unwrap_or(false) || options.get_array("users").is_ok();
    let action = match name.as_str() {
        "$currentOp" => Action::Inprog,
        "$listSessions" | "$listLocalSessions" => Action::ListSessions,
        _ => return None,
    };
    others.then_some((action, Resource::Cluster))
}
