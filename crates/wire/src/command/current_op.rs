//! `currentOp`: what runs now.
//!
//! `$all` shows idle connections too, `$ownOps` the caller's operations only; the other fields are a filter.

use super::{Command, Context, Run};
use crate::auth::{Action, Rights};
use crate::bson::Writer;
use crate::reports::{Shown, Viewer};
use bson::RawDocumentBuf;
use engine::Result;

/// The command.
pub(crate) static COMMAND: Command = Command {
    name: "currentOp",
    help: "lists the operations that run now",
    admin_only: true,
    rights: Rights::Cluster(Action::Inprog),
    run: Run::Now(run),
    ..Command::DEFAULT
};

/// Who the command's caller is, for reports.
pub(super) fn viewer(ctx: &Context<'_>) -> Viewer {
    Viewer {
        shared: ctx.shared.clone(),
        user: ctx.client.login.user().cloned(),
        digest: ctx.client.login.digest(),
        address: super::hello::own_address(ctx),
    }
}

fn run(ctx: &mut Context<'_>, reply: &mut Writer) -> Result<()> {
    let truthy = |name| {
        let value = ctx.body().get(name).ok().flatten();
        value.is_some_and(|value| {
            value.as_bool() == Some(true) || super::arguments::number(value).is_some_and(|n| n != 0)
        })
    };
    let all = truthy("$all");
    let shown = Shown { all_users: !truthy("$ownOps"), idle_connections: all, idle_cursors: false, idle_sessions: all };
    let rows = viewer(ctx).operations(shown);
    let rows = ctx.shared.engine.matching(&filter(ctx)?, rows)?;
    reply.begin_array("inprog");
    rows.iter().for_each(|row| reply.push(row));
    reply.end();
    Ok(())
}

/// The command's fields that are no options.
fn filter(ctx: &Context<'_>) -> Result<RawDocumentBuf> {
    let mut filter = Writer::new();
    for field in ctx.body().iter().skip(1) {
        let (name, value) = field?;
        if !matches!(name.as_str(), "$all" | "$ownOps" | "$truncateOps") && !super::arguments::is_generic(name.as_str())
        {
            filter.put(name.as_str(), value);
        }
    }
    Ok(filter.finish_document())
}
