//! `serverStatus`: counters and sizes.

use super::{Command, Context, Run};
use crate::auth::{Action, Rights};
use crate::bson::Writer;
use crate::state::Metrics;
use engine::Result;
use std::sync::atomic::{AtomicU64, Ordering};

/// The command.
pub(crate) static COMMAND: Command = Command {
    name: "serverStatus",
    help: "returns counters and sizes of the server",
    rights: Rights::Cluster(Action::ServerStatus),
    run: Run::Now(run),
    ..Command::DEFAULT
};

fn get(counter: &AtomicU64) -> i64 {
    counter.load(Ordering::Relaxed) as i64
}

fn run(ctx: &mut Context<'_>, reply: &mut Writer) -> Result<()> {
    let shared = ctx.shared;
    let uptime = shared.started.elapsed();
    reply.put("host", super::host_info::host_name().as_str());
    reply.put("version", super::diagnostic::VERSION);
    reply.put("process", "sheaf");
    reply.put("pid", i64::from(std::process::id()));
    reply.put("uptime", uptime.as_secs_f64());
    reply.put("uptimeMillis", uptime.as_millis() as i64);
    reply.put("uptimeEstimate", uptime.as_secs() as i64);
    reply.put("localTime", bson::DateTime::now());
    write_connections(ctx, reply);
    write_network(&shared.metrics, reply);
    write_opcounters(&shared.metrics, reply);
    reply.begin("asserts");
    for (name, value) in [("regular", 0), ("warning", 0), ("msg", 0), ("user", get(&shared.metrics.asserts_user))] {
        reply.put(name, value as i32);
    }
    reply.end();
    reply.begin("logicalSessionRecordCache");
    reply.put("activeSessionsCount", shared.sessions.count() as i32);
    reply.end();
    reply.begin("repl");
    let address = super::hello::own_address(ctx);
    reply.put_strings("hosts", [address.as_str()]);
    reply.put("setName", shared.config.set_name.as_str());
    reply.put("isWritablePrimary", true);
    reply.put("secondary", false);
    reply.put("primary", address.as_str());
    reply.put("me", address.as_str());
    reply.end();
    write_security(&shared.metrics, reply);
    write_memory(reply);
    reply.begin("storageEngine");
    reply.put("name", "sheaf");
    reply.put("supportsCommittedReads", true);
    reply.put("persistent", true);
    reply.end();
    Ok(())
}

fn write_connections(ctx: &Context<'_>, reply: &mut Writer) {
    let connections = ctx.shared.connections();
    let active = connections.iter().filter(|info| info.operation.lock().is_some()).count();
    let limit = ctx.shared.config.max_connections;
    reply.begin("connections");
    reply.put("current", connections.len() as i32);
    reply.put("available", limit.saturating_sub(connections.len()) as i32);
    reply.put("totalCreated", get(&ctx.shared.metrics.connections_created));
    reply.put("rejected", get(&ctx.shared.metrics.connections_rejected));
    reply.put("active", active as i32);
    reply.end();
}

fn write_network(metrics: &Metrics, reply: &mut Writer) {
    reply.begin("network");
    reply.put("bytesIn", get(&metrics.bytes_in));
    reply.put("bytesOut", get(&metrics.bytes_out));
    reply.put("numRequests", get(&metrics.requests));
    reply.end();
}

fn write_opcounters(metrics: &Metrics, reply: &mut Writer) {
    reply.begin("opcounters");
    reply.put("insert", get(&metrics.insert));
    reply.put("query", get(&metrics.query));
    reply.put("update", get(&metrics.update));
    reply.put("delete", get(&metrics.delete));
    reply.put("getmore", get(&metrics.getmore));
    reply.put("command", get(&metrics.command));
    reply.end();
}

fn write_security(metrics: &Metrics, reply: &mut Writer) {
    reply.begin("security");
    reply.begin("authentication");
    reply.begin("mechanisms");
    for (name, received, successful) in [
        ("SCRAM-SHA-1", &metrics.scram_sha_1_received, &metrics.scram_sha_1_successful),
        ("SCRAM-SHA-256", &metrics.scram_sha_256_received, &metrics.scram_sha_256_successful),
    ] {
        reply.begin(name);
        reply.begin("authenticate");
        reply.put("received", get(received));
        reply.put("successful", get(successful));
        reply.end();
        reply.end();
    }
    reply.end();
    reply.end();
    reply.end();
}

/// Resident and virtual memory in MiB, as the kernel says.
fn write_memory(reply: &mut Writer) {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let megabytes = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|rest| rest.split_whitespace().next()?.parse::<i64>().ok())
            .map_or(0, |kilobytes| kilobytes / 1024)
    };
    reply.begin("mem");
    reply.put("bits", usize::BITS as i32);
    reply.put("resident", megabytes("VmRSS:") as i32);
    reply.put("virtual", megabytes("VmSize:") as i32);
    reply.put("supported", true);
    reply.end();
}
