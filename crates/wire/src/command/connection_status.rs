//! `connectionStatus`: who is logged in on this connection, with which roles.

use super::{Command, Flag, Run, arguments};
use crate::auth::{self, Rights};
use bson::raw::RawBinaryRef;
use bson::spec::BinarySubtype;

arguments! {
    struct ConnectionStatus<'a> {
        show_privileges: Flag = "showPrivileges",
    }
}

/// The command.
pub(crate) static COMMAND: Command = Command {
    name: "connectionStatus",
    help: "says who is logged in on this connection",
    stable_api: true,
    rights: Rights::Anyone,
    run: Run::Now(|ctx, reply| {
        let arguments = ConnectionStatus::parse(ctx)?;
        auth::write_status(ctx, arguments.show_privileges.0, reply);
        let uuid = ctx.client.info.uuid;
        reply.put("uuid", RawBinaryRef { subtype: BinarySubtype::Uuid, bytes: &uuid });
        Ok(())
    }),
    ..Command::DEFAULT
};
