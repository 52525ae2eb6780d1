//! `profile`: which operations of a database are noted in its `system.profile`, and which are slow.
//!
//! Level and filter belong to a database, `slowms` and `sampleRate` to the whole server. Nothing is kept over a restart.

use super::{Command, Context, Path, Run, arguments};
use crate::auth::{Action, Rights};
use crate::bson::Writer;
use crate::profiler::DatabaseSettings;
use bson::RawDocumentBuf;
use bson::raw::RawBsonRef;
use engine::{Error, Result};

/// The command.
pub(crate) static COMMAND: Command = Command {
    name: "profile",
    help: "says or sets which operations are profiled",
    rights: Rights::Database(Action::EnableProfiler),
    run: Run::Now(run),
    ..Command::DEFAULT
};

arguments! {
    struct Arguments<'a> {
        slow_ms: Option<i64> = "slowms",
        sample_rate: Option<f64> = "sampleRate",
        filter: Option<RawBsonRef<'a>> = "filter",
    }
}

/// What shall happen to a filter.
enum FilterChange {
    Keep,
    Unset,
    Set(RawDocumentBuf),
}

fn filter_change(ctx: &Context<'_>, filter: Option<RawBsonRef<'_>>) -> Result<FilterChange> {
    match filter {
        None => Ok(FilterChange::Keep),
        Some(RawBsonRef::String("unset")) => Ok(FilterChange::Unset),
        Some(RawBsonRef::Document(filter)) => {
            ctx.shared.engine.matching(filter, Vec::new())?;
            Ok(FilterChange::Set(filter.to_owned()))
        }
        Some(_) => Err(Error::bad_value("Expected an object or the string 'unset' for the profile command's filter")),
    }
}

fn run(ctx: &mut Context<'_>, reply: &mut Writer) -> Result<()> {
    let path = Path { parent: "profile", field: "profile" };
    let value = ctx.value()?;
    if super::arguments::is_null(value) {
        return Err(path.missing());
    }
    let level = super::number(value).ok_or_else(|| path.wrong_type(value, &["int", "long", "double", "decimal"]))?;
    let arguments = Arguments::parse(ctx)?;
    if arguments.sample_rate.is_some_and(|rate| !(0.0..=1.0).contains(&rate)) {
        return Err(Error::bad_value("'sampleRate' must be between 0.0 and 1.0 inclusive"));
    }
    let filter = filter_change(ctx, arguments.filter)?;
    let database = ctx.database();
    ctx.shared.profiler.change(|settings| {
        let before = settings.databases.get(database).cloned().unwrap_or_default();
        reply.put("was", before.level);
        reply.put("slowms", settings.slow_ms as i32);
        reply.put("sampleRate", settings.sample_rate);
        if let Some(filter) = &before.filter {
            reply.put("filter", filter);
            reply.put(
                "note",
                "When a filter expression is set, slowms and sampleRate are not used for profiling and slow-query log \
                 lines.",
            );
        }
        if !(0..=2).contains(&level) {
            return;
        }
        let filter = match filter {
            FilterChange::Keep => before.filter,
            FilterChange::Unset => None,
            FilterChange::Set(filter) => Some(filter),
        };
        settings.slow_ms = arguments.slow_ms.unwrap_or(settings.slow_ms);
        settings.sample_rate = arguments.sample_rate.unwrap_or(settings.sample_rate);
        settings.databases.insert(database.to_owned(), DatabaseSettings { level: level as i32, filter });
    });
    Ok(())
}
