//! `validateDBMetadata`: says which indexes a client that keeps to the stable API could not create.

use super::{Command, Context, Path, Run, arguments};
use crate::auth::{Action, Rights};
use crate::bson::Writer;
use bson::RawDocument;
use bson::raw::RawBsonRef;
use engine::catalog::Collection;
use engine::{Code, Error, Result};

/// The longest name of a database, in bytes.
const MAX_DATABASE_BYTES: usize = 63;

/// The most findings that are reported at once.
const MAX_FINDINGS: usize = 10_000;

/// The command.
pub(crate) static COMMAND: Command = Command {
    name: "validateDBMetadata",
    help: "checks collections against the stable API",
    rights: Rights::Cluster(Action::Validate),
    run: Run::Now(run),
    ..Command::DEFAULT
};

arguments! {
    struct Arguments<'a> {
        db: Option<&'a str> = "db",
        collection: Option<&'a str> = "collection",
        parameters: &'a RawDocument = "apiParameters",
    }
}

arguments! {
    struct ApiParameters<'a> {
        version: &'a str = "version",
        strict: Option<RawBsonRef<'a>> = "strict",
        deprecation_errors: Option<RawBsonRef<'a>> = "deprecationErrors",
    }
}

/// A flag for which null is no value.
fn flag(field: &str, value: Option<RawBsonRef<'_>>) -> Result<bool> {
    let Some(value) = value else { return Ok(false) };
    let path = Path { parent: "APIParameters", field };
    value.as_bool().ok_or_else(|| path.wrong_type(value, &["bool"]))
}

fn run(ctx: &mut Context<'_>, reply: &mut Writer) -> Result<()> {
    let arguments = Arguments::parse(ctx)?;
    let parameters = ApiParameters::parse_nested("APIParameters", arguments.parameters)?;
    let strict = flag("strict", parameters.strict)?;
    flag("deprecationErrors", parameters.deprecation_errors)?;
    arguments.db.map_or(Ok(()), check_database)?;
    arguments.collection.map_or(Ok(()), check_collection)?;
    let catalog = ctx.shared.engine.state();
    let is_meant = |collection: &&std::sync::Arc<Collection>| {
        arguments.db.is_none_or(|name| collection.namespace.database == name)
            && arguments.collection.is_none_or(|name| collection.namespace.collection == name)
    };
    let mut count = 0;
    reply.begin_array("apiVersionErrors");
    if strict && parameters.version == "1" {
        for collection in catalog.catalog.all().filter(is_meant) {
            for name in outside_stable_api(collection).take(MAX_FINDINGS.saturating_sub(count)) {
                write_finding(collection, name, reply);
                count += 1;
            }
        }
    }
    reply.end();
    if count == MAX_FINDINGS {
        reply.put("hasMoreErrors", true);
    }
    Ok(())
}

/// The names of the indexes that the stable API does not have: sparse ones. It has no text indexes either, nor have we.
fn outside_stable_api(collection: &Collection) -> impl Iterator<Item = &str> {
    collection.indexes.iter().filter(|index| index.spec.sparse()).map(|index| index.spec.name())
}

fn write_finding(collection: &Collection, index: &str, reply: &mut Writer) {
    reply.begin_element();
    reply.put("ns", collection.namespace.to_string().as_str());
    reply.put("code", Code::API_STRICT_ERROR.0);
    reply.put("codeName", Code::API_STRICT_ERROR.name().as_str());
    reply.put("errmsg", format!("The index with name {index} is not allowed in API version 1.").as_str());
    reply.end();
}

/// Refuses what names no database; a dollar is allowed here.
fn check_database(name: &str) -> Result<()> {
    if name.is_empty() {
        return Err(Error::location(28539, "db name is empty"));
    }
    if name.len() > MAX_DATABASE_BYTES || name.contains(['.', '\0']) {
        return Err(Error::new(Code::INVALID_NAMESPACE, format!("Invalid database name: '{name}'")));
    }
    if name.contains(['/', '\\', ' ', '"']) {
        return Err(Error::location(13280, format!("invalid db name: {name}")));
    }
    Ok(())
}

fn check_collection(name: &str) -> Result<()> {
    if name.is_empty() || name.starts_with('.') || name.contains('\0') {
        return Err(Error::new(Code::INVALID_NAMESPACE, format!("Invalid collection name: '{name}'")));
    }
    Ok(())
}
