//! `fsync`, `fsyncUnlock`.

use super::{Command, Context, Flag, Run, arguments};
use crate::auth::{Action, Rights};
use crate::bson::Writer;
use bson::raw::RawBsonRef;
use engine::{Code, Error, Result};

/// `fsync`.
pub(crate) static FSYNC: Command = Command {
    name: "fsync",
    help: "folds the log into the tables: a checkpoint; every acknowledged write is flushed already",
    admin_only: true,
    rights: Rights::Cluster(Action::Fsync),
    run: Run::Now(fsync),
    ..Command::DEFAULT
};

/// `fsyncUnlock`.
pub(crate) static FSYNC_UNLOCK: Command = Command {
    name: "fsyncUnlock",
    help: "refused: writes are never locked",
    ignores_unknown_fields: true,
    admin_only: true,
    rights: Rights::Cluster(Action::Fsync),
    run: Run::Now(|_, _| Err(Error::new(Code::ILLEGAL_OPERATION, "fsyncUnlock called when not locked"))),
    ..Command::DEFAULT
};

arguments! {
    struct FsyncArguments<'a> {
        lock: Flag = "lock",
        asynchronous: Option<RawBsonRef<'a>> = "async",
        timeout: Option<i64> = "fsyncLockAcquisitionTimeoutMillis",
    }
}

fn fsync(ctx: &mut Context<'_>, reply: &mut Writer) -> Result<()> {
    if FsyncArguments::parse(ctx)?.lock.0 {
        let message = "fsync with lock is not supported: a backup needs no stop of writes here";
        return Err(Error::new(Code::COMMAND_NOT_SUPPORTED, message));
    }
    let engine = ctx.shared.engine.clone();
    ctx.engine_context().block(|| engine.storage().checkpoint())?;
    reply.put("numFiles", 1);
    Ok(())
}
