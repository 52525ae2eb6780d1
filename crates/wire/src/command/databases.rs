//! Databases: `listDatabases`, `dropDatabase`.

use super::documents::to_owned;
use super::{Command, Context, Flag, Later, Path, Run, arguments};
use crate::auth::{Action, Resource, Rights, may};
use crate::bson::Writer;
use bson::RawDocument;
use engine::{Code, Error, Result};

/// `listDatabases`.
pub(crate) static LIST: Command = Command {
    name: "listDatabases",
    help: "lists the databases",
    stable_api: true,
    admin_only: true,
    rights: Rights::LoggedIn,
    run: Run::Now(list),
    ..Command::DEFAULT
};

/// `dropDatabase`.
pub(crate) static DROP: Command = Command {
    name: "dropDatabase",
    help: "drops a database with all its collections",
    stable_api: true,
    writes: true,
    rights: Rights::Database(Action::DropDatabase),
    run: Run::Later(drop),
    ..Command::DEFAULT
};

arguments! {
    struct ListArguments<'a> {
        filter: Option<&'a RawDocument> = "filter",
        name_only: Flag = "nameOnly",
        authorized: Option<bool> = "authorizedDatabases",
    }
}

fn list(ctx: &mut Context<'_>, reply: &mut Writer) -> Result<()> {
    let arguments = ListArguments::parse(ctx)?;
    let sees_all = may(ctx, Action::ListDatabases, &Resource::Cluster);
    if !sees_all && arguments.authorized == Some(false) {
        return Err(Error::new(Code::UNAUTHORIZED, "not authorized to list all databases"));
    }
    let mut databases = ctx.shared.engine.list_databases(&ctx.engine_context())?;
    // A replica set has these from the start.
    for name in ["admin", "config", "local"] {
        if databases.iter().all(|known| known.0 != name) {
            databases.push((name.to_owned(), 0));
        }
    }
    databases.sort();
    let authorized = arguments.authorized.unwrap_or(false);
    if !sees_all || authorized {
        databases.retain(|(name, _)| may(ctx, Action::Find, &Resource::namespace(name, "")));
    }
    let documents = databases.iter().map(|(name, size)| {
        let mut entry = Writer::new();
        entry.put("name", name.as_str());
        if !arguments.name_only.0 {
            entry.put("sizeOnDisk", *size as i64);
            entry.put("empty", false);
        }
        entry.finish_document()
    });
    let filter = to_owned(arguments.filter).unwrap_or_default();
    let documents = ctx.shared.engine.matching(&filter, documents.collect())?;
    let mut total = 0;
    reply.begin_array("databases");
    for document in &documents {
        total += document.get_i64("sizeOnDisk").unwrap_or(0);
        if arguments.name_only.0 {
            reply.begin_element();
            reply.put("name", document.get_str("name").unwrap_or_default());
            reply.end();
        } else {
            reply.push(document);
        }
    }
    reply.end();
    if !arguments.name_only.0 {
        reply.put("totalSize", total);
        reply.put("totalSizeMb", total / (1024 * 1024));
    }
    Ok(())
}

fn drop<'x>(ctx: &'x mut Context<'_>, _reply: &'x mut Writer) -> Later<'x> {
    Box::pin(async move {
        let value = ctx.value()?;
        let path = Path { parent: "dropDatabase", field: "dropDatabase" };
        if super::arguments::is_null(value) {
            return Err(path.missing());
        }
        if super::number(value).is_none() {
            return Err(path.wrong_type(value, &["int", "long", "decimal", "double"]));
        }
        if super::number(value) != Some(1) {
            return Err(Error::location(5255100, "have to pass 1 as 'dropDatabase' parameter"));
        }
        super::diagnostic::NoArguments::parse(ctx)?;
        let database = ctx.database();
        if matches!(database, "admin" | "config" | "local") {
            let message = format!("Dropping the '{database}' database is prohibited.");
            return Err(Error::new(Code::ILLEGAL_OPERATION, message));
        }
        ctx.shared.engine.drop_database(&ctx.engine_context(), database)?.durable().await?;
        Ok(())
    })
}
