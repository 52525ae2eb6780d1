//! Applying a model to a store: collections, validators, indexes, shard keys, the activation and what it fills.
//!
//! [`plan`] compares the model with what is there and says what is to be done, in the order in which it can be done online;
//! [`run()`] does it. What is there already is not done again, so that applying twice does nothing the second time and a run
//! that was killed is simply started again. Nothing is dropped unless that was asked for.

mod guarantee;
mod run;

pub use guarantee::{Writers, refusals};
pub use run::{Event, define, run};

use crate::error::Result;
use crate::keep::active;
use crate::language::filter::{Condition, Test};
use crate::model::Model;
use crate::plan::index::Index;
use crate::plan::{CollectionPlan, Plan};
use crate::schema;
use crate::value::Literal;
use bson::{Bson, Document, doc};
use std::collections::BTreeMap;
use std::fmt;
use store::{CollectionInfo, Store};

/// One thing to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Create a collection.
    Create {
        /// Its name.
        collection: String,
        /// Its options, the validator among them.
        options: Document,
    },
    /// Give a collection another validator.
    Validate {
        /// Its name.
        collection: String,
        /// The validator; empty for none.
        validator: Document,
    },
    /// Drop an index that the model doesn't ask for (only with `--drop`).
    DropIndex {
        /// The collection.
        collection: String,
        /// The index.
        name: String,
    },
    /// Build an index.
    Index {
        /// The collection.
        collection: String,
        /// The index.
        index: store::Index,
    },
    /// Shard a collection.
    Shard {
        /// The collection.
        collection: String,
        /// The shard key.
        key: Document,
    },
    /// Let the model take effect.
    Activate {
        /// As which version.
        version: i64,
    },
    /// Fill what a declaration keeps; one that was begun goes on.
    Fill {
        /// The declaration.
        declaration: String,
    },
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Action::Create { collection, options } => {
                write!(f, "create collection {collection}")?;
                if options.contains_key("timeseries") {
                    f.write_str(" (time series)")?;
                } else if options.contains_key("validator") {
                    f.write_str(" with its validator")?;
                }
                Ok(())
            }
            Action::Validate { collection, validator } if validator.is_empty() => {
                write!(f, "take the validator off {collection}")
            }
            Action::Validate { collection, .. } => write!(f, "set the validator of {collection}"),
            Action::DropIndex { collection, name } => write!(f, "drop index {name} of {collection}"),
            Action::Index { collection, index } => {
                write!(f, "build index on {collection}: {}", index.keys)?;
                for (name, value) in &index.options {
                    if name != "name" {
                        write!(f, ", {name}: {value}")?;
                    }
                }
                Ok(())
            }
            Action::Shard { collection, key } => write!(f, "shard {collection} by {key}"),
            Action::Activate { version } => write!(f, "activate the model as version {version}"),
            Action::Fill { declaration } => write!(f, "fill {declaration}"),
        }
    }
}

/// What is to be done, and what should be known.
#[derive(Clone, Debug, Default)]
pub struct Actions {
    /// In their order.
    pub list: Vec<Action>,
    /// What is there and not in the model, and stays unless it is dropped.
    pub notes: Vec<String>,
}

/// Compares a model with what a database holds.
///
/// # Errors
/// A store that fails; an index that stands in the way of a planned one, without `drop`.
pub async fn plan(store: &Store, database: &str, model: &Model, drop: bool) -> Result<Actions> {
    let sharded = store.capabilities().sharded;
    let plan = crate::plan::plan(model, sharded.then_some(2));
    let mut actions = Actions::default();
    let known = store.list_collections(database).await?;
    let known: BTreeMap<&str, &CollectionInfo> = known.iter().map(|info| (info.name.as_str(), info)).collect();
    for (collection, options) in wanted_collections(model, &plan) {
        match known.get(collection.as_str()) {
            None => actions.list.push(Action::Create { collection, options }),
            Some(info) => {
                let wanted = options.get_document("validator").cloned().unwrap_or_default();
                let there = info.options.get_document("validator").cloned().unwrap_or_default();
                if wanted != there {
                    actions.list.push(Action::Validate { collection, validator: wanted });
                }
            }
        }
    }
    for part in &plan.collections {
        indexes(store, database, part, drop, &mut actions).await?;
    }
    if sharded {
        shards(store, database, &plan, &mut actions).await?;
    }
    let (version, active) = active_model(store, database).await?;
    if active.as_ref().map(Model::to_json) != Some(model.to_json()) {
        actions.list.push(Action::Activate { version: version + 1 });
    }
    for note in run::open_notes(store, database).await? {
        actions.list.push(Action::Fill { declaration: note });
    }
    Ok(actions)
}

/// The version and the model that are active for a database; version 0 if there never was one.
///
/// # Errors
/// A store that fails; an activation that can't be read.
pub async fn active_model(store: &Store, database: &str) -> Result<(i64, Option<Model>)> {
    let models = store.collection(active::DATABASE, active::MODELS);
    let mut last = (0, None);
    for activation in models.find(doc! { "_id.database": database }, store::Find::default(), None).await? {
        let (_, version, model) = active::read_activation(&activation)?;
        if version > last.0 {
            last = (version, model);
        }
    }
    Ok(last)
}

/// The collections of a model with their options.
fn wanted_collections(model: &Model, plan: &Plan) -> Vec<(String, Document)> {
    let entities = model.all_entities();
    let mut wanted: Vec<(String, Document)> = Vec::new();
    for part in &plan.collections {
        if wanted.iter().any(|(name, _)| *name == part.collection) {
            continue;
        }
        let mut options = Document::new();
        if let Some(entity) = entities.iter().find(|entity| entity.collection == part.collection) {
            if let Some(series) = &entity.parts.series {
                let mut timeseries = doc! { "timeField": series.time.clone() };
                if let Some(meta) = &series.meta {
                    timeseries.insert("metaField", meta.clone());
                }
                timeseries.insert("granularity", format!("{:?}", series.granularity).to_lowercase());
                options.insert("timeseries", timeseries);
                if let Some(after) = series.expire_after {
                    options.insert("expireAfterSeconds", (after.ms / 1000) as i64);
                }
            }
            if let Some(validator) = schema::validator(entity) {
                options.insert("validator", validator);
            }
        }
        let splits = entities.iter().flat_map(|entity| entity.parts.splits.iter().map(move |split| (entity, split)));
        for (entity, split) in splits.filter(|(_, split)| split.collection == part.collection) {
            if let Some(validator) = schema::split_validator(entity, split) {
                options.insert("validator", validator);
            }
        }
        wanted.push((part.collection.clone(), options));
    }
    for files in &model.files {
        for part in ["files", "chunks"] {
            wanted.push((format!("{}.{part}", files.name), Document::new()));
        }
    }
    wanted
}

/// A planned index as a server takes it.
pub fn server_index(index: &Index) -> store::Index {
    let mut keys = Document::new();
    for key in &index.keys {
        keys.insert(key.path.clone(), if key.descending { -1 } else { 1 });
    }
    let mut options = doc! { "name": index.name.clone() };
    if index.unique {
        options.insert("unique", true);
    }
    if !index.partial.is_empty() {
        options.insert("partialFilterExpression", partial(&index.partial));
    }
    if let Some(after) = index.expire_after {
        options.insert("expireAfterSeconds", (after.ms / 1000) as i64);
    }
    store::Index { keys, options }
}

/// A filter in the words that a partial index takes.
fn partial(lines: &[Condition]) -> Document {
    let mut filter = Document::new();
    let mut all = Vec::new();
    for line in lines {
        let value = match &line.test {
            Test::In(list) if list.len() == 1 => literal(&list[0]),
            Test::In(list) => doc! { "$in": list.iter().map(literal).collect::<Vec<_>>() }.into(),
            Test::NotIn(list) => doc! { "$nin": list.iter().map(literal).collect::<Vec<_>>() }.into(),
            Test::Gt(value) => doc! { "$gt": literal(value) }.into(),
            Test::Gte(value) => doc! { "$gte": literal(value) }.into(),
            Test::Lt(value) => doc! { "$lt": literal(value) }.into(),
            Test::Lte(value) => doc! { "$lte": literal(value) }.into(),
            Test::Exists(exists) => doc! { "$exists": *exists }.into(),
        };
        match filter.contains_key(&line.path) {
            false => {
                filter.insert(line.path.clone(), value);
            }
            true => all.push(doc! { line.path.clone(): value }),
        }
    }
    if all.is_empty() {
        return filter;
    }
    all.push(filter);
    doc! { "$and": all }
}

fn literal(literal: &Literal) -> Bson {
    match literal {
        Literal::Null => Bson::Null,
        Literal::Bool(value) => Bson::Boolean(*value),
        Literal::Int(value) => Bson::Int64(*value),
        Literal::Double(value) => Bson::Double(*value),
        Literal::Text(value) => Bson::String(value.clone()),
    }
}

/// What makes two indexes the same one.
fn meaning(index: &Document) -> (Document, bool, Document, Option<i64>) {
    let whole = |value: Option<&Bson>| match value {
        Some(Bson::Int32(value)) => Some(i64::from(*value)),
        Some(Bson::Int64(value)) => Some(*value),
        Some(Bson::Double(value)) => Some(*value as i64),
        _ => None,
    };
    let mut keys = Document::new();
    for (path, kind) in index.get_document("key").into_iter().flatten() {
        keys.insert(path.clone(), whole(Some(kind)).map_or_else(|| kind.clone(), Bson::Int64));
    }
    let partial = index.get_document("partialFilterExpression").cloned().unwrap_or_default();
    (keys, index.get_bool("unique").unwrap_or(false), partial, whole(index.get("expireAfterSeconds")))
}

async fn indexes(
    store: &Store,
    database: &str,
    part: &CollectionPlan,
    drop: bool,
    actions: &mut Actions,
) -> Result<()> {
    let collection = &part.collection;
    let there = store.collection(database, collection).list_indexes().await?;
    let mut used = vec![false; there.len()];
    let mut builds = Vec::new();
    for index in &part.indexes {
        let index = server_index(index);
        let mut listed = doc! { "key": index.keys.clone() };
        listed.extend(index.options.clone());
        let wanted = meaning(&listed);
        match there.iter().position(|known| meaning(known) == wanted) {
            Some(known) => used[known] = true,
            None => builds.push((index, wanted)),
        }
    }
    for (known, used) in there.iter().zip(&used) {
        let name = known.get_str("name").unwrap_or_default();
        if *used || name == "_id_" || name.is_empty() {
            continue;
        }
        let (keys, ..) = meaning(known);
        let in_the_way = builds.iter().any(|(index, wanted)| {
            wanted.0 == keys || index.options.get_str("name").is_ok_and(|wanted| wanted == name)
        });
        if drop {
            actions.list.push(Action::DropIndex { collection: collection.clone(), name: name.to_owned() });
        } else if in_the_way {
            actions.notes.push(format!(
                "index {name} of {collection} has other options than the model's: --drop builds it anew"
            ));
            builds.retain(|(_, wanted)| wanted.0 != keys);
        } else {
            actions.notes.push(format!("index {name} of {collection} is not in the model and stays (--drop drops it)"));
        }
    }
    actions.list.extend(builds.into_iter().map(|(index, _)| Action::Index { collection: collection.clone(), index }));
    Ok(())
}

/// The collections that are not sharded yet and should be.
async fn shards(store: &Store, database: &str, plan: &Plan, actions: &mut Actions) -> Result<()> {
    let config = store.collection("config", "collections");
    for part in &plan.collections {
        let Some(shard) = &part.shard else { continue };
        let namespace = format!("{database}.{}", part.collection);
        if config.find_one(doc! { "_id": &namespace }, None).await?.is_some() {
            continue;
        }
        let mut key = Document::new();
        for (position, field) in shard.chosen.fields.iter().enumerate() {
            let hashed = shard.chosen.hashed && position == 0;
            key.insert(field.clone(), if hashed { Bson::String("hashed".into()) } else { Bson::Int32(1) });
        }
        actions.list.push(Action::Shard { collection: part.collection.clone(), key });
    }
    Ok(())
}
