//! Small commands that say something about the server: `buildInfo`, `features`, `getCmdLineOpts`, `whatsmyuri`.

use super::{Command, Context, Run, arguments};
use crate::auth::{Action, Rights};
use crate::bson::Writer;
use crate::frame::MAX_BSON_BYTES;
use engine::Result;

/// The version of MongoDB whose behaviour we have.
pub(crate) const VERSION: &str = "8.0.4";
pub(crate) const VERSION_PARTS: [i32; 4] = [8, 0, 4, 0];

arguments! {
    /// A command that takes only what every command takes.
    struct NoArguments<'a> {}
}

/// `buildInfo`.
pub(crate) static BUILD_INFO: Command = Command {
    name: "buildInfo",
    aliases: &["buildinfo"],
    help: "says which version this is",
    rights: Rights::Anyone,
    run: Run::Now(build_info),
    ..Command::DEFAULT
};

/// `features`.
pub(crate) static FEATURES: Command = Command {
    name: "features",
    help: "says which build features there are",
    rights: Rights::Anyone,
    run: Run::Now(|ctx, reply| {
        reply.put("js", false);
        reply.put("oidMachine", i32::from(ctx.shared.process_id.bytes()[4]));
        Ok(())
    }),
    ..Command::DEFAULT
};

/// `getCmdLineOpts`.
pub(crate) static GET_CMD_LINE_OPTS: Command = Command {
    name: "getCmdLineOpts",
    help: "says how the server was started",
    admin_only: true,
    rights: Rights::Cluster(Action::GetCmdLineOpts),
    run: Run::Now(command_line),
    ..Command::DEFAULT
};

/// `lockInfo`.
pub(crate) static LOCK_INFO: Command = Command {
    name: "lockInfo",
    help: "lists locks: there are none that are held from one command to the next",
    admin_only: true,
    rights: Rights::Cluster(Action::ServerStatus),
    run: Run::Now(|ctx, reply| {
        NoArguments::parse(ctx)?;
        reply.put_strings("lockInfo", []);
        Ok(())
    }),
    ..Command::DEFAULT
};

/// `connPoolStats`.
pub(crate) static CONN_POOL_STATS: Command = Command {
    name: "connPoolStats",
    help: "counts outgoing connections: there are none",
    ignores_unknown_fields: true,
    rights: Rights::Cluster(Action::ConnPoolStats),
    run: Run::Now(|ctx, reply| {
        reply.put("numClientConnections", ctx.shared.connection_count() as i32);
        reply.put("numAScopedConnections", 0);
        for name in ["totalInUse", "totalAvailable", "totalLeased", "totalCreated", "totalRefreshing"] {
            reply.put(name, 0);
        }
        for name in ["pools", "hosts", "replicaSets"] {
            reply.begin(name);
            reply.end();
        }
        Ok(())
    }),
    ..Command::DEFAULT
};

/// `whatsmyuri`.
pub(crate) static WHATS_MY_URI: Command = Command {
    name: "whatsmyuri",
    help: "says which address the client has, seen from here",
    rights: Rights::Anyone,
    run: Run::Now(|ctx, reply| {
        reply.put("you", ctx.client.info.remote.as_str());
        Ok(())
    }),
    ..Command::DEFAULT
};

fn build_info(ctx: &mut Context<'_>, reply: &mut Writer) -> Result<()> {
    NoArguments::parse(ctx)?;
    reply.put("version", VERSION);
    reply.put("gitVersion", concat!("sheaf-", env!("CARGO_PKG_VERSION")));
    reply.put_strings("modules", []);
    reply.put("allocator", "system");
    reply.put("javascriptEngine", "none");
    reply.put("sysInfo", "deprecated");
    reply.begin_array("versionArray");
    VERSION_PARTS.into_iter().for_each(|part| reply.push(part));
    reply.end();
    reply.begin("openssl");
    reply.put("running", "none (rustls)");
    reply.put("compiled", "none (rustls)");
    reply.end();
    reply.begin("buildEnvironment");
    reply.put("target_arch", std::env::consts::ARCH);
    reply.put("target_os", std::env::consts::OS);
    reply.end();
    reply.put("bits", usize::BITS as i32);
    reply.put("debug", cfg!(debug_assertions));
    reply.put("maxBsonObjectSize", MAX_BSON_BYTES as i32);
    reply.put_strings("storageEngines", ["sheaf"]);
    reply.put("sheafVersion", env!("CARGO_PKG_VERSION"));
    Ok(())
}

fn command_line(ctx: &mut Context<'_>, reply: &mut Writer) -> Result<()> {
    NoArguments::parse(ctx)?;
    let config = &ctx.shared.config;
    reply.put_strings("argv", config.arguments.iter().map(String::as_str));
    reply.begin("parsed");
    reply.begin("net");
    reply.put("maxIncomingConnections", config.max_connections as i32);
    reply.end();
    reply.begin("replication");
    reply.put("replSet", config.set_name.as_str());
    reply.end();
    reply.begin("security");
    reply.put("authorization", if ctx.shared.requires_auth { "enabled" } else { "disabled" });
    reply.end();
    reply.end();
    Ok(())
}
