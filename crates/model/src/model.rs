//! The typed model: what every later step (plan, advise, apply, keep, audit) works from.
//!
//! It is the fold of all declarations of all files, in canonical order: everything that has a name is sorted by it, so
//! that two models that say the same print the same JSON. The JSON carries `"version": 1`; a reader refuses later
//! versions. Spans are not part of it.

use crate::error::{Error, Result};
use crate::language::{
    bucket::Bucket, compress::Compress, derived::Derived, edge::Edge, embed::Embed, entity::Entity, expire::Expire,
    field::Field, files::Files, live::Live, query::Query, recent::Recent, reference::Ref, rollup::Rollup,
    series::Series, shard::Shard, snapshot::Snapshot, split::Split, states::States, stock::Stock, timeline::Timeline,
    unique::Unique, version::Version,
};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// The version of the canonical JSON this crate writes, and the highest it reads.
pub const VERSION: u32 = 1;

/// A whole model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// The JSON's version; see [`VERSION`].
    pub version: u32,
    /// Kinds of documents.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub entities: Vec<Entity>,
    /// Relations kept as documents of their own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub edges: Vec<Edge>,
    /// Fan-out of items along edges.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub timelines: Vec<Timeline>,
    /// Derived values by key.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rollups: Vec<Rollup>,
    /// GridFS buckets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<Files>,
    /// Access patterns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub queries: Vec<Query>,
}

/// What a document and an embedded document have in common: fields, nested documents, references and copies.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Body {
    /// Typed fields and enumerations.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<Field>,
    /// Embedded documents.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub embeds: Vec<Embed>,
    /// Ids of other entities.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refs: Vec<Ref>,
    /// Frozen copies.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub snapshots: Vec<Snapshot>,
    /// Copies kept in sync.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lives: Vec<Live>,
}

/// What only an entity has.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Parts {
    /// `count`, `sum`, `min`, `max` and `latest`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub derived: Vec<Derived>,
    /// The newest children.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recents: Vec<Recent>,
    /// Children packed into chunks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub buckets: Vec<Bucket>,
    /// Quantities that never go below zero.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stocks: Vec<Stock>,
    /// State machines.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub states: Vec<States>,
    /// Rarely read fields in documents of their own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub splits: Vec<Split>,
    /// Fields compressed in place.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub compressed: Vec<Compress>,
    /// Unique keys over several fields.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub uniques: Vec<Unique>,
    /// The optimistic lock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lock: Option<Version>,
    /// The end of a document's life.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expire: Option<Expire>,
    /// Stored as a time series.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub series: Option<Series>,
    /// How the collection is spread over shards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<Shard>,
}

impl Model {
    /// An empty model.
    pub fn new() -> Model {
        Model { version: VERSION, ..Model::default() }
    }

    /// The canonical JSON: versioned, in a stable order, indented by two spaces, with a final newline.
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).expect("a model has no map with keys that are not texts");
        text.push('\n');
        text
    }

    /// Reads canonical JSON.
    ///
    /// # Errors
    /// [`Error::BadJson`] if the text is not a model or of a later version than [`VERSION`].
    pub fn from_json(text: &str) -> Result<Model> {
        let value: serde_json::Value = serde_json::from_str(text).map_err(|error| Error::BadJson(error.to_string()))?;
        match value.get("version").and_then(serde_json::Value::as_u64) {
            Some(version) if version <= u64::from(VERSION) => {}
            Some(version) => {
                return Err(Error::BadJson(format!(
                    "version {version} is newer than this program reads (up to {VERSION}): update Sheaf"
                )));
            }
            None => return Err(Error::BadJson("the field `version` is missing".into())),
        }
        serde_json::from_value(value).map_err(|error| Error::BadJson(error.to_string()))
    }

    /// The declared entity of that name.
    pub fn declared(&self, name: &str) -> Option<&Entity> {
        self.entities.iter().find(|entity| entity.name == name)
    }

    /// The entity of that name, or what an edge, a timeline or a rollup stores, seen as one.
    pub fn entity(&self, name: &str) -> Option<Cow<'_, Entity>> {
        if let Some(entity) = self.declared(name) {
            return Some(Cow::Borrowed(entity));
        }
        let edge = self.edges.iter().find(|edge| edge.name == name).map(Edge::as_entity);
        let timeline = || self.timelines.iter().find(|timeline| timeline.name == name).map(Timeline::as_entity);
        let rollup = || self.rollups.iter().find(|rollup| rollup.name == name).map(|rollup| rollup.as_entity(self));
        edge.or_else(timeline).or_else(rollup).map(Cow::Owned)
    }

    /// Everything that has a collection, as entities, by name.
    pub fn all_entities(&self) -> Vec<Cow<'_, Entity>> {
        self.entity_names().into_iter().filter_map(|name| self.entity(name)).collect()
    }

    /// The names of everything that has a collection.
    pub fn entity_names(&self) -> Vec<&str> {
        let entities = self.entities.iter().map(|entity| entity.name.as_str());
        let edges = self.edges.iter().map(|edge| edge.name.as_str());
        let timelines = self.timelines.iter().map(|timeline| timeline.name.as_str());
        let rollups = self.rollups.iter().map(|rollup| rollup.name.as_str());
        entities.chain(edges).chain(timelines).chain(rollups).collect()
    }

    /// The queries on an entity.
    pub fn queries_on<'m>(&'m self, entity: &'m str) -> impl Iterator<Item = &'m Query> {
        self.queries.iter().filter(move |query| query.on == entity)
    }

    /// Puts everything that has a name in its order.
    pub(crate) fn canonicalize(&mut self) {
        self.entities.sort_by(|a, b| a.name.cmp(&b.name));
        self.edges.sort_by(|a, b| a.name.cmp(&b.name));
        self.timelines.sort_by(|a, b| a.name.cmp(&b.name));
        self.rollups.sort_by(|a, b| a.name.cmp(&b.name));
        self.files.sort_by(|a, b| a.name.cmp(&b.name));
        self.queries.sort_by(|a, b| a.name.cmp(&b.name));
        for entity in &mut self.entities {
            entity.body.canonicalize();
            entity.parts.canonicalize();
        }
        for edge in &mut self.edges {
            edge.body.canonicalize();
        }
    }
}

impl Body {
    fn canonicalize(&mut self) {
        self.fields.sort_by(|a, b| a.name.cmp(&b.name));
        self.embeds.sort_by(|a, b| a.name.cmp(&b.name));
        self.refs.sort_by(|a, b| a.name.cmp(&b.name));
        self.snapshots.sort_by(|a, b| (&a.name, &a.via).cmp(&(&b.name, &b.via)));
        self.lives.sort_by(|a, b| (&a.name, &a.via).cmp(&(&b.name, &b.via)));
        for field in &mut self.fields {
            field.body.canonicalize();
        }
        for embed in &mut self.embeds {
            embed.body.canonicalize();
        }
    }
}

impl Parts {
    fn canonicalize(&mut self) {
        self.derived.sort_by(|a, b| a.name.cmp(&b.name));
        self.recents.sort_by(|a, b| a.name.cmp(&b.name));
        self.buckets.sort_by(|a, b| a.name.cmp(&b.name));
        self.stocks.sort_by(|a, b| a.name.cmp(&b.name));
        self.states.sort_by(|a, b| a.name.cmp(&b.name));
        self.splits.sort_by(|a, b| a.name.cmp(&b.name));
        self.compressed.sort_by(|a, b| a.field.cmp(&b.field));
        self.uniques.sort_by(|a, b| a.fields.cmp(&b.fields));
    }
}
