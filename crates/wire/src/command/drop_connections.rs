//! `dropConnections`: closes outgoing connections. There are none, so only the arguments are checked.

use super::{Command, Context, Path, Run, arguments};
use crate::auth::{Action, Rights};
use bson::RawArray;
use engine::{Error, Result};

/// The command.
pub(crate) static COMMAND: Command = Command {
    name: "dropConnections",
    help: "closes outgoing connections: there are none",
    admin_only: true,
    rights: Rights::Cluster(Action::ConnPoolStats),
    run: Run::Now(|ctx, _| run(ctx)),
    ..Command::DEFAULT
};

arguments! {
    struct Arguments<'a> {
        hosts: &'a RawArray = "hostAndPort",
    }
}

fn run(ctx: &mut Context<'_>) -> Result<()> {
    for (index, host) in Arguments::parse(ctx)?.hosts.into_iter().enumerate() {
        let host = host?;
        if super::arguments::is_null(host) {
            continue;
        }
        let field = format!("hostAndPort.{index}");
        let path = Path { parent: "dropConnections", field: &field };
        check_address(host.as_str().ok_or_else(|| path.wrong_type(host, &["string"]))?)?;
    }
    Ok(())
}

/// Refuses what is no host with an optional port; an IPv6 address stands in brackets.
fn check_address(address: &str) -> Result<()> {
    let wrong = || Error::failed_to_parse(format!("'{address}' is no host and port"));
    let (host, port) = match address.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, "")) => (host, None),
        Some((host, rest)) => (host, Some(rest.strip_prefix(':').ok_or_else(wrong)?)),
        None => match address.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (address, None),
        },
    };
    let port_is_fine = port.is_none_or(|port| port.parse::<u16>().is_ok_and(|port| port > 0));
    if host.is_empty() || !port_is_fine { Err(wrong()) } else { Ok(()) }
}
