//! `count`: how many documents match.

use super::arguments::{Field, Uuid, whole};
use super::documents::{Hint, put_count, to_owned};
use super::{Command, Context, Flag, Path, Run, arguments};
use crate::auth::{Action, Rights};
use crate::bson::Writer;
use bson::RawDocument;
use bson::raw::RawBsonRef;
use engine::operation::{Count, Query};
use engine::{Error, Result};

/// The command.
pub(crate) static COMMAND: Command = Command {
    name: "count",
    help: "counts documents that match",
    stable_api: true,
    reads: true,
    rights: Rights::Collection(Action::Find),
    run: Run::Now(run),
    ..Command::DEFAULT
};

arguments! {
    struct Arguments<'a> {
        query: Option<&'a RawDocument> = "query",
        limit: Option<Limit> = "limit",
        skip: Option<i64> = "skip",
        hint: Option<Hint<'a>> = "hint",
        collation: Option<&'a RawDocument> = "collation",
        fields: Option<RawBsonRef<'a>> = "fields",
        uuid: Option<Uuid<'a>> = "collectionUUID",
        raw_data: Flag = "rawData",
        mirrored: Flag = "mirrored",
    }
}

/// The most that is counted; a negative number is taken as a positive one.
#[derive(Clone, Copy)]
pub(crate) struct Limit(u64);

impl<'a> Field<'a> for Limit {
    const NULL_IS_MISSING: bool = false;

    fn from_value(path: Path<'_>, value: RawBsonRef<'a>) -> Result<Limit> {
        match whole(value, path.field)? {
            Some(i64::MIN) | None => Err(Error::bad_value("count value is not a valid number")),
            Some(limit) => Ok(Limit(limit.unsigned_abs())),
        }
    }
}

/// A `count` from a command's arguments.
pub(super) fn count(ctx: &Context<'_>) -> Result<Count> {
    let namespace = ctx.collection()?;
    let arguments = Arguments::parse(ctx)?;
    ctx.check_uuid(&namespace, arguments.uuid)?;
    let skip = Path { parent: "count", field: "skip" }.at_least(arguments.skip.unwrap_or(0), 0)? as u64;
    let query = Query {
        filter: to_owned(arguments.query).unwrap_or_default(),
        skip,
        limit: arguments.limit.unwrap_or(Limit(0)).0,
        hint: arguments.hint.and_then(Hint::to_owned),
        collation: to_owned(arguments.collation),
        ..Query::default()
    };
    Ok(Count { namespace, query })
}

fn run(ctx: &mut Context<'_>, reply: &mut Writer) -> Result<()> {
    let counted = ctx.shared.engine.count(&ctx.engine_context(), &count(ctx)?)?;
    put_count(reply, "n", counted);
    Ok(())
}
