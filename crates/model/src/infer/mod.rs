//! `infer`: a model of what a live database holds and is asked, for a person to go on from.
//!
//! Every collection becomes an entity with its fields, embeds and references; cardinalities are counted with bounded work; the
//! shapes of `system.profile` become queries with their rates. What a sample can't know is left open: which copies are frozen
//! and which are kept, what happens on delete, which states follow each other.

mod body;
mod queries;

use crate::observe::link::Link;
use crate::observe::path::DAY_MS;
use crate::observe::{Bounds, Collection, Database};
use bson::{Bson, doc};
use std::collections::BTreeMap;
use std::fmt::Write;
use store::{Aggregate, Store};

/// Values that must be found at the other end for a field to be a reference.
const LEAST_SHARE: f64 = 0.9;

/// How many documents refer to one.
#[derive(Clone, Copy, Debug, Default)]
struct Cardinality {
    typical: u64,
    max: u64,
}

/// What the parts of the writing share.
struct Names<'d> {
    database: &'d Database,
    /// The entity's name by collection.
    entities: BTreeMap<String, String>,
    /// How many children refer to one parent, by collection and path.
    cardinalities: BTreeMap<(String, String), Cardinality>,
}

/// Writes a model in KDL.
///
/// # Errors
/// A failing storage or connection.
pub async fn infer(store: &Store, database: &Database, bounds: Bounds) -> store::Result<String> {
    let mut names = Names { database, entities: entity_names(database), cardinalities: BTreeMap::new() };
    for link in database.links.iter().filter(|link| is_reference(link) && !link.path.contains("[]")) {
        if let Some(found) = cardinality(store, database, link, bounds).await {
            names.cardinalities.insert((link.collection.clone(), link.path.clone()), found);
        }
    }
    let mut text = format!(
        "// What the database {:?} holds and is asked, from samples and its profile: check it, then make it yours.\n",
        database.name
    );
    for collection in database.collections.iter().filter(|collection| !is_files(collection)) {
        text.push('\n');
        entity(&mut text, &names, collection);
    }
    for bucket in database.collections.iter().filter_map(|collection| collection.info.name.strip_suffix(".files")) {
        let _ = writeln!(text, "\nfiles {}", word(bucket));
    }
    let queries = queries::queries(&names);
    if !queries.is_empty() {
        let _ = write!(text, "\n{queries}");
    }
    Ok(text)
}

fn is_files(collection: &Collection) -> bool {
    collection.info.name.ends_with(".files") || collection.info.name.ends_with(".chunks")
}

fn is_reference(link: &Link) -> bool {
    link.hits as f64 >= link.tried as f64 * LEAST_SHARE
}

/// Entities are called by the singular of their collection's name.
fn entity_names(database: &Database) -> BTreeMap<String, String> {
    let mut names: BTreeMap<String, String> = BTreeMap::new();
    for collection in &database.collections {
        let own = &collection.info.name;
        let single = singular(own);
        let is_taken = names.values().any(|taken| *taken == single)
            || database.collections.iter().any(|other| other.info.name == single && other.info.name != *own);
        names.insert(own.clone(), if is_taken { own.clone() } else { single });
    }
    names
}

fn singular(name: &str) -> String {
    if let Some(stem) = name.strip_suffix("ies") {
        return format!("{stem}y");
    }
    for plural in ["ses", "xes", "ches", "shes"] {
        if name.ends_with(plural) {
            return name[..name.len() - 2].to_owned();
        }
    }
    match name.strip_suffix('s') {
        Some(stem) if !["s", "i", "tu", "iu", "ru"].iter().any(|end| stem.ends_with(end)) => stem.to_owned(),
        _ => name.to_owned(),
    }
}

/// A word of the language: bare where it can be, else quoted.
fn word(name: &str) -> String {
    let is_bare = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && !matches!(name, "true" | "false" | "null" | "inf" | "nan" | "required" | "unique" | "list" | "increasing");
    if is_bare { name.to_owned() } else { format!("{name:?}") }
}

fn entity(text: &mut String, names: &Names<'_>, collection: &Collection) {
    let sample = &collection.sample;
    let name = &names.entities[&collection.info.name];
    let _ = write!(text, "entity {} collection={}", word(name), word(&collection.info.name));
    let id = sample.paths.get("_id").map_or("objectId", body::id_type);
    if id != "objectId" {
        let _ = write!(text, " id={id}");
    }
    text.push_str(" {\n");
    let count = collection.stats.count.max(sample.documents);
    let _ = write!(text, "  expect count={count}");
    if let Some((from, to)) = sample.created.filter(|(from, to)| to - from > DAY_MS as i64) {
        let per_day = count as f64 * DAY_MS / (to - from) as f64;
        let _ = write!(text, " growth=\"{}/day\"", per_day.ceil());
    }
    let _ = writeln!(text, " size={}", sample.usual_bytes().max(1));
    body::body(text, names, collection, "", 1);
    storage(text, collection);
    text.push_str("}\n");
}

/// What indexes and options say: expiry, unique keys over several fields, time series.
fn storage(text: &mut String, collection: &Collection) {
    if let Ok(series) = collection.info.options.get_document("timeseries") {
        let _ = write!(text, "  series time={}", word(series.get_str("timeField").unwrap_or_default()));
        if let Ok(meta) = series.get_str("metaField") {
            let _ = write!(text, " meta={}", word(meta));
        }
        if let Ok(granularity) = series.get_str("granularity") {
            let _ = write!(text, " granularity={granularity}");
        }
        text.push('\n');
    }
    for index in &collection.indexes {
        let Some(first) = index.keys.keys().next() else { continue };
        let is_date = collection.sample.at(first).is_some_and(|stats| stats.of("date") > 0);
        if let Some(seconds) = index.specification.get("expireAfterSeconds").filter(|_| is_date) {
            let _ = write!(text, "  expire {}", word(first));
            match seconds {
                Bson::Int32(0) | Bson::Int64(0) => {}
                seconds => {
                    let _ = write!(text, " after=\"{seconds}s\"");
                }
            }
            text.push('\n');
        }
        let is_unique = index.specification.get_bool("unique").unwrap_or(false);
        let is_partial = index.specification.contains_key("partialFilterExpression");
        let is_known = index.keys.keys().all(|path| collection.sample.at(path).is_some());
        if is_unique && !is_partial && is_known && index.keys.len() > 1 {
            let keys: Vec<String> = index.keys.keys().map(|path| word(path)).collect();
            let _ = writeln!(text, "  unique {}", keys.join(" "));
        }
    }
}

/// How many documents refer to one, counted by the server while its time lasts.
async fn cardinality(store: &Store, database: &Database, link: &Link, bounds: Bounds) -> Option<Cardinality> {
    let pipeline = vec![
        doc! { "$match": { &link.path: { "$ne": null } } },
        doc! { "$group": { "_id": format!("${}", link.path), "n": { "$sum": 1 } } },
        doc! { "$group": {
            "_id": null,
            "max": { "$max": "$n" },
            "typical": { "$percentile": { "input": "$n", "p": [0.5], "method": "approximate" } },
        } },
    ];
    let options = Aggregate { max_time: Some(bounds.time), ..Aggregate::default() };
    let cursor = store.collection(&database.name, &link.collection).aggregate(pipeline, options, None).await.ok()?;
    let row = cursor.collect(None).await.ok()?.into_iter().next()?;
    let number = |value: &Bson| match value {
        Bson::Int32(number) => (*number).max(0) as u64,
        Bson::Int64(number) => (*number).max(0) as u64,
        Bson::Double(number) => number.max(0.0).round() as u64,
        _ => 0,
    };
    let typical = row.get_array("typical").ok()?.first().map_or(0, number);
    let max = row.get("max").map_or(0, number).max(1);
    Some(Cardinality { typical: typical.min(max), max })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn singulars() {
        for (plural, single) in [
            ("orders", "order"),
            ("categories", "category"),
            ("addresses", "address"),
            ("boxes", "box"),
            ("status", "status"),
            ("news", "new"),
            ("skus", "sku"),
        ] {
            assert_eq!(singular(plural), single);
        }
    }
}
