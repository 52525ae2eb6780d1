//! `configureFailPoint`: faults on purpose, where the server was started with `--enable-test-commands`.

use super::{Command, Context, Run, arguments};
use crate::auth::{Action, Rights};
use crate::bson::Writer;
use bson::RawDocument;
use bson::raw::RawBsonRef;
use engine::{Code, Error, Result};

/// The command.
pub(crate) static COMMAND: Command = Command {
    name: "configureFailPoint",
    help: "makes commands fail on purpose, for drivers' tests; only with --enable-test-commands",
    ignores_unknown_fields: true,
    admin_only: true,
    rights: Rights::Cluster(Action::SetParameter),
    run: Run::Now(run),
    ..Command::DEFAULT
};

arguments! {
    struct Arguments<'a> {
        mode: RawBsonRef<'a> = "mode",
        data: Option<&'a RawDocument> = "data",
    }
}

fn run(ctx: &mut Context<'_>, reply: &mut Writer) -> Result<()> {
    let Some(points) = &ctx.shared.fail_points else {
        let message = "configureFailPoint is there only if the server was started with --enable-test-commands";
        return Err(Error::new(Code::COMMAND_NOT_FOUND, message));
    };
    let arguments = Arguments::parse(ctx)?;
    let name = ctx.value()?.as_str().ok_or_else(|| Error::bad_value("a fail point's name is a string"))?;
    let count = points.configure(name, arguments.mode, arguments.data)?;
    reply.put("count", count);
    Ok(())
}
