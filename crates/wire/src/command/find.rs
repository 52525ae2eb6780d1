//! `find`: documents that match.

use super::documents::{Hint, to_owned, write_batch};
use super::{Command, Context, Counter, Flag, Path, Run, arguments};
use crate::auth::{Action, Rights};
use crate::bson::Writer;
use bson::RawDocument;
use bson::raw::RawBsonRef;
use engine::operation::{Find, Query};
use engine::{Error, Result, Tailing};

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
        uuid: Option<RawBsonRef<'a>> = "collectionUUID",
        metrics: Flag = "includeQueryStatsMetrics",
        query_settings: Option<&'a RawDocument> = "querySettings",
        raw_data: Flag = "rawData",
    }
}

/// A `find` from a command's arguments.
fn find(ctx: &Context<'_>) -> Result<Find> {
    let namespace = ctx.collection()?;
    let arguments = Arguments::parse(ctx)?;
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
    Ok(Find {
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
    })
}

fn run(ctx: &mut Context<'_>, reply: &mut Writer) -> Result<()> {
    let find = find(ctx)?;
    let batch = ctx.shared.engine.find(&ctx.engine_context(), &find)?;
    write_batch(reply, "firstBatch", &batch)
}
