//! `fsync`, `validate`, `profile`, `getDefaultRWConcern`, `setDefaultRWConcern`.

use super::{Command, Context, Flag, Run, arguments};
use crate::auth::{Action, Rights};
use crate::bson::Writer;
use bson::raw::RawBsonRef;
use engine::{Code, Error, Result};

/// `fsync`.
pub(crate) static FSYNC: Command = Command {
    name: "fsync",
    help: "accepted: every acknowledged write is flushed already",
    admin_only: true,
    rights: Rights::Cluster(Action::Fsync),
    run: Run::Now(fsync),
    ..Command::DEFAULT
};

/// `validate`.
pub(crate) static VALIDATE: Command = Command {
    name: "validate",
    help: "checks a collection and its indexes",
    rights: Rights::Collection(Action::Validate),
    run: Run::Now(validate),
    ..Command::DEFAULT
};

/// `profile`.
pub(crate) static PROFILE: Command = Command {
    name: "profile",
    help: "says or sets which operations are profiled",
    rights: Rights::Database(Action::EnableProfiler),
    run: Run::Now(profile),
    ..Command::DEFAULT
};

/// `getDefaultRWConcern`.
pub(crate) static DEFAULT_CONCERN: Command = Command {
    name: "getDefaultRWConcern",
    help: "says which read and write concern holds where none is given",
    admin_only: true,
    rights: Rights::Cluster(Action::GetDefaultRwConcern),
    run: Run::Now(default_concern),
    ..Command::DEFAULT
};

arguments! {
    struct FsyncArguments<'a> {
        lock: Flag = "lock",
        asynchronous: Option<RawBsonRef<'a>> = "async",
        timeout: Option<i64> = "fsyncLockAcquisitionTimeoutMillis",
    }
}

arguments! {
    struct ValidateArguments<'a> {
        full: Flag = "full",
        background: Option<Flag> = "background",
        repair: Flag = "repair",
        metadata: Flag = "metadata",
        fix_multikey: Flag = "fixMultikey",
        check_bson: Flag = "checkBSONConformance",
        enforce_fast_count: Flag = "enforceFastCount",
        scan_data: Option<RawBsonRef<'a>> = "scandata",
    }
}

arguments! {
    struct ProfileArguments<'a> {
        slow_ms: Option<i64> = "slowms",
        sample_rate: Option<f64> = "sampleRate",
        filter: Option<RawBsonRef<'a>> = "filter",
    }
}

arguments! {
    struct DefaultArguments<'a> {
        in_memory: Option<bool> = "inMemory",
    }
}

fn fsync(ctx: &mut Context<'_>, reply: &mut Writer) -> Result<()> {
    if FsyncArguments::parse(ctx)?.lock.0 {
        let message = "fsync with lock is not supported: a backup needs no stop of writes here";
        return Err(Error::new(Code::COMMAND_NOT_SUPPORTED, message));
    }
    reply.put("numFiles", 1);
    Ok(())
}

fn validate(ctx: &mut Context<'_>, reply: &mut Writer) -> Result<()> {
    let namespace = ctx.collection()?;
    let arguments = ValidateArguments::parse(ctx)?;
    if arguments.background.is_some_and(|background| background.0) && arguments.full.0 {
        let message =
            "Running the validate command with both { background: true } and { full: true } is not supported.";
        return Err(Error::new(Code::INVALID_OPTIONS, message));
    }
    if arguments.repair.0 || arguments.fix_multikey.0 {
        let message =
            "Running the validate command with { repair: true } or { fixMultikey: true } requires a standalone server";
        return Err(Error::new(Code::INVALID_OPTIONS, message));
    }
    let info = ctx.shared.engine.collection(&ctx.engine_context(), &namespace)?;
    let collection = &info.collection;
    if collection.is_view() {
        let message = format!("Cannot validate a view: {namespace}");
        return Err(Error::new(Code::COMMAND_NOT_SUPPORTED_ON_VIEW, message));
    }
    let names: Vec<&str> =
        std::iter::once("_id_").chain(collection.indexes.iter().map(|index| index.spec.name())).collect();
    reply.put("ns", namespace.to_string().as_str());
    reply.put("nInvalidDocuments", 0);
    reply.put("nNonCompliantDocuments", 0);
    reply.put("nrecords", info.totals.count as i32);
    reply.put("nIndexes", names.len() as i32);
    reply.begin("keysPerIndex");
    names.iter().for_each(|name| reply.put(name, info.totals.count as i32));
    reply.end();
    reply.begin("indexDetails");
    for name in &names {
        reply.begin(name);
        reply.put("valid", true);
        reply.end();
    }
    reply.end();
    reply.put("valid", true);
    reply.put("repaired", false);
    for list in ["warnings", "errors", "extraIndexEntries", "missingIndexEntries", "corruptRecords"] {
        reply.put_strings(list, []);
    }
    Ok(())
}

fn profile(ctx: &mut Context<'_>, reply: &mut Writer) -> Result<()> {
    let level = super::number(ctx.value()?).ok_or_else(|| {
        let path = super::Path { parent: "profile", field: "profile" };
        match ctx.value() {
            Ok(value) => path.wrong_type(value, &["int", "long", "double", "decimal"]),
            Err(error) => error,
        }
    })?;
    let arguments = ProfileArguments::parse(ctx)?;
    let mut profile = ctx.shared.profile.lock();
    reply.put("was", profile.levels.get(ctx.database()).copied().unwrap_or(0));
    reply.put("slowms", profile.slow_ms as i32);
    reply.put("sampleRate", profile.sample_rate);
    match level {
        0 => {
            profile.levels.remove(ctx.database());
        }
        1 | 2 => {
            let message = "profiling into system.profile is not supported; slow commands are in the log";
            return Err(Error::new(Code::COMMAND_NOT_SUPPORTED, message));
        }
        _ => return Ok(()),
    }
    profile.slow_ms = arguments.slow_ms.unwrap_or(profile.slow_ms);
    profile.sample_rate = arguments.sample_rate.unwrap_or(profile.sample_rate);
    Ok(())
}

fn default_concern(ctx: &mut Context<'_>, reply: &mut Writer) -> Result<()> {
    DefaultArguments::parse(ctx)?;
    reply.begin("defaultReadConcern");
    reply.put("level", "local");
    reply.end();
    reply.begin("defaultWriteConcern");
    reply.put("w", "majority");
    reply.put("wtimeout", 0);
    reply.end();
    reply.put("defaultReadConcernSource", "implicit");
    reply.put("defaultWriteConcernSource", "implicit");
    reply.put("localUpdateWallClockTime", bson::DateTime::now());
    Ok(())
}
