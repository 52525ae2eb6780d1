//! `setUserWriteBlockMode`: refuses writes of users, as while a deployment is copied to another one.
//!
//! Reads go on, and so does what the server keeps for itself in `admin`, `config` and `local`. The mode outlives a restart.

use super::{Command, Context, Later, Path, Run, arguments, kept};
use crate::auth::{Action, Rights};
use crate::bson::Writer;
use bson::rawdoc;
use engine::{Code, Engine, Error, Result};

/// The command.
pub(crate) static COMMAND: Command = Command {
    name: "setUserWriteBlockMode",
    help: "refuses writes of users, or allows them again",
    admin_only: true,
    rights: Rights::Cluster(Action::SetUserWriteBlockMode),
    run: Run::Later(run),
    ..Command::DEFAULT
};

arguments! {
    struct Arguments<'a> {
        global: bool = "global",
        reason: Option<&'a str> = "reason",
    }
}

/// Where the mode is kept.
const COLLECTION: &str = "user_writes_critical_sections";
const ID: &str = "global";

/// Why writes may be refused; the first is meant where none is given.
const REASONS: &[&str] = &["Unspecified", "ClusterToClusterMigrationInProgress", "DiskUseThresholdExceeded"];

/// The commands that are refused, `aggregate` apart, which is if it writes.
const WRITES: &[&str] = &[
    "bulkWrite",
    "cloneCollectionAsCapped",
    "collMod",
    "convertToCapped",
    "create",
    "createIndexes",
    "delete",
    "drop",
    "dropDatabase",
    "dropIndexes",
    "findAndModify",
    "insert",
    "renameCollection",
    "update",
];

/// The reason for which writes are refused, as the last run left it.
///
/// # Errors
/// A failing storage.
pub(crate) fn load(engine: &Engine) -> Result<Option<&'static str>> {
    let kept = kept::read(engine, COLLECTION, ID)?;
    let reason = kept.as_ref().and_then(|kept| kept.get_str("reason").ok());
    Ok(REASONS.iter().copied().find(|known| Some(*known) == reason))
}

/// Refuses a write of a user while writes are blocked.
pub(super) fn check(ctx: &Context<'_>) -> Result<()> {
    let Some(reason) = *ctx.shared.write_block.read() else { return Ok(()) };
    let spans = matches!(ctx.command.name, "bulkWrite" | "renameCollection");
    let is_own = matches!(ctx.database(), "admin" | "config" | "local") && !spans;
    let writes = WRITES.contains(&ctx.command.name) || ctx.command.name == "aggregate" && stage_writes(ctx);
    if is_own || !writes {
        return Ok(());
    }
    Err(Error::new(Code::USER_WRITES_BLOCKED, format!("User writes blocked, reason: {reason}")))
}

fn stage_writes(ctx: &Context<'_>) -> bool {
    let Ok(pipeline) = ctx.body().get_array("pipeline") else { return false };
    let last = pipeline.into_iter().last().and_then(|stage| stage.ok()?.as_document());
    last.and_then(|stage| stage.iter().next()?.ok()).is_some_and(|field| matches!(field.0.as_str(), "$out" | "$merge"))
}

fn run<'x>(ctx: &'x mut Context<'_>, _reply: &'x mut Writer) -> Later<'x> {
    Box::pin(async move {
        let arguments = Arguments::parse(ctx)?;
        let given = arguments.reason.unwrap_or(REASONS[0]);
        let Some(reason) = REASONS.iter().copied().find(|known| *known == given) else {
            let path = Path { parent: "setUserWriteBlockMode", field: "reason" };
            return Err(Error::bad_value(format!(
                "Enumeration value '{given}' for field '{path}' is not a valid value."
            )));
        };
        let current = *ctx.shared.write_block.read();
        if current.is_some_and(|current| current != reason) {
            let message = format!("writes are blocked for another reason than {reason}: give that one");
            return Err(Error::new(Code::ILLEGAL_OPERATION, message));
        }
        let new = arguments.global.then_some(reason);
        let document = match new {
            Some(reason) => rawdoc! { "_id": ID, "blockUserWrites": true, "reason": reason },
            None => rawdoc! { "_id": ID, "blockUserWrites": false },
        };
        kept::replace(&ctx.shared.engine, COLLECTION, ID, document)?.durable().await?;
        *ctx.shared.write_block.write() = new;
        Ok(())
    })
}
