//! `getDefaultRWConcern` and `setDefaultRWConcern`: what holds where a command gives no concern.
//!
//! All levels mean the same here (see `concern`), so the defaults change nothing; they are kept and told, in
//! `config.settings`, where MongoDB keeps them too.

use super::concern::{WriteConcern, level_of};
use super::{Command, Context, Later, Run, arguments};
use crate::auth::{Action, Rights};
use crate::bson::Writer;
use bson::{RawDocument, RawDocumentBuf, rawdoc};
use engine::{Code, Error, Result};

/// `getDefaultRWConcern`.
pub(crate) static GET: Command = Command {
    name: "getDefaultRWConcern",
    help: "says which read and write concern holds where none is given",
    admin_only: true,
    rights: Rights::Cluster(Action::GetDefaultRwConcern),
    run: Run::Now(get),
    ..Command::DEFAULT
};

/// `setDefaultRWConcern`.
pub(crate) static SET: Command = Command {
    name: "setDefaultRWConcern",
    help: "sets which read and write concern holds where none is given",
    admin_only: true,
    writes: true,
    rights: Rights::Cluster(Action::SetDefaultRwConcern),
    run: Run::Later(set),
    ..Command::DEFAULT
};

arguments! {
    struct GetArguments<'a> {
        in_memory: Option<bool> = "inMemory",
    }
}

arguments! {
    struct SetArguments<'a> {
        read: Option<&'a RawDocument> = "defaultReadConcern",
        write: Option<&'a RawDocument> = "defaultWriteConcern",
    }
}

/// Where the defaults are kept.
const COLLECTION: &str = "settings";
const ID: &str = "ReadWriteConcernDefaults";

/// The defaults that were set.
fn kept(ctx: &Context<'_>) -> Result<RawDocumentBuf> {
    Ok(super::kept::read(&ctx.shared.engine, COLLECTION, ID)?.unwrap_or_default())
}

fn get(ctx: &mut Context<'_>, reply: &mut Writer) -> Result<()> {
    let in_memory = GetArguments::parse(ctx)?.in_memory.unwrap_or(false);
    let kept = kept(ctx)?;
    write(&kept, reply);
    if in_memory {
        reply.put("inMemory", true);
    }
    Ok(())
}

/// The defaults that hold, with where they come from.
fn write(kept: &RawDocument, reply: &mut Writer) {
    let (read, write) = (kept.get_document("defaultReadConcern"), kept.get_document("defaultWriteConcern"));
    let source = |is_set: bool| if is_set { "global" } else { "implicit" };
    match &read {
        Ok(concern) => reply.put("defaultReadConcern", *concern),
        Err(_) => reply.put("defaultReadConcern", &rawdoc! { "level": "local" }),
    }
    match &write {
        Ok(concern) => reply.put("defaultWriteConcern", *concern),
        Err(_) => reply.put("defaultWriteConcern", &rawdoc! { "w": "majority", "wtimeout": 0 }),
    }
    reply.put_some("updateOpTime", kept.get("updateOpTime").ok().flatten());
    reply.put_some("updateWallClockTime", kept.get("updateWallClockTime").ok().flatten());
    reply.put("defaultReadConcernSource", source(read.is_ok()));
    reply.put("defaultWriteConcernSource", source(write.is_ok()));
    reply.put("localUpdateWallClockTime", bson::DateTime::now());
}

/// A read concern that may be a default; none to unset it.
fn read_default(concern: &RawDocument) -> Result<Option<RawDocumentBuf>> {
    let Some(level) = level_of(concern)? else { return Ok(None) };
    if !matches!(level, "local" | "available" | "majority") {
        return Err(Error::bad_value(format!("the read concern level '{level}' can't be a default")));
    }
    Ok(Some(rawdoc! { "level": level }))
}

/// A write concern that may be a default; it can't be unset.
fn write_default(concern: &RawDocument, is_set: bool) -> Result<Option<RawDocumentBuf>> {
    if concern.is_empty() {
        let message = "The global default write concern cannot be unset once it is set.";
        return if is_set { Err(Error::new(Code::ILLEGAL_OPERATION, message)) } else { Ok(None) };
    }
    let parsed = WriteConcern::parse(concern)?;
    if parsed.unacknowledged || concern.get("w")?.is_none() {
        return Err(Error::bad_value("a default write concern needs a w that acknowledges writes"));
    }
    if let Some(problem) = parsed.into_problem() {
        return Err(problem);
    }
    let mut full = concern.to_owned();
    if concern.get("wtimeout")?.is_none() {
        full.append(bson::raw::cstr!("wtimeout"), 0);
    }
    Ok(Some(full))
}

fn set<'x>(ctx: &'x mut Context<'_>, reply: &'x mut Writer) -> Later<'x> {
    Box::pin(async move {
        let arguments = SetArguments::parse(ctx)?;
        if arguments.read.is_none() && arguments.write.is_none() {
            let message =
                "At least one of the \"defaultReadConcern\" or \"defaultWriteConcern\" fields must be present";
            return Err(Error::bad_value(message));
        }
        let old = kept(ctx)?;
        let own = |name: &str| old.get_document(name).ok().map(ToOwned::to_owned);
        let read = arguments.read.map_or_else(|| Ok(own("defaultReadConcern")), read_default)?;
        let was_set = own("defaultWriteConcern").is_some();
        let write_concern = match arguments.write {
            Some(concern) => write_default(concern, was_set)?,
            None => own("defaultWriteConcern"),
        };
        let mut new = Writer::new();
        new.put("_id", ID);
        new.put_some("defaultReadConcern", read.as_ref());
        new.put_some("defaultWriteConcern", write_concern.as_ref());
        let time = ctx.shared.cluster_time();
        new.put("updateOpTime", bson::Timestamp { increment: time.increment + 1, ..time });
        new.put("updateWallClockTime", bson::DateTime::now());
        let new = new.finish_document();
        super::kept::replace(&ctx.shared.engine, COLLECTION, ID, new.clone())?.durable().await?;
        write(&new, reply);
        Ok(())
    })
}
