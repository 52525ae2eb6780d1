//! `dbHash`: digests of a database's collections.

use super::{Command, Context, Run, arguments};
use crate::auth::{Action, Rights};
use crate::bson::Writer;
use bson::raw::{RawBinaryRef, RawBsonRef};
use bson::spec::BinarySubtype;
use engine::catalog::Collection;
use engine::series::BUCKETS_PREFIX;
use engine::{Error, Result};

/// The command.
pub(crate) static COMMAND: Command = Command {
    name: "dbHash",
    aliases: &["dbhash"],
    help: "returns digests of a database's collections",
    ignores_unknown_fields: true,
    reads: true,
    rights: Rights::Database(Action::DbHash),
    run: Run::Now(run),
    ..Command::DEFAULT
};

arguments! {
    struct Arguments<'a> {
        collections: Option<RawBsonRef<'a>> = "collections",
    }
}

/// The names in `collections`; of another type than an array it means nothing.
fn names<'a>(collections: Option<RawBsonRef<'a>>) -> Result<Vec<&'a str>> {
    let Some(RawBsonRef::Array(names)) = collections else { return Ok(Vec::new()) };
    let mut wanted = Vec::new();
    for name in names {
        let name = name?.as_str().ok_or_else(|| Error::bad_value("collections entries have to be strings"))?;
        wanted.push(name);
    }
    Ok(wanted)
}

/// The name that a digest stands under: of a time series, that of its buckets.
fn shown(collection: &Collection) -> String {
    let name = &collection.namespace.collection;
    if collection.settings.series.is_some() { format!("{BUCKETS_PREFIX}{name}") } else { name.clone() }
}

fn run(ctx: &mut Context<'_>, reply: &mut Writer) -> Result<()> {
    let wanted = names(Arguments::parse(ctx)?.collections)?;
    let picks = |name: &str| wanted.is_empty() || wanted.contains(&name);
    let digest = ctx.shared.engine.digest(&ctx.engine_context(), ctx.database(), picks)?;
    reply.put("host", super::hello::own_address(ctx).as_str());
    reply.begin("collections");
    for (collection, md5) in &digest.collections {
        reply.put(&shown(collection), md5.as_str());
    }
    reply.end();
    let capped = digest.collections.iter().filter(|(collection, _)| collection.settings.capped.is_some());
    reply.put_strings("capped", capped.map(|(collection, _)| collection.namespace.collection.as_str()));
    reply.begin("uuids");
    for (collection, _) in &digest.collections {
        let uuid = RawBinaryRef { subtype: BinarySubtype::Uuid, bytes: &collection.uuid };
        reply.put(&shown(collection), uuid);
    }
    reply.end();
    reply.put("md5", digest.whole.as_str());
    reply.put("timeMillis", ctx.operation.started.elapsed().as_millis() as i64);
    Ok(())
}
