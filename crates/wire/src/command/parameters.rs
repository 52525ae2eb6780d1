//! `getParameter` and `setParameter`: the parameters clients ask for, and the few that may be set.

use super::{Command, Context, Run, arguments};
use crate::auth::{Action, Rights};
use crate::bson::Writer;
use bson::raw::RawBsonRef;
use bson::{Bson, RawDocumentBuf, doc};
use engine::{Code, Error, Result};
use std::collections::BTreeMap;
use std::time::Duration;

/// `getParameter`.
pub(crate) static GET_PARAMETER: Command = Command {
    name: "getParameter",
    help: "returns parameters of the server",
    admin_only: true,
    rights: Rights::Cluster(Action::GetParameter),
    run: Run::Now(get),
    ..Command::DEFAULT
};

/// `setParameter`.
pub(crate) static SET_PARAMETER: Command = Command {
    name: "setParameter",
    help: "sets parameters of the server until it stops",
    admin_only: true,
    rights: Rights::Cluster(Action::SetParameter),
    run: Run::Now(set),
    ..Command::DEFAULT
};

/// Parameters that may be set while the server runs.
const SETTABLE: &[&str] = &[
    "cursorTimeoutMillis",
    "internalQueryMaxBlockingSortMemoryUsageBytes",
    "logLevel",
    "maxTransactionLockRequestTimeoutMillis",
    "notablescan",
    "quiet",
    "traceExceptions",
    "transactionLifetimeLimitSeconds",
    "ttlMonitorEnabled",
    "ttlMonitorSleepSecs",
];

/// How often expired documents are deleted where that is turned off.
const NEVER: Duration = Duration::from_secs(u32::MAX as u64);

/// Parameters that can't be given at the start.
const RUNTIME_ONLY: &[&str] = &["featureCompatibilityVersion"];

/// The parameters at the start.
pub(crate) fn defaults(test_commands: bool) -> BTreeMap<String, Bson> {
    let all = doc! {
        "authenticationMechanisms": ["SCRAM-SHA-1", "SCRAM-SHA-256"],
        "cursorTimeoutMillis": 600_000_i64,
        "enableLocalhostAuthBypass": true,
        "enableTestCommands": test_commands,
        "featureCompatibilityVersion": { "version": super::feature_version::VERSION },
        "internalQueryMaxBlockingSortMemoryUsageBytes": 104_857_600_i64,
        "localLogicalSessionTimeoutMinutes": 30,
        "logLevel": 0,
        "maxBSONDepth": 200,
        "maxTransactionLockRequestTimeoutMillis": 5,
        "notablescan": false,
        "quiet": false,
        "scramIterationCount": crate::auth::SCRAM_SHA_1_ITERATIONS as i32,
        "scramSHA256IterationCount": crate::auth::SCRAM_SHA_256_ITERATIONS as i32,
        "traceExceptions": false,
        "transactionLifetimeLimitSeconds": 60,
        "ttlMonitorEnabled": true,
        "ttlMonitorSleepSecs": 60,
    };
    all.into_iter().collect()
}

fn is_argument(field: &str) -> bool {
    !super::arguments::is_generic(field)
}

arguments! {
    struct GetOptions<'a> {
        show_details: Option<bool> = "showDetails",
        all: Option<bool> = "allParameters",
        set_at: Option<&'a str> = "setAt",
    }
}

fn get(ctx: &mut Context<'_>, reply: &mut Writer) -> Result<()> {
    let parameters = ctx.shared.parameters.read();
    let value = ctx.value()?;
    let (mut show_details, mut everything, mut set_at) = (false, value.as_str() == Some("*"), None);
    if let Some(options) = value.as_document() {
        let options = GetOptions::parse_nested("getParameter", options)?;
        show_details = options.show_details.unwrap_or(false);
        everything = options.all.unwrap_or(false);
        set_at = options.set_at;
    }
    if let Some(other) = set_at.filter(|at| !matches!(*at, "runtime" | "startup")) {
        let message = format!("Enumeration value '{other}' for field 'getParameter.setAt' is not a valid value.");
        return Err(Error::bad_value(message));
    }
    let mut wanted = Vec::new();
    for element in ctx.body().iter().skip(1) {
        let key = element?.0.as_str();
        if is_argument(key) {
            wanted.push(key);
        }
    }
    let mut found = false;
    for (name, value) in parameters.iter() {
        let settable = SETTABLE.contains(&name.as_str());
        let at = match set_at {
            Some("runtime") => settable,
            Some(_) => !RUNTIME_ONLY.contains(&name.as_str()),
            None => true,
        };
        if !at || !everything && !wanted.contains(&name.as_str()) {
            continue;
        }
        found = true;
        if show_details {
            reply.begin(name);
            put(reply, "value", value)?;
            reply.put("settableAtRuntime", settable);
            reply.put("settableAtStartup", !RUNTIME_ONLY.contains(&name.as_str()));
            reply.end();
        } else {
            put(reply, name, value)?;
        }
    }
    if !found {
        return Err(Error::new(Code::INVALID_OPTIONS, "no option found to get"));
    }
    Ok(())
}

fn put(reply: &mut Writer, name: &str, value: &Bson) -> Result<()> {
    let holder = RawDocumentBuf::try_from(&doc! { "": value.clone() })?;
    if let Some(value) = holder.get("")? {
        reply.put(name, value);
    }
    Ok(())
}

fn set(ctx: &mut Context<'_>, reply: &mut Writer) -> Result<()> {
    let mut changes = Vec::new();
    let mut parameters = ctx.shared.parameters.write();
    for element in ctx.body().iter().skip(1) {
        let (key, value) = element?;
        let key = key.as_str();
        if !is_argument(key) {
            continue;
        }
        let Some(old) = parameters.get(key) else {
            let message =
                format!("attempted to set unrecognized parameter [{key}], use getParameter:'*' to see options ");
            return Err(Error::new(Code::INVALID_OPTIONS, message));
        };
        if !SETTABLE.contains(&key) {
            let message = format!("not allowed to change [{key}] at runtime");
            return Err(Error::new(Code::ILLEGAL_OPERATION, message));
        }
        changes.push((key.to_owned(), converted(key, old, value)?, old.clone()));
    }
    let Some((_, _, was)) = changes.first() else {
        return Err(Error::new(Code::INVALID_OPTIONS, "no option found to set, use help:true to see options "));
    };
    put(reply, "was", was)?;
    for (key, new, old) in changes {
        tracing::info!(parameter = key, %old, %new, "parameter set");
        parameters.insert(key, new);
    }
    apply(ctx, &parameters);
    Ok(())
}

/// Tells the engine what the parameters say about it.
fn apply(ctx: &Context<'_>, parameters: &BTreeMap<String, Bson>) {
    let number = |name: &str| parameters.get(name).and_then(|value| value.as_i32().map(i64::from).or(value.as_i64()));
    let is_on = parameters.get("ttlMonitorEnabled").and_then(Bson::as_bool).unwrap_or(true);
    let seconds = number("ttlMonitorSleepSecs").unwrap_or(60).max(1) as u64;
    let period = if is_on { Duration::from_secs(seconds) } else { NEVER };
    ctx.shared.engine.set_ttl_period(period);
}

/// The new value in the type of the old one.
fn converted(key: &str, old: &Bson, new: RawBsonRef<'_>) -> Result<Bson> {
    let wrong = || Error::bad_value(format!("the parameter {key} can't take a value of this type"));
    let number = super::arguments::number(new).or(new.as_bool().map(i64::from));
    if let Bson::Boolean(_) = old {
        let is_null = super::arguments::is_null(new);
        return Ok(Bson::Boolean(number.map_or(!is_null, |number| number != 0)));
    }
    let number = number.ok_or_else(wrong)?;
    match old {
        Bson::Int32(_) => i32::try_from(number).map(Bson::Int32).map_err(|_| wrong()),
        _ => Ok(Bson::Int64(number)),
    }
}
