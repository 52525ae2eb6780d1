//! `distinct`: the different values of a field.

use super::arguments::Uuid;
use super::documents::{Hint, to_owned};
use super::{Command, Context, Flag, Run, arguments};
use crate::auth::{Action, Rights};
use crate::bson::Writer;
use bson::RawDocument;
use engine::operation::{Distinct, Explain, Query};
use engine::{Error, Result};

/// The command.
pub(crate) static COMMAND: Command = Command {
    name: "distinct",
    help: "returns the different values of a field",
    stable_api: false,
    in_transaction: true,
    reads: true,
    rights: Rights::Collection(Action::Find),
    run: Run::Now(run),
    ..Command::DEFAULT
};

arguments! {
    struct Arguments<'a> {
        key: &'a str = "key",
        query: Option<&'a RawDocument> = "query",
        hint: Option<Hint<'a>> = "hint",
        collation: Option<&'a RawDocument> = "collation",
        uuid: Option<Uuid<'a>> = "collectionUUID",
        raw_data: Flag = "rawData",
    }
}

/// A `distinct` from a command's arguments.
pub(super) fn distinct(ctx: &Context<'_>) -> Result<Distinct> {
    let namespace = ctx.collection()?;
    let arguments = Arguments::parse(ctx)?;
    ctx.check_uuid(&namespace, arguments.uuid)?;
    if arguments.key.contains('\0') {
        return Err(Error::new(engine::Code(31032), "the key of distinct can't contain a null byte"));
    }
    let query = Query {
        filter: to_owned(arguments.query).unwrap_or_default(),
        hint: arguments.hint.and_then(Hint::to_owned),
        collation: to_owned(arguments.collation),
        ..Query::default()
    };
    Ok(Distinct { namespace, key: arguments.key.to_owned(), query })
}

fn run(ctx: &mut Context<'_>, reply: &mut Writer) -> Result<()> {
    let distinct = distinct(ctx)?;
    let mut context = ctx.engine_context();
    context.index_hints = super::query_settings::of(ctx, || Explain::Distinct(distinct.clone()))?;
    let values = ctx.shared.engine.distinct(&context, &distinct)?;
    reply.put("values", &values);
    reply.put_some("atClusterTime", ctx.snapshot_time());
    Ok(())
}
