//! `fsync`, `getDefaultRWConcern`, `setDefaultRWConcern`.

use super::{Command, Context, Flag, Run, arguments};
use crate::auth::{Action, Rights};
use crate::bson::Writer;
use bson::raw::RawBsonRef;
use engine::{Code, Error, Result};

/// `fsync`.
pub(crate) static FSYNC: Command = Command {
    name: "fsync",
    help: "accepted: every acknowledged write is flushed already",
    admin_only: true,
    rights: Rights::Cluster(Action::Fsync),
    run: Run::Now(fsync),
    ..Command::DEFAULT
};

/// `getDefaultRWConcern`.
pub(crate) static DEFAULT_CONCERN: Command = Command {
    name: "getDefaultRWConcern",
    help: "says which read and write concern holds where none is given",
    admin_only: true,
    rights: Rights::Cluster(Action::GetDefaultRwConcern),
    run: Run::Now(default_concern),
    ..Command::DEFAULT
};

arguments! {
    struct FsyncArguments<'a> {
        lock: Flag = "lock",
        asynchronous: Option<RawBsonRef<'a>> = "async",
        timeout: Option<i64> = "fsyncLockAcquisitionTimeoutMillis",
    }
}

arguments! {
    struct DefaultArguments<'a> {
        in_memory: Option<bool> = "inMemory",
    }
}

fn fsync(ctx: &mut Context<'_>, reply: &mut Writer) -> Result<()> {
    if FsyncArguments::parse(ctx)?.lock.0 {
        let message = "fsync with lock is not supported: a backup needs no stop of writes here";
        return Err(Error::new(Code::COMMAND_NOT_SUPPORTED, message));
    }
    reply.put("numFiles", 1);
    Ok(())
}

fn default_concern(ctx: &mut Context<'_>, reply: &mut Writer) -> Result<()> {
    DefaultArguments::parse(ctx)?;
    reply.begin("defaultReadConcern");
    reply.put("level", "local");
    reply.end();
    reply.begin("defaultWriteConcern");
    reply.put("w", "majority");
    reply.put("wtimeout", 0);
    reply.end();
    reply.put("defaultReadConcernSource", "implicit");
    reply.put("defaultWriteConcernSource", "implicit");
    reply.put("localUpdateWallClockTime", bson::DateTime::now());
    Ok(())
}
