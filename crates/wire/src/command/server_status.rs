//! `serverStatus`: counters and sizes, in sections that the command's fields turn on and off.

use super::{Command, Context, Run};
use crate::auth::{Action, Rights};
use crate::bson::Writer;
use bson::RawDocument;
use bson::raw::RawBsonRef;
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

/// What writes a section.
type Section = fn(&Context<'_>, &mut Writer) -> Result<()>;

/// The sections: their name, whether they are there unless turned off, and what writes them.
static SECTIONS: &[(&str, bool, Section)] = &[
    ("asserts", true, asserts),
    ("catalogStats", true, catalog),
    ("connections", true, connections),
    ("cursors", true, cursors),
    ("extra_info", true, extra),
    ("globalLock", true, global_lock),
    ("locks", true, |_, _| Ok(())),
    ("logicalSessionRecordCache", true, sessions),
    ("mem", true, memory),
    ("metrics", true, metrics),
    ("mirroredReads", false, |_, reply| {
        reply.put("seen", 0_i64);
        reply.put("sent", 0_i64);
        Ok(())
    }),
    ("network", true, network),
    ("opcounters", true, opcounters),
    ("opcountersRepl", true, |_, reply| {
        ["insert", "query", "update", "delete", "getmore", "command"].iter().for_each(|name| reply.put(name, 0_i64));
        Ok(())
    }),
    ("repl", true, replication),
    ("security", true, security),
    ("sheaf", true, sheaf),
    ("storageEngine", true, storage_engine),
    ("transactions", true, transactions),
];

fn get(counter: &AtomicU64) -> i64 {
    counter.load(Ordering::Relaxed) as i64
}

/// Whether a field turns its section on; none if it is not there.
fn toggle(body: &RawDocument, name: &str) -> Result<Option<bool>> {
    Ok(body.get(name)?.map(|value| match value {
        RawBsonRef::Boolean(value) => value,
        RawBsonRef::Null | RawBsonRef::Undefined => false,
        other => super::number(other) != Some(0),
    }))
}

fn run(ctx: &mut Context<'_>, reply: &mut Writer) -> Result<()> {
    let uptime = ctx.shared.started.elapsed();
    reply.put("host", super::host_info::host_name().as_str());
    reply.put("version", super::diagnostic::VERSION);
    // Tools look for this name to tell a server from a sharding router.
    reply.put("process", "mongod");
    reply.put("pid", i64::from(std::process::id()));
    reply.put("uptime", uptime.as_secs_f64());
    reply.put("uptimeMillis", uptime.as_millis() as i64);
    reply.put("uptimeEstimate", uptime.as_secs() as i64);
    reply.put("localTime", bson::DateTime::now());
    let all_off = toggle(ctx.body(), "none")? == Some(true);
    for (name, default, write) in SECTIONS {
        if toggle(ctx.body(), name)?.unwrap_or(*default && !all_off) {
            reply.begin(name);
            write(ctx, reply)?;
            reply.end();
        }
    }
    Ok(())
}

fn asserts(ctx: &Context<'_>, reply: &mut Writer) -> Result<()> {
    let user = get(&ctx.shared.metrics.asserts_user) as i32;
    for (name, value) in [("regular", 0), ("warning", 0), ("msg", 0), ("user", user), ("tripwire", 0), ("rollovers", 0)]
    {
        reply.put(name, value);
    }
    Ok(())
}

fn catalog(ctx: &Context<'_>, reply: &mut Writer) -> Result<()> {
    let state = ctx.shared.engine.state();
    let (mut collections, mut capped, mut clustered, mut views, mut series, mut internal) = (0, 0, 0, 0, 0, 0);
    for collection in state.catalog.all() {
        match collection.namespace.database.as_str() {
            "admin" | "config" | "local" => internal += 1,
            _ if collection.settings.time_series.is_some() => series += 1,
            _ if collection.is_view() => views += 1,
            _ => collections += 1,
        }
        capped += i32::from(collection.settings.capped.is_some());
        clustered += i32::from(collection.settings.clustered);
    }
    reply.put("collections", collections);
    reply.put("capped", capped);
    reply.put("clustered", clustered);
    reply.put("timeseries", series);
    reply.put("views", views);
    reply.put("internalCollections", internal);
    reply.put("internalViews", 0);
    Ok(())
}

fn connections(ctx: &Context<'_>, reply: &mut Writer) -> Result<()> {
    let connections = ctx.shared.connections();
    let active = connections.iter().filter(|info| info.operation.lock().is_some()).count();
    let limit = ctx.shared.config.max_connections;
    reply.put("current", connections.len() as i32);
    reply.put("available", limit.saturating_sub(connections.len()) as i32);
    reply.put("totalCreated", get(&ctx.shared.metrics.connections_created));
    reply.put("rejected", get(&ctx.shared.metrics.connections_rejected));
    reply.put("active", active as i32);
    Ok(())
}

fn cursors(ctx: &Context<'_>, reply: &mut Writer) -> Result<()> {
    reply.put("totalOpen", ctx.shared.engine.open_cursors() as i64);
    Ok(())
}

fn extra(_ctx: &Context<'_>, reply: &mut Writer) -> Result<()> {
    reply.put("note", "fields vary by platform");
    Ok(())
}

fn global_lock(ctx: &Context<'_>, reply: &mut Writer) -> Result<()> {
    let active = ctx.shared.connections().iter().filter(|info| info.operation.lock().is_some()).count() as i32;
    reply.put("totalTime", ctx.shared.started.elapsed().as_micros() as i64);
    for (name, total) in [("currentQueue", 0), ("activeClients", active)] {
        reply.begin(name);
        reply.put("total", total);
        reply.put("readers", total);
        reply.put("writers", 0);
        reply.end();
    }
    Ok(())
}

fn sessions(ctx: &Context<'_>, reply: &mut Writer) -> Result<()> {
    reply.put("activeSessionsCount", ctx.shared.sessions.count() as i32);
    Ok(())
}

fn metrics(ctx: &Context<'_>, reply: &mut Writer) -> Result<()> {
    let metrics = &ctx.shared.metrics;
    reply.begin("cursor");
    reply.begin("open");
    reply.put("total", ctx.shared.engine.open_cursors() as i64);
    reply.end();
    reply.end();
    reply.begin("document");
    reply.put("inserted", get(&metrics.insert));
    reply.end();
    Ok(())
}

fn network(ctx: &Context<'_>, reply: &mut Writer) -> Result<()> {
    let metrics = &ctx.shared.metrics;
    reply.put("bytesIn", get(&metrics.bytes_in));
    reply.put("bytesOut", get(&metrics.bytes_out));
    reply.put("physicalBytesIn", get(&metrics.bytes_in));
    reply.put("physicalBytesOut", get(&metrics.bytes_out));
    reply.put("numRequests", get(&metrics.requests));
    Ok(())
}

fn opcounters(ctx: &Context<'_>, reply: &mut Writer) -> Result<()> {
    let metrics = &ctx.shared.metrics;
    reply.put("insert", get(&metrics.insert));
    reply.put("query", get(&metrics.query));
    reply.put("update", get(&metrics.update));
    reply.put("delete", get(&metrics.delete));
    reply.put("getmore", get(&metrics.getmore));
    reply.put("command", get(&metrics.command));
    Ok(())
}

fn replication(ctx: &Context<'_>, reply: &mut Writer) -> Result<()> {
    let address = super::hello::own_address(ctx);
    reply.put_strings("hosts", [address.as_str()]);
    reply.put("setName", ctx.shared.config.set_name.as_str());
    reply.put("isWritablePrimary", true);
    reply.put("secondary", false);
    reply.put("primary", address.as_str());
    reply.put("me", address.as_str());
    Ok(())
}

fn security(ctx: &Context<'_>, reply: &mut Writer) -> Result<()> {
    let metrics = &ctx.shared.metrics;
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
    Ok(())
}

/// What only this server has: the log, the overlay, the tables, and documents on their way to the limit.
fn sheaf(ctx: &Context<'_>, reply: &mut Writer) -> Result<()> {
    let storage = ctx.shared.engine.storage();
    let now = storage.statistics();
    for (name, value) in [
        ("overlayBytes", now.overlay_bytes),
        ("overlayLimitBytes", storage.overlay_limit_bytes() as u64),
        ("logBytes", now.log_bytes),
        ("logWrittenBytes", now.log_written_bytes),
        ("tableBytes", now.table_bytes),
        ("commits", now.commits),
        ("flushes", now.flushes),
        ("folds", now.folds),
        ("foldsFailed", now.folds_failed),
        ("writerWaits", now.writer_waits),
        ("position", now.flushed),
        ("oldestPosition", now.oldest),
    ] {
        reply.put(name, value as i64);
    }
    reply.put("checkpointAgeSeconds", storage.checkpoint_age().as_secs_f64());
    reply.begin("largeDocuments");
    for large in ctx.shared.engine.large_documents()? {
        reply.put(&large.namespace.to_string(), large.bytes as i64);
    }
    reply.end();
    Ok(())
}

fn storage_engine(_ctx: &Context<'_>, reply: &mut Writer) -> Result<()> {
    reply.put("name", "sheaf");
    reply.put("supportsCommittedReads", true);
    reply.put("persistent", true);
    Ok(())
}

fn transactions(_ctx: &Context<'_>, reply: &mut Writer) -> Result<()> {
    for name in ["currentActive", "currentInactive", "currentOpen", "totalStarted", "totalCommitted", "totalAborted"] {
        reply.put(name, 0_i64);
    }
    Ok(())
}

/// Resident and virtual memory in MiB, as the kernel says.
fn memory(_ctx: &Context<'_>, reply: &mut Writer) -> Result<()> {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let megabytes = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        let kilobytes = line.and_then(|rest| rest.split_whitespace().next()?.parse::<i64>().ok());
        kilobytes.map_or(0, |kilobytes| kilobytes / 1024)
    };
    reply.put("bits", usize::BITS as i32);
    reply.put("resident", megabytes("VmRSS:") as i32);
    reply.put("virtual", megabytes("VmSize:") as i32);
    reply.put("supported", true);
    Ok(())
}
