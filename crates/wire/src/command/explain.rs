//! `explain`: how another command would find its documents.

use super::{Command, Context, Path, Run, arguments};
use crate::auth;
use crate::bson::Writer;
use bson::RawDocument;
use engine::operation::{Aggregate, Explain, Modification, UpdateStatement};
use engine::plan::Verbosity;
use engine::{Code, Error, Result};

/// The command.
pub(crate) static COMMAND: Command = Command {
    name: "explain",
    help: "says how another command finds its documents",
    stable_api: true,
    reads: true,
    run: Run::Now(run),
    ..Command::DEFAULT
};

arguments! {
    struct Arguments<'a> {
        verbosity: Option<&'a str> = "verbosity",
    }
}

fn verbosity(name: Option<&str>) -> Result<Verbosity> {
    match name {
        Some("queryPlanner") => Ok(Verbosity::QueryPlanner),
        Some("executionStats") => Ok(Verbosity::ExecutionStats),
        Some("allPlansExecution") | None => Ok(Verbosity::AllPlansExecution),
        Some(other) => Err(Error::bad_value(format!(
            "Enumeration value '{other}' for field 'explain.verbosity' is not a valid value."
        ))),
    }
}

fn run(ctx: &mut Context<'_>, reply: &mut Writer) -> Result<()> {
    let path = Path { parent: "explain", field: "explain" };
    let value = ctx.value()?;
    if super::arguments::is_null(value) {
        return Err(path.missing());
    }
    let inner = value.as_document().ok_or_else(|| path.wrong_type(value, &["object"]))?;
    let verbosity = verbosity(Arguments::parse(ctx)?.verbosity)?;
    let called = match inner.iter().next() {
        Some(first) => first?.0.as_str(),
        None => {
            let message = "explain command requires a nested object with a command in it";
            return Err(Error::new(Code::COMMAND_NOT_FOUND, message));
        }
    };
    if let Some(database) = inner.get("$db")?.and_then(|database| database.as_str())
        && database != ctx.database()
    {
        return Err(Error::new(Code::INVALID_NAMESPACE, "the explained command can't name another database by $db"));
    }
    // From here on the context is that of the explained command, whose rights it needs.
    ctx.command = super::find(called)?;
    ctx.called = called;
    ctx.explain(Some(inner))?;
    auth::authorize(ctx)?;
    let explain = explained(ctx)?;
    write(ctx, inner, &explain, verbosity, reply)
}

pub(super) fn explained(ctx: &Context<'_>) -> Result<Explain> {
    let one = |count: usize| match count {
        1 => Ok(()),
        _ => Err(Error::bad_value("explained writes have exactly one statement")),
    };
    Ok(match ctx.command.name {
        "find" => Explain::Find(Box::new(super::find::find(ctx)?)),
        "count" => Explain::Count(super::count::count(ctx)?),
        "distinct" => Explain::Distinct(super::distinct::distinct(ctx)?),
        "aggregate" => Explain::Aggregate(Box::new(super::aggregate::aggregate(ctx)?.0)),
        "update" => {
            let mut update = super::update::update(ctx)?;
            one(update.statements.len())?;
            Explain::Update(update.namespace, Box::new(update.statements.remove(0)))
        }
        "delete" => {
            let mut delete = super::delete::delete(ctx)?;
            one(delete.statements.len())?;
            Explain::Delete(delete.namespace, delete.statements.remove(0).query)
        }
        "findAndModify" => {
            let find_and_modify = super::find_and_modify::find_and_modify(ctx)?;
            match find_and_modify.modification {
                Modification::Remove => Explain::Delete(find_and_modify.namespace, find_and_modify.query),
                Modification::Update { update, upsert, array_filters, .. } => {
                    let query = find_and_modify.query;
                    let statement = UpdateStatement { query, update, multi: false, upsert, array_filters };
                    Explain::Update(find_and_modify.namespace, Box::new(statement))
                }
            }
        }
        other => {
            let message = format!("Cannot explain cmd: {other}");
            return Err(Error::new(Code::ILLEGAL_OPERATION, message));
        }
    })
}

/// `aggregate` with `explain: true`.
pub(super) fn explain_aggregate(ctx: &Context<'_>, aggregate: Aggregate, reply: &mut Writer) -> Result<()> {
    write(ctx, ctx.body(), &Explain::Aggregate(Box::new(aggregate)), Verbosity::QueryPlanner, reply)
}

fn write(
    ctx: &Context<'_>,
    command: &RawDocument,
    explain: &Explain,
    verbosity: Verbosity,
    reply: &mut Writer,
) -> Result<()> {
    let mut context = ctx.engine_context();
    context.index_hints = super::query_settings::of(ctx, || explain.clone())?;
    let explained = ctx.shared.engine.explain(&context, explain, verbosity)?;
    if explained.get("explainVersion")?.is_none() {
        reply.put("explainVersion", "1");
    }
    reply.put_all(&explained);
    reply.begin("command");
    for element in command {
        let (key, value) = element?;
        if !super::arguments::is_generic(key.as_str()) {
            reply.put(key.as_str(), value);
        }
    }
    reply.put("$db", ctx.database());
    reply.end();
    let address = super::hello::own_address(ctx);
    let (host, port) = address.rsplit_once(':').unwrap_or((&address, "0"));
    reply.begin("serverInfo");
    reply.put("host", host);
    reply.put("port", port.parse::<i32>().unwrap_or(0));
    reply.put("version", super::diagnostic::VERSION);
    reply.put("gitVersion", concat!("sheaf-", env!("CARGO_PKG_VERSION")));
    reply.end();
    reply.begin("serverParameters");
    reply.put("internalQueryMaxBlockingSortMemoryUsageBytes", 104_857_600);
    reply.end();
    Ok(())
}
