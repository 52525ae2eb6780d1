//! `setQuerySettings` and `removeQuerySettings`: which indexes find, distinct and aggregate of a shape may use, and whether
//! they are refused.
//!
//! A shape is named by its hash, which `explain` tells, or by a query that has it. Settings are kept in one document of
//! `config.querySettings`; `$querySettings` shows them.

use super::{Command, Context, Field, Later, Path, Run, arguments, kept};
use crate::auth::{Action, Rights};
use crate::bson::Writer;
use crate::state::Shared;
use bson::raw::{RawBson, RawBsonRef};
use bson::{RawArray, RawDocument, RawDocumentBuf, rawdoc};
use engine::operation::Explain;
use engine::{Code, Engine, Error, IndexHints, Namespace, Result};
use std::collections::BTreeMap;
use std::sync::Arc;

/// `setQuerySettings`.
pub(crate) static SET: Command = Command {
    name: "setQuerySettings",
    help: "says how queries of a shape are run, or refuses them",
    admin_only: true,
    rights: Rights::Cluster(Action::QuerySettings),
    run: Run::Later(set),
    ..Command::DEFAULT
};

/// `removeQuerySettings`.
pub(crate) static REMOVE: Command = Command {
    name: "removeQuerySettings",
    help: "removes the settings of a shape of query",
    admin_only: true,
    rights: Rights::Cluster(Action::QuerySettings),
    run: Run::Later(remove),
    ..Command::DEFAULT
};

arguments! {
    struct SetArguments<'a> {
        settings: &'a RawDocument = "settings",
    }
}

arguments! {
    struct Settings<'a> {
        hints: Option<RawBsonRef<'a>> = "indexHints",
        framework: Option<&'a str> = "queryFramework",
        reject: Option<RawBsonRef<'a>> = "reject",
        comment: Option<RawBsonRef<'a>> = "comment",
    }
}

arguments! {
    struct HintArguments<'a> {
        namespace: &'a RawDocument = "ns",
        indexes: &'a RawArray = "allowedIndexes",
    }
}

arguments! {
    struct HintNamespace<'a> {
        database: Option<&'a str> = "db",
        collection: Option<&'a str> = "coll",
    }
}

/// The most shapes with settings.
const MAX_SETTINGS: usize = 1000;
/// The digits of a shape's hash.
const HASH_DIGITS: usize = 64;
const COLLECTION: &str = "querySettings";
const ID: &str = "all";

/// All settings, by their shape's hash.
pub(crate) type AllSettings = BTreeMap<String, Arc<Setting>>;

/// The settings of one shape.
pub(crate) struct Setting {
    hash: String,
    /// A query of the shape, if one was given.
    query: Option<RawDocumentBuf>,
    settings: RawDocumentBuf,
    reject: bool,
    hints: Option<Arc<IndexHints>>,
}

impl Setting {
    fn new(hash: String, query: Option<RawDocumentBuf>, settings: RawDocumentBuf) -> Result<Setting> {
        let parsed = Settings::parse_nested("settings", &settings)?;
        let reject = match parsed.reject {
            Some(value) => bool::from_value(Path { parent: "settings", field: "reject" }, value)?,
            None => false,
        };
        if let Some(other) = parsed.framework.filter(|name| !matches!(*name, "classic" | "sbe")) {
            let message =
                format!("Enumeration value '{other}' for field 'settings.queryFramework' is not a valid value.");
            return Err(Error::bad_value(message));
        }
        let hints = parsed.hints.map(hints).transpose()?.filter(|hints| !hints.is_empty());
        if hints.is_none() && parsed.framework.is_none() && !reject {
            return match settings.is_empty() {
                true => Err(Error::location(8_727_502, "the resulting settings cannot be empty")),
                false => {
                    Err(Error::location(7_746_604, "settings need index hints, a query framework, or reject: true"))
                }
            };
        }
        let hints = hints.map(Arc::new);
        Ok(Setting { hash, query, reject, hints, settings })
    }

    /// As it is kept, and shown by `$querySettings`.
    fn document(&self) -> RawDocumentBuf {
        let mut document = Writer::new();
        document.put("queryShapeHash", self.hash.as_str());
        document.put("settings", &self.settings);
        document.put_some("representativeQuery", self.query.as_ref());
        document.finish_document()
    }
}

/// The allowed indexes of collections; those without any are left out.
fn hints(value: RawBsonRef<'_>) -> Result<IndexHints> {
    let path = Path { parent: "settings", field: "indexHints" };
    let mut all = IndexHints::new();
    let mut add = |value: RawBsonRef<'_>| -> Result<()> {
        let hint = value.as_document().ok_or_else(|| path.wrong_type(value, &["object", "array"]))?;
        let hint = HintArguments::parse_nested("indexHints", hint)?;
        let names = HintNamespace::parse_nested("ns", hint.namespace)?;
        let database = names.database.ok_or_else(|| Error::location(8_727_500, "'db' field is missing in 'ns'"))?;
        let collection =
            names.collection.ok_or_else(|| Error::location(8_727_501, "'coll' field is missing in 'ns'"))?;
        let mut indexes: Vec<RawBson> = Vec::new();
        for index in hint.indexes {
            match index? {
                index @ (RawBsonRef::String(_) | RawBsonRef::Document(_)) => indexes.push(index.into()),
                other => {
                    let path = Path { parent: "indexHints", field: "allowedIndexes" };
                    return Err(path.wrong_type(other, &["string", "object"]));
                }
            }
        }
        if !indexes.is_empty() {
            all.push((Namespace::new(database, collection)?, indexes));
        }
        Ok(())
    };
    match value {
        RawBsonRef::Array(array) => array.into_iter().try_for_each(|hint| add(hint?))?,
        other => add(other)?,
    }
    Ok(all)
}

/// The settings that the last run left.
///
/// # Errors
/// A failing storage.
pub(crate) fn load(engine: &Engine) -> Result<AllSettings> {
    let mut all = AllSettings::new();
    let Some(kept) = kept::read(engine, COLLECTION, ID)? else { return Ok(all) };
    for entry in kept.get_array("settings").into_iter().flatten() {
        let Some(entry) = entry?.as_document() else { continue };
        let hash = entry.get_str("queryShapeHash").unwrap_or_default().to_owned();
        let query = entry.get_document("representativeQuery").ok().map(ToOwned::to_owned);
        let settings = entry.get_document("settings").map(ToOwned::to_owned).unwrap_or_default();
        all.insert(hash.clone(), Arc::new(Setting::new(hash, query, settings)?));
    }
    Ok(all)
}

/// What `$querySettings` shows.
pub(crate) fn rows(shared: &Shared, options: &RawDocument) -> Vec<RawDocumentBuf> {
    let shows_shape = options.get_bool("showDebugQueryShape").unwrap_or(false);
    let all = shared.query_settings.read();
    let row = |setting: &Arc<Setting>| {
        let mut row = Writer::new();
        row.put_all(&setting.document());
        if let Some(query) = setting.query.as_ref().filter(|_| shows_shape) {
            row.put("debugQueryShape", &debug_shape(query));
        }
        row.finish_document()
    };
    all.values().map(row).collect()
}

/// A query with its constants replaced by their types.
fn debug_shape(query: &RawDocument) -> RawDocumentBuf {
    let mut shape = Writer::new();
    for (at, (name, value)) in query.iter().flatten().enumerate() {
        match (at, name.as_str()) {
            (0, command) => {
                shape.begin("cmdNs");
                shape.put("db", query.get_str("$db").unwrap_or_default());
                shape.put("coll", value.as_str().unwrap_or("$cmd.aggregate"));
                shape.end();
                shape.put("command", command);
            }
            (_, "$db") => {}
            (_, name @ ("sort" | "projection" | "hint" | "collation" | "key")) => shape.put(name, value),
            (_, name) => put_shape(name, value, &mut shape),
        }
    }
    shape.finish_document()
}

fn put_shape(name: &str, value: RawBsonRef<'_>, shape: &mut Writer) {
    match value {
        RawBsonRef::Document(document) => {
            shape.begin(name);
            document.iter().flatten().for_each(|(name, value)| put_shape(name.as_str(), value, shape));
            shape.end();
        }
        RawBsonRef::Array(array) => {
            shape.begin_array(name);
            for element in array.into_iter().flatten() {
                match element.as_document() {
                    Some(document) => {
                        shape.begin_element();
                        document.iter().flatten().for_each(|(name, value)| put_shape(name.as_str(), value, shape));
                        shape.end();
                    }
                    None => shape.push(format!("?{}", super::type_name(element.element_type())).as_str()),
                }
            }
            shape.end();
        }
        RawBsonRef::String(path) if path.starts_with('$') => shape.put(name, path),
        other => shape.put(name, format!("?{}", super::type_name(other.element_type())).as_str()),
    }
}

/// The settings that a query falls under; an error where they refuse it.
///
/// # Errors
/// `QueryRejectedBySettings` (411).
pub(super) fn of(ctx: &Context<'_>, query: impl FnOnce() -> Explain) -> Result<Option<Arc<IndexHints>>> {
    if ctx.shared.query_settings.read().is_empty() {
        return Ok(None);
    }
    // What has no shape is refused by the operation itself.
    let Ok(Some(hash)) = ctx.shared.engine.query_shape_hash(&ctx.engine_context(), &query()) else { return Ok(None) };
    let Some(setting) = ctx.shared.query_settings.read().get(&hash).cloned() else { return Ok(None) };
    if setting.reject && ctx.explained.is_none() {
        let message = "Query rejected by admin query settings";
        return Err(Error::new(Code::QUERY_REJECTED_BY_SETTINGS, message));
    }
    Ok(setting.hints.clone())
}

/// The shape that a command names: its hash, and the query if it was given as one.
fn named(ctx: &mut Context<'_>) -> Result<(String, Option<RawDocumentBuf>)> {
    let value = ctx.value()?;
    match value {
        RawBsonRef::String(hash) => {
            if !hash.bytes().all(|digit| digit.is_ascii_hexdigit()) {
                return Err(Error::bad_value(format!("the query shape hash '{hash}' is not hexadecimal")));
            }
            if hash.len() != HASH_DIGITS {
                let message = format!("a query shape hash has {HASH_DIGITS} digits, not {}", hash.len());
                return Err(Error::new(Code::INVALID_LENGTH, message));
            }
            Ok((hash.to_ascii_uppercase(), None))
        }
        RawBsonRef::Document(query) => Ok((hash_of(ctx, query)?, Some(query.to_owned()))),
        other => Err(Path { parent: ctx.called, field: ctx.called }.wrong_type(other, &["object", "string"])),
    }
}

/// The hash of a query that is given as a command with `$db`.
fn hash_of<'c>(ctx: &mut Context<'c>, query: &'c RawDocument) -> Result<String> {
    let unknown = || Error::location(7_746_402, "query settings are for find, distinct and aggregate");
    let (called, _) = query.iter().next().transpose()?.ok_or_else(unknown)?;
    let called = called.as_str();
    if !matches!(called, "find" | "distinct" | "aggregate") {
        return Err(unknown());
    }
    let path = Path { parent: called, field: "$db" };
    let database =
        query.get("$db")?.filter(|value| !super::arguments::is_null(*value)).ok_or_else(|| path.missing())?;
    let database = database.as_str().ok_or_else(|| path.wrong_type(database, &["string"]))?;
    super::generic::check_database(database)?;
    let (command, was_called, was_database) = (ctx.command, ctx.called, ctx.generic.database);
    (ctx.command, ctx.called, ctx.generic.database) = (super::find(called)?, called, database);
    ctx.explain(Some(query))?;
    let explain = super::explain::explained(ctx);
    (ctx.command, ctx.called, ctx.generic.database) = (command, was_called, was_database);
    ctx.explain(None)?;
    let explain = explain?;
    refuse_query(&explain, database)?;
    ctx.shared.engine.query_shape_hash(&ctx.engine_context(), &explain)?.ok_or_else(unknown)
}

/// Refuses queries that have no use for settings, or must not be cut off.
fn refuse_query(explain: &Explain, database: &str) -> Result<()> {
    if matches!(database, "admin" | "config" | "local") {
        return Err(Error::location(8_584_900, "query settings are not for databases of the server's own"));
    }
    match explain {
        Explain::Find(find) if find.namespace.is_system() => {
            Err(Error::location(8_584_900, "query settings are not for collections of the server's own"))
        }
        Explain::Find(find) if engine::operation::is_by_id(&find.query) => {
            Err(Error::location(7_746_606, "a find by _id has no use for query settings"))
        }
        _ => Ok(()),
    }
}

/// Old settings with the new ones in their place.
fn merged(old: Option<&RawDocument>, new: &RawDocument) -> Result<RawDocumentBuf> {
    let mut merged = Writer::new();
    for field in old.into_iter().flat_map(|old| old.iter()) {
        let (name, value) = field?;
        if new.get(name.as_str())?.is_none() {
            merged.put(name.as_str(), value);
        }
    }
    merged.put_all(new);
    Ok(merged.finish_document())
}

fn set<'x>(ctx: &'x mut Context<'_>, reply: &'x mut Writer) -> Later<'x> {
    Box::pin(async move {
        let arguments = SetArguments::parse(ctx)?;
        let (hash, query) = named(ctx)?;
        let mut all = ctx.shared.query_settings.read().clone();
        let old = all.get(&hash).cloned();
        let settings = merged(old.as_ref().map(|old| &*old.settings), arguments.settings)?;
        let query = query.or_else(|| old.and_then(|old| old.query.clone()));
        let setting = Arc::new(Setting::new(hash.clone(), query, settings)?);
        all.insert(hash, setting.clone());
        if all.len() > MAX_SETTINGS {
            let message = format!("at most {MAX_SETTINGS} shapes have query settings: remove some");
            return Err(Error::new(Code::BSON_OBJECT_TOO_LARGE, message));
        }
        keep(ctx.shared, all).await?;
        reply.put_all(&setting.document());
        Ok(())
    })
}

fn remove<'x>(ctx: &'x mut Context<'_>, _reply: &'x mut Writer) -> Later<'x> {
    Box::pin(async move {
        super::diagnostic::NoArguments::parse(ctx)?;
        let (hash, _) = named(ctx)?;
        let mut all = ctx.shared.query_settings.read().clone();
        if all.remove(&hash).is_some() {
            keep(ctx.shared, all).await?;
        }
        Ok(())
    })
}

async fn keep(shared: &Shared, all: AllSettings) -> Result<()> {
    let mut settings = bson::RawArrayBuf::new();
    all.values().for_each(|setting| settings.push(setting.document()));
    kept::replace(&shared.engine, COLLECTION, ID, rawdoc! { "_id": ID, "settings": settings })?.durable().await?;
    *shared.query_settings.write() = all;
    Ok(())
}
