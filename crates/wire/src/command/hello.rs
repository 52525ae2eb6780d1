//! `hello` and its old name `isMaster`: who we are, what we can, and how to talk.
//!
//! We present ourselves as the primary of a replica set with one member, at the address the client used or the advertised
//! one: drivers allow transactions, retryable writes and change streams on a replica set only. With `topologyVersion` and
//! `maxAwaitTimeMS` the reply waits for a change, which here is only the server's end; with `exhaustAllowed` reply follows
//! reply without a request.

use super::{Command, Context, Later, Run, arguments::number};
use crate::auth::Rights;
use crate::bson::Writer;
use crate::frame::{Compressor, MAX_BSON_BYTES, MAX_MESSAGE_BYTES, MAX_WRITE_BATCH};
use crate::session::SESSION_TIMEOUT_MINUTES;
use crate::{auth, state::Shared};
use bson::RawDocument;
use bson::oid::ObjectId;
use bson::raw::RawBsonRef;
use engine::{Code, Error, Result};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The highest protocol version spoken: MongoDB 8.0's.
pub(crate) const MAX_WIRE_VERSION: i32 = 25;
/// The counter of `topologyVersion`: our topology never changes.
const TOPOLOGY_COUNTER: i64 = 6;
/// The election every one-member set has had.
const ELECTION_ID: [u8; 12] = [0x7F, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0, 0, 0, 0, 1];
/// Limits of the client's metadata.
const MAX_METADATA_BYTES: usize = 512;
const MAX_APPLICATION_NAME_BYTES: usize = 128;

/// `hello`.
pub(crate) static HELLO: Command = Command {
    name: "hello",
    help: "says who the server is, what it can and how to talk to it",
    stable_api: true,
    rights: Rights::Anyone,
    run: Run::Later(hello),
    ..Command::DEFAULT
};

/// `isMaster`.
pub(crate) static IS_MASTER: Command = Command {
    name: "isMaster",
    aliases: &["ismaster"],
    help: "the old name of hello",
    rights: Rights::Anyone,
    run: Run::Later(hello),
    ..Command::DEFAULT
};

fn hello<'x>(ctx: &'x mut Context<'_>, reply: &'x mut Writer) -> Later<'x> {
    Box::pin(async move {
        await_change(ctx).await?;
        write_topology(ctx, reply)?;
        write_limits(ctx, reply);
        negotiate_compression(ctx, reply)?;
        if let Some(value) = ctx.body().get("saslSupportedMechs")? {
            auth::write_mechanisms(ctx, &user_of_mechanisms(value)?, reply);
        }
        if let Some(start) = ctx.body().get("speculativeAuthenticate")?.and_then(|value| value.as_document()) {
            auth::speculate(ctx, start, reply);
        }
        take_metadata(ctx)?;
        ctx.client.greeted = true;
        Ok(())
    })
}

/// The user, as `database.name`, whose ways to log in are asked for.
fn user_of_mechanisms(value: RawBsonRef<'_>) -> Result<String> {
    match value {
        RawBsonRef::String(user) if user.contains('.') => Ok(user.to_owned()),
        RawBsonRef::String(_) => Err(Error::bad_value("UserName must contain a '.' separated database.user pair")),
        RawBsonRef::Document(user) => match (user.get_str("db"), user.get_str("user")) {
            (Ok(database), Ok(name)) => Ok(format!("{database}.{name}")),
            _ => Err(Error::bad_value("UserName must contain strings 'user' and 'db'")),
        },
        other => {
            let kind = super::type_name(other.element_type());
            Err(Error::type_mismatch(format!("saslSupportedMechs must be a string or an object, not of type {kind}")))
        }
    }
}

/// Waits as long as the client wishes, if it already knows the topology.
async fn await_change(ctx: &mut Context<'_>) -> Result<()> {
    let known = ctx.body().get("topologyVersion")?.and_then(|value| value.as_document());
    let wait = ctx.body().get("maxAwaitTimeMS")?;
    let (known, wait) = match (known, wait) {
        (None, None) => return Ok(()),
        (Some(known), Some(wait)) => (known, wait),
        (Some(_), None) => {
            return Err(Error::location(31368, "A request with a 'topologyVersion' must include 'maxAwaitTimeMS'"));
        }
        (None, Some(_)) => {
            return Err(Error::location(31368, "A request with a 'maxAwaitTimeMS' must include a 'topologyVersion'"));
        }
    };
    let milliseconds = number(wait).filter(|ms| *ms >= 0);
    let milliseconds =
        milliseconds.ok_or_else(|| Error::location(31373, "maxAwaitTimeMS must be a non-negative integer"))?;
    let process = known.get_object_id("processId").map_err(|error| Error::type_mismatch(error.to_string()))?;
    let counter = known.get_i64("counter").map_err(|error| Error::type_mismatch(error.to_string()))?;
    if process != ctx.shared.process_id {
        return Ok(());
    }
    if counter > TOPOLOGY_COUNTER {
        let message = format!(
            "Received a topology version with counter: {counter} which is greater than the server topology version \
             counter: {TOPOLOGY_COUNTER}"
        );
        return Err(Error::location(31382, message));
    }
    if counter == TOPOLOGY_COUNTER {
        // While it waits it may be cut when the server stops.
        ctx.client.info.rest();
        let stopped = ctx.shared.stop.notified();
        if !ctx.shared.stopping.load(Ordering::Relaxed) {
            let _ = tokio::time::timeout(Duration::from_millis(milliseconds as u64), stopped).await;
        }
        if !ctx.client.info.begin() || ctx.shared.stopping.load(Ordering::Relaxed) {
            return Err(Error::new(Code::SHUTDOWN_IN_PROGRESS, "the server is shutting down"));
        }
    }
    ctx.more_to_come = true;
    Ok(())
}

/// `host:port` of ourselves, for this client.
pub(crate) fn own_address(ctx: &Context<'_>) -> String {
    ctx.shared.config.advertise.clone().unwrap_or_else(|| ctx.client.info.local.clone())
}

fn write_topology(ctx: &Context<'_>, reply: &mut Writer) -> Result<()> {
    let address = own_address(ctx);
    if ctx.body().get("helloOk")?.and_then(|value| value.as_bool()) == Some(true) {
        reply.put("helloOk", true);
    }
    reply.begin("topologyVersion");
    reply.put("processId", ctx.shared.process_id);
    reply.put("counter", TOPOLOGY_COUNTER);
    reply.end();
    reply.put_strings("hosts", [address.as_str()]);
    reply.put("setName", ctx.shared.config.set_name.as_str());
    reply.put("setVersion", 1);
    reply.put(if ctx.command.name == "hello" { "isWritablePrimary" } else { "ismaster" }, true);
    reply.put("secondary", false);
    reply.put("primary", address.as_str());
    reply.put("me", address.as_str());
    reply.put("electionId", ObjectId::from_bytes(ELECTION_ID));
    write_last_write(ctx.shared, reply);
    Ok(())
}

fn write_last_write(shared: &Shared, reply: &mut Writer) {
    let time = shared.cluster_time();
    let date = bson::DateTime::from_millis(i64::from(time.time) * 1000);
    reply.begin("lastWrite");
    for (optime, day) in [("opTime", "lastWriteDate"), ("majorityOpTime", "majorityWriteDate")] {
        reply.begin(optime);
        reply.put("ts", time);
        reply.put("t", 1_i64);
        reply.end();
        reply.put(day, date);
    }
    reply.end();
}

fn write_limits(ctx: &Context<'_>, reply: &mut Writer) {
    reply.put("maxBsonObjectSize", MAX_BSON_BYTES as i32);
    reply.put("maxMessageSizeBytes", MAX_MESSAGE_BYTES as i32);
    reply.put("maxWriteBatchSize", MAX_WRITE_BATCH as i32);
    reply.put("localTime", bson::DateTime::now());
    reply.put("logicalSessionTimeoutMinutes", SESSION_TIMEOUT_MINUTES as i32);
    reply.put("connectionId", ctx.client.info.id as i32);
    reply.put("minWireVersion", 0);
    reply.put("maxWireVersion", MAX_WIRE_VERSION);
    reply.put("readOnly", false);
}

/// What both sides know, in the client's order; agreed on once.
fn negotiate_compression(ctx: &mut Context<'_>, reply: &mut Writer) -> Result<()> {
    let Some(offered) = ctx.body().get("compression")?.and_then(|value| value.as_array()) else { return Ok(()) };
    let mut agreed = Vec::new();
    for name in offered {
        if let Some(compressor) = name?.as_str().and_then(Compressor::by_name)
            && !agreed.contains(&compressor)
        {
            agreed.push(compressor);
        }
    }
    if !agreed.is_empty() {
        reply.put_strings("compression", agreed.iter().map(|compressor| compressor.name()));
    }
    if !ctx.client.greeted {
        ctx.client.compressors = agreed;
    }
    Ok(())
}

/// Notes what the client says about itself, for `currentOp` and the log.
fn take_metadata(ctx: &mut Context<'_>) -> Result<()> {
    let Some(client) = ctx.body().get("client")? else { return Ok(()) };
    let Some(client) = client.as_document() else {
        return Err(Error::type_mismatch("The client metadata document must be an object"));
    };
    if ctx.client.info.metadata.lock().is_some() {
        return Err(Error::new(
            Code::CLIENT_METADATA_CANNOT_BE_MUTATED,
            "The client metadata document may only be sent in the first hello",
        ));
    }
    check_metadata(client)?;
    *ctx.client.info.metadata.lock() = Some(client.to_owned());
    Ok(())
}

fn check_metadata(client: &RawDocument) -> Result<()> {
    if client.as_bytes().len() > MAX_METADATA_BYTES {
        let message = format!("The client metadata document must be less then or equal to {MAX_METADATA_BYTES} bytes");
        return Err(Error::new(Code::CLIENT_METADATA_DOCUMENT_TOO_LARGE, message));
    }
    let part = |name: &str| client.get(name).ok().flatten().and_then(|value| value.as_document());
    let text = |part: Option<&'_ RawDocument>, name: &str| -> Option<usize> {
        part.and_then(|part| part.get(name).ok().flatten()).and_then(|value| value.as_str()).map(str::len)
    };
    if text(part("application"), "name").is_some_and(|bytes| bytes > MAX_APPLICATION_NAME_BYTES) {
        let message = format!("The 'application.name' field must be at most {MAX_APPLICATION_NAME_BYTES} bytes");
        return Err(Error::new(Code::CLIENT_METADATA_APP_NAME_TOO_LARGE, message));
    }
    for (document, field) in [("driver", "name"), ("driver", "version"), ("os", "type")] {
        if text(part(document), field).is_none() {
            let message = format!("Missing required field '{document}.{field}' in the client metadata document");
            return Err(Error::new(Code::CLIENT_METADATA_MISSING_FIELD, message));
        }
    }
    Ok(())
}
