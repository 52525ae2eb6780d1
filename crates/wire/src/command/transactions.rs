//! `commitTransaction` and `abortTransaction`.

use super::{Command, Context, Later, Run, arguments};
use crate::bson::Writer;
use bson::RawDocument;
use engine::{Code, Error, Result};

/// `commitTransaction`.
pub(crate) static COMMIT: Command = Command {
    name: "commitTransaction",
    help: "makes a transaction's writes permanent",
    stable_api: true,
    admin_only: true,
    in_transaction: true,
    writes: true,
    run: Run::Later(commit),
    ..Command::DEFAULT
};

/// `abortTransaction`.
pub(crate) static ABORT: Command = Command {
    name: "abortTransaction",
    help: "drops a transaction's writes",
    stable_api: true,
    admin_only: true,
    in_transaction: true,
    writes: true,
    run: Run::Now(|ctx, _| {
        Arguments::parse(ctx)?;
        require_transaction(ctx)?;
        ctx.shared.engine.abort_transaction(&ctx.engine_context())
    }),
    ..Command::DEFAULT
};

arguments! {
    struct Arguments<'a> {
        recovery_token: Option<&'a RawDocument> = "recoveryToken",
    }
}

fn require_transaction(ctx: &Context<'_>) -> Result<()> {
    if ctx.generic.in_transaction {
        return Ok(());
    }
    let name = ctx.command.name;
    Err(Error::new(Code::COMMAND_FAILED, format!("{name} must be run within a transaction")))
}

fn commit<'x>(ctx: &'x mut Context<'_>, _reply: &'x mut Writer) -> Later<'x> {
    Box::pin(async move {
        Arguments::parse(ctx)?;
        require_transaction(ctx)?;
        ctx.shared.engine.commit_transaction(&ctx.engine_context())?.durable().await
    })
}
