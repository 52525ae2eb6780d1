//! `top`: how much each collection is used.

use super::{Command, Context, Run};
use crate::auth::{Action, Rights};
use crate::bson::Writer;
use crate::usage::KINDS;
use engine::Result;

/// The command.
pub(crate) static COMMAND: Command = Command {
    name: "top",
    help: "says how much each collection is used",
    ignores_unknown_fields: true,
    admin_only: true,
    rights: Rights::Cluster(Action::Top),
    run: Run::Now(run),
    ..Command::DEFAULT
};

fn run(ctx: &mut Context<'_>, reply: &mut Writer) -> Result<()> {
    super::diagnostic::NoArguments::parse(ctx)?;
    reply.begin("totals");
    reply.put("note", "all times in microseconds");
    for (name, counters) in ctx.shared.usage.all() {
        reply.begin(&name);
        for (kind, label) in KINDS {
            let (count, time_us) = counters.of(kind);
            reply.begin(label);
            reply.put("time", time_us as i64);
            super::documents::put_count(reply, "count", count);
            reply.end();
        }
        reply.end();
    }
    reply.end();
    Ok(())
}
