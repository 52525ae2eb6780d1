//! `listCommands`: the table.

use super::{Command, Run, TABLE};
use crate::auth::Rights;

/// The command.
pub(crate) static COMMAND: Command = Command {
    name: "listCommands",
    help: "lists the commands",
    ignores_unknown_fields: true,
    rights: Rights::Anyone,
    run: Run::Now(|ctx, reply| {
        super::diagnostic::NoArguments::parse(ctx)?;
        reply.begin("commands");
        for command in TABLE {
            reply.begin(command.name);
            reply.put("help", command.help);
            reply.put("requiresAuth", !matches!(command.rights, Rights::Anyone));
            reply.put("secondaryOk", true);
            reply.put("adminOnly", command.admin_only);
            reply.put_strings("apiVersions", command.stable_api.then_some("1"));
            reply.put_strings("deprecatedApiVersions", []);
            reply.end();
        }
        reply.end();
        Ok(())
    }),
    ..Command::DEFAULT
};
