//! `currentOp`: what runs now.
//!
//! The command's own fields beside `$all` and `$ownOps` are a filter; equality on the listed fields is understood here.

use super::{Command, Context, Run};
use crate::auth::{Action, Rights};
use crate::bson::Writer;
use crate::operation::Operation;
use crate::state::ConnectionInfo;
use bson::RawDocument;
use bson::raw::RawBsonRef;
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

fn run(ctx: &mut Context<'_>, reply: &mut Writer) -> Result<()> {
    let truthy = |name| {
        let value = ctx.body().get(name).ok().flatten();
        value.is_some_and(|value| {
            value.as_bool() == Some(true) || super::arguments::number(value).is_some_and(|n| n != 0)
        })
    };
    let all = truthy("$all");
    reply.begin_array("inprog");
    for connection in ctx.shared.connections() {
        let operation = connection.operation.lock().clone();
        if operation.is_none() && !all {
            continue;
        }
        let mut entry = Writer::new();
        write_entry(ctx, &connection, operation.as_deref(), &mut entry);
        let entry = entry.finish_document();
        if matches(ctx.body(), &entry)? {
            reply.push(&entry);
        }
    }
    reply.end();
    Ok(())
}

/// Whether an entry has every plain value that the command's fields ask for.
fn matches(body: &RawDocument, entry: &RawDocument) -> Result<bool> {
    for element in body.iter().skip(1) {
        let (key, wanted) = element?;
        let key = key.as_str();
        if key.starts_with('$') || super::arguments::is_generic(key) {
            continue;
        }
        let mut found = Some(RawBsonRef::Document(entry));
        for part in key.split('.') {
            found = found.and_then(|value| value.as_document()).and_then(|document| document.get(part).ok().flatten());
        }
        let equal = match (found, super::arguments::number(wanted)) {
            (Some(found), Some(wanted)) => super::arguments::number(found) == Some(wanted),
            (Some(found), None) => found == wanted,
            (None, _) => false,
        };
        if !equal {
            return Ok(false);
        }
    }
    Ok(true)
}

/// One entry of `inprog`.
fn write_entry(ctx: &Context<'_>, connection: &ConnectionInfo, operation: Option<&Operation>, entry: &mut Writer) {
    entry.put("type", "op");
    entry.put("host", super::hello::own_address(ctx).as_str());
    entry.put("desc", format!("conn{}", connection.id).as_str());
    entry.put("connectionId", connection.id as i32);
    entry.put("client", connection.remote.as_str());
    let metadata = connection.metadata.lock().clone();
    if let Some(metadata) = &metadata {
        let application = metadata.get_document("application").ok().and_then(|part| part.get_str("name").ok());
        entry.put_some("appName", application);
        entry.put("clientMetadata", metadata);
    }
    entry.put("active", operation.is_some());
    entry.put("currentOpTime", bson::DateTime::now().try_to_rfc3339_string().unwrap_or_default().as_str());
    let Some(operation) = operation else { return };
    let running = operation.started.elapsed();
    entry.put("opid", operation.id);
    entry.put("secs_running", running.as_secs() as i64);
    entry.put("microsecs_running", running.as_micros() as i64);
    entry.put("op", crate::profiler::kind(operation.command));
    let body = RawDocument::from_bytes(&operation.body).expect("a running command has a body");
    let database = body.get_str("$db").unwrap_or("admin");
    let collection = body.iter().next().and_then(|first| first.ok()).and_then(|(_, value)| value.as_str());
    entry.put("ns", format!("{database}.{}", collection.unwrap_or("$cmd")).as_str());
    entry.put("command", &crate::profiler::redacted(body));
    if let Ok(Some(lsid)) = body.get("lsid") {
        entry.put("lsid", lsid);
    }
    if operation.is_interrupted() {
        entry.put("killPending", true);
    }
    let observed = operation.monitor.observed();
    entry.put_some("planSummary", observed.plan_summary.as_deref());
    entry.put("numYields", 0);
    entry.put("waitingForLock", false);
}
