//! `find`: documents that match.

use super::arguments::Uuid;
use super::documents::{Hint, to_owned, write_batch_at};
use super::{Command, Context, Counter, Flag, Path, Run, arguments};
use crate::auth::{Action, Rights};
use crate::bson::Writer;
use bson::RawDocument;
use bson::raw::RawBsonRef;
use engine::operation::{Explain, Find, Query};
use engine::{Code, Error, Result, Tailing};

/// The command.
pub(crate) static COMMAND: Command = Command {
    name: "find",
    help: "returns documents that match",
    stable_api: true,
    in_transaction: true,
    reads: true,
    counter: Counter::Query,
    rights: Rights::Collection(Action::Find),
    run: Run::Now(run),
    ..Command::DEFAULT
};

arguments! {
    struct Arguments<'a> {
        filter: Option<&'a RawDocument> = "filter",
        projection: Option<&'a RawDocument> = "projection",
        sort: Option<&'a RawDocument> = "sort",
        hint: Option<Hint<'a>> = "hint",
        collation: Option<&'a RawDocument> = "collation",
        skip: Option<i64> = "skip",
        limit: Option<i64> = "limit",
        batch_size: Option<i64> = "batchSize",
        single_batch: Flag = "singleBatch",
        allow_disk_use: Flag = "allowDiskUse",
        min: Option<&'a RawDocument> = "min",
        max: Option<&'a RawDocument> = "max",
        return_key: Flag = "returnKey",
        show_record_id: Flag = "showRecordId",
        tailable: Flag = "tailable",
        oplog_replay: Flag = "oplogReplay",
        no_cursor_timeout: Flag = "noCursorTimeout",
        await_data: Flag = "awaitData",
        allow_partial_results: Flag = "allowPartialResults",
        mirrored: Flag = "mirrored",
        variables: Option<&'a RawDocument> = "let",
        options: Option<&'a RawDocument> = "options",
        term: Option<i64> = "term",
        read_once: Flag = "readOnce",
        uuid: Option<Uuid<'a>> = "collectionUUID",
        metrics: Flag = "includeQueryStatsMetrics",
        query_settings: Option<&'a RawDocument> = "querySettings",
        raw_data: Flag = "rawData",
    }
}

/// Refuses what a cursor that stays open at its end can't be on or do; whether there is anything it could be on.
fn check_tailable(ctx: &Context<'_>, find: &Find, sort: Option<&RawDocument>) -> Result<bool> {
    let refuse = |message: String| -> Result<bool> { Err(Error::bad_value(message)) };
    let natural = |sort: &RawDocument| {
        let mut fields = sort.iter();
        let first = fields.next().and_then(|field| field.ok());
        let is_forward =
            first.is_some_and(|(name, order)| name.as_str() == "$natural" && super::number(order) == Some(1));
        is_forward && fields.next().is_none()
    };
    if sort.is_some_and(|sort| !sort.is_empty() && !natural(sort)) {
        return refuse("cannot use tailable option with a sort other than {$natural: 1}".to_owned());
    }
    if find.single_batch {
        return refuse("cannot use tailable option with the 'singleBatch' option".to_owned());
    }
    let namespace = &find.namespace;
    let info = match ctx.shared.engine.collection(&ctx.engine_context(), namespace) {
        Ok(info) => info,
        Err(error) if error.code == Code::NAMESPACE_NOT_FOUND => return Ok(false),
        Err(error) => return Err(error),
    };
    if info.collection.is_view() || info.collection.settings.time_series.is_some() {
        let message = format!("a tailable cursor can't be on a view: {namespace}");
        return Err(Error::new(Code::INVALID_PIPELINE_OPERATOR, message));
    }
    if info.collection.settings.capped.is_none() {
        return refuse(format!(
            "error processing query: ns={namespace}: tailable cursor requested on non capped collection"
        ));
    }
    Ok(info.totals.count > 0)
}

/// A `find` from a command's arguments.
pub(super) fn find(ctx: &Context<'_>) -> Result<Find> {
    let namespace = ctx.collection()?;
    let arguments = Arguments::parse(ctx)?;
    ctx.check_uuid(&namespace, arguments.uuid)?;
    if let Some(filter @ RawBsonRef::Null) = ctx.field("filter") {
        return Err(Path { parent: "find", field: "filter" }.wrong_type(filter, &["object"]));
    }
    let natural = |field, value: Option<i64>| -> Result<Option<u64>> {
        let value = value.map(|value| Path { parent: "find", field }.at_least(value, 0)).transpose()?;
        Ok(value.map(|value| value as u64))
    };
    let skip = natural("skip", arguments.skip)?.unwrap_or(0);
    let limit = natural("limit", arguments.limit)?.unwrap_or(0);
    let batch_size = natural("batchSize", arguments.batch_size)?.map(|size| size as usize);
    let tailing = match (arguments.tailable.0, arguments.await_data.0) {
        (false, false) => Tailing::No,
        (true, false) => Tailing::Tailable,
        (true, true) => Tailing::Await,
        (false, true) => {
            return Err(Error::failed_to_parse("Cannot set 'awaitData' without also setting 'tailable'"));
        }
    };
    let given = |document: Option<&RawDocument>| to_owned(document.filter(|document| !document.is_empty()));
    let mut find = Find {
        query: Query {
            filter: to_owned(arguments.filter).unwrap_or_default(),
            sort: given(arguments.sort),
            skip,
            limit,
            hint: arguments.hint.and_then(Hint::to_owned),
            min: given(arguments.min),
            max: given(arguments.max),
            collation: given(arguments.collation),
            variables: to_owned(arguments.variables),
            allow_disk_use: arguments.allow_disk_use.0,
        },
        projection: given(arguments.projection),
        batch_size,
        single_batch: arguments.single_batch.0,
        tailing,
        no_cursor_timeout: arguments.no_cursor_timeout.0,
        return_key: arguments.return_key.0,
        show_record_id: arguments.show_record_id.0,
        ..Find::new(namespace)
    };
    if find.tailing != Tailing::No && !check_tailable(ctx, &find, arguments.sort)? {
        find.tailing = Tailing::No;
    }
    Ok(find)
}

fn run(ctx: &mut Context<'_>, reply: &mut Writer) -> Result<()> {
    let find = find(ctx)?;
    let mut context = ctx.engine_context();
    context.index_hints = super::query_settings::of(ctx, || Explain::Find(Box::new(find.clone())))?;
    let batch = ctx.shared.engine.find(&context, &find)?;
    write_batch_at(reply, "firstBatch", &batch, ctx.snapshot_time())
}
