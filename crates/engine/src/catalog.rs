//! The catalogue: which collections, views and indexes there are.
//!
//! It is immutable: a change makes a new one that shares all but the changed entry. Each entry lies in the storage under its
//! collection id, written in the same commit as the change, so that a snapshot's data and its catalogue agree.

use crate::document::append;
use crate::document::collation::Collator;
use crate::error::{Code, Error, Result};
use crate::filter::{Filter, Place};
use crate::index::IndexSpec;
use crate::keyspace;
use crate::namespace::Namespace;
use crate::plan::{IndexInfo, IndexKind, Target};
use crate::series::Series;
use bson::spec::BinarySubtype;
use bson::{RawArrayBuf, RawBinaryRef, RawBsonRef, RawDocument, RawDocumentBuf, rawdoc};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The most indexes a collection may have, `_id` included.
pub const MAX_INDEXES: usize = 64;

/// All collections and views, as of one position of the log.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    collections: BTreeMap<Namespace, Arc<Collection>>,
}

/// A collection or a view.
#[derive(Clone, Debug)]
pub struct Collection {
    /// Its number in the key space.
    pub id: u32,
    /// Its name.
    pub namespace: Namespace,
    /// Its UUID.
    pub uuid: [u8; 16],
    /// The options it was created with, as `listCollections` shows them.
    pub options: RawDocumentBuf,
    /// All indexes but `_id`'s.
    pub indexes: Vec<Arc<Index>>,
    /// What the options mean.
    pub settings: Settings,
    /// What the planner needs to know of it; made when it is put into the catalogue.
    pub(crate) target: Arc<Target>,
}

/// The parsed options of a collection.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The default collation.
    pub collation: Option<Arc<Collator>>,
    /// What documents must match.
    pub validator: Option<Arc<Validator>>,
    /// Bounds of a capped collection.
    pub capped: Option<Capped>,
    /// Whether documents lie in the order of their `_id`.
    pub clustered: bool,
    /// Whether change events carry the document before.
    pub pre_images: bool,
    /// For a view: the collection it is on, and its pipeline.
    pub view: Option<Arc<View>>,
    /// For a time-series collection: its options.
    pub time_series: Option<Arc<RawDocumentBuf>>,
    /// The same, parsed.
    pub series: Option<Arc<Series>>,
    /// For clustered and time-series collections: the seconds after which documents expire.
    pub expire_after_seconds: Option<i64>,
}

/// A view's definition.
#[derive(Clone, Debug)]
pub struct View {
    /// The collection or view it is on, in the same database.
    pub on: String,
    /// The stages.
    pub pipeline: Vec<RawDocumentBuf>,
}

/// Bounds of a capped collection.
#[derive(Clone, Copy, Debug)]
pub struct Capped {
    /// The most bytes.
    pub size_bytes: u64,
    /// The most documents; zero for no bound.
    pub max: u64,
}

/// A collection's validator.
#[derive(Debug)]
pub struct Validator {
    /// The parsed filter.
    pub filter: Filter,
    /// As given.
    pub document: RawDocumentBuf,
    /// `validationLevel: "moderate"`: documents that did not match before may stay so.
    pub moderate: bool,
    /// `validationAction: "warn"`: only logged.
    pub warn: bool,
}

/// An index of a collection.
#[derive(Clone, Debug)]
pub struct Index {
    /// Its number in the key space.
    pub id: u32,
    /// What it indexes.
    pub spec: Arc<IndexSpec>,
    /// Whether queries may use it; it is maintained before.
    pub ready: bool,
    /// For each key field, the parts of its path that have held arrays (as bits from the first part on); all zero when
    /// no document has had an array there.
    pub multikey: Vec<u64>,
}

impl Index {
    /// Whether some document has an array in an indexed path.
    pub fn is_multikey(&self) -> bool {
        self.multikey.iter().any(|parts| *parts != 0)
    }
}

impl Catalog {
    /// The collection or view of that name.
    pub fn get(&self, namespace: &Namespace) -> Option<&Arc<Collection>> {
        self.collections.get(namespace)
    }

    /// The collection or view of that name.
    ///
    /// # Errors
    /// `NamespaceNotFound` (26).
    pub fn require(&self, namespace: &Namespace) -> Result<&Arc<Collection>> {
        self.get(namespace)
            .ok_or_else(|| Error::new(Code::NAMESPACE_NOT_FOUND, format!("ns does not exist: {namespace}")))
    }

    /// All of a database, by name.
    pub fn database<'c>(&'c self, name: &'c str) -> impl Iterator<Item = &'c Arc<Collection>> {
        let from = Namespace { database: name.to_owned(), collection: String::new() };
        self.collections.range(from..).take_while(move |entry| entry.0.database == name).map(|entry| entry.1)
    }

    /// All collections and views, by name.
    pub fn all(&self) -> impl Iterator<Item = &Arc<Collection>> {
        self.collections.values()
    }

    /// Adds or replaces an entry.
    pub fn put(&mut self, mut collection: Collection) {
        collection.target = Arc::new(collection.to_target());
        self.collections.insert(collection.namespace.clone(), Arc::new(collection));
    }

    /// Removes an entry.
    pub fn remove(&mut self, namespace: &Namespace) -> Option<Arc<Collection>> {
        self.collections.remove(namespace)
    }

    /// The entry with that number.
    pub fn by_id(&self, id: u32) -> Option<&Arc<Collection>> {
        self.collections.values().find(|collection| collection.id == id)
    }

    /// Reads the catalogue from the storage.
    ///
    /// # Errors
    /// A failing storage, an entry that can't be parsed.
    pub fn load(view: &dyn crate::storage::View) -> Result<Catalog> {
        let mut catalog = Catalog::default();
        let mut end = None;
        let (from, to) = keyspace::bounds(&[keyspace::CATALOG], &mut end);
        for entry in view.range(from, to, crate::storage::Direction::Forward)? {
            let (_, value) = entry?;
            catalog.put(Collection::from_entry(RawDocument::from_bytes(&value)?)?);
        }
        Ok(catalog)
    }
}

impl Collection {
    /// A new entry.
    ///
    /// # Errors
    /// What [`Settings::parse`] refuses.
    pub fn new(id: u32, namespace: Namespace, uuid: [u8; 16], options: RawDocumentBuf) -> Result<Collection> {
        let settings = Settings::parse(&options)?;
        let target = Target {
            collection: id,
            namespace: namespace.to_string(),
            clustered: settings.clustered,
            collator: settings.collation.clone(),
            indexes: Vec::new(),
            series: settings.series.clone(),
            capped: settings.capped.is_some(),
            without_id_index: settings.clustered,
        };
        Ok(Collection { id, namespace, uuid, options, indexes: Vec::new(), settings, target: Arc::new(target) })
    }

    /// What the planner needs to know of it.
    fn to_target(&self) -> Target {
        let collator = self.settings.collation.as_ref();
        let series = &self.settings.series;
        let order = series.as_ref().and_then(|series| IndexInfo::series(self.id, series).ok());
        let first = match (order, self.settings.clustered) {
            (Some(order), _) => order,
            (None, true) => IndexInfo::clustered(self.id, collator),
            (None, false) => IndexInfo::id(self.id, collator),
        };
        let is_order = |index: &Index| series.as_ref().is_some_and(|series| series.is_order(&index.spec));
        let ready = self.indexes.iter().filter(|index| index.ready && !is_order(index)).map(|index| {
            let mut multikey = index.multikey.clone();
            multikey.resize(index.spec.fields().len(), 0);
            IndexInfo { id: index.id, kind: IndexKind::Regular, spec: index.spec.clone(), multikey }
        });
        Target {
            collection: self.id,
            namespace: self.namespace.to_string(),
            clustered: self.settings.clustered,
            collator: self.settings.collation.clone(),
            indexes: std::iter::once(first).chain(ready).collect(),
            series: series.clone(),
            capped: self.settings.capped.is_some(),
            without_id_index: false,
        }
    }

    /// The key of its entry in the storage.
    pub fn entry_key(&self) -> Bytes {
        keyspace::key(keyspace::CATALOG, self.id, &[])
    }

    /// Its entry in the storage.
    ///
    /// # Errors
    /// None in practice.
    pub fn to_entry(&self) -> Result<Bytes> {
        let mut indexes = RawArrayBuf::new();
        for index in &self.indexes {
            let mut multikey = RawArrayBuf::new();
            for parts in &index.multikey {
                multikey.push(*parts as i64);
            }
            indexes.push(rawdoc! {
                "id": i64::from(index.id),
                "spec": index.spec.document().to_owned(),
                "ready": index.ready,
                "multikey": multikey,
            });
        }
        let mut entry = rawdoc! {
            "id": i64::from(self.id),
            "db": self.namespace.database.as_str(),
            "coll": self.namespace.collection.as_str(),
        };
        append(
            &mut entry,
            "uuid",
            RawBsonRef::Binary(RawBinaryRef { subtype: BinarySubtype::Uuid, bytes: &self.uuid }),
        )?;
        append(&mut entry, "options", RawBsonRef::Document(&self.options))?;
        append(&mut entry, "indexes", RawBsonRef::Array(&indexes))?;
        Ok(Bytes::from(entry.into_bytes()))
    }

    fn from_entry(entry: &RawDocument) -> Result<Collection> {
        let broken = |what: &str| Error::internal(format!("the catalogue's entry {entry:?} is broken: {what}"));
        let id = entry.get_i64("id").ok().and_then(|id| u32::try_from(id).ok()).ok_or_else(|| broken("id"))?;
        let name = |field| entry.get_str(field).map(str::to_owned).map_err(|_| broken(field));
        let namespace = Namespace { database: name("db")?, collection: name("coll")? };
        let uuid = entry.get_binary("uuid").ok().and_then(|uuid| uuid.bytes.try_into().ok());
        let options = entry.get_document("options").map_err(|_| broken("options"))?.to_owned();
        let mut collection = Collection::new(id, namespace, uuid.ok_or_else(|| broken("uuid"))?, options)?;
        for index in entry.get_array("indexes").map_err(|_| broken("indexes"))? {
            let index = index?.as_document().ok_or_else(|| broken("index"))?;
            collection.indexes.push(Arc::new(Index::from_entry(index, &collection.settings)?));
        }
        Ok(collection)
    }

    /// The index of that name, `_id`'s excepted.
    pub fn index(&self, name: &str) -> Option<&Arc<Index>> {
        self.indexes.iter().find(|index| index.spec.name() == name)
    }

    /// How many indexes it has that are not among [`Collection::indexes`]: the one on `_id`, or none.
    pub fn implicit_indexes(&self) -> usize {
        usize::from(!self.settings.clustered && self.settings.series.is_none())
    }

    /// Whether it is a view.
    pub fn is_view(&self) -> bool {
        self.settings.view.is_some()
    }

    /// The default collation.
    pub fn collator(&self) -> Option<&Arc<Collator>> {
        self.settings.collation.as_ref()
    }
}

impl Index {
    fn from_entry(entry: &RawDocument, settings: &Settings) -> Result<Index> {
        let broken = |what: &str| Error::internal(format!("the catalogue's index entry {entry:?} is broken: {what}"));
        let id = entry.get_i64("id").ok().and_then(|id| u32::try_from(id).ok()).ok_or_else(|| broken("id"))?;
        let document = entry.get_document("spec").map_err(|_| broken("spec"))?;
        let spec = IndexSpec::parse(document, settings.collation.as_ref())?;
        let ready = entry.get_bool("ready").map_err(|_| broken("ready"))?;
        let mut multikey = Vec::new();
        for parts in entry.get_array("multikey").map_err(|_| broken("multikey"))? {
            multikey.push(parts?.as_i64().ok_or_else(|| broken("multikey"))? as u64);
        }
        Ok(Index { id, spec: Arc::new(spec), ready, multikey })
    }
}

impl Settings {
    /// Parses the options of `create` that change how documents are stored or checked. The options' names and types were
    /// checked when the collection was created.
    ///
    /// # Errors
    /// An invalid validator or collation.
    pub fn parse(options: &RawDocument) -> Result<Settings> {
        let mut settings = Settings::default();
        if let Ok(collation) = options.get_document("collation") {
            settings.collation = Collator::parse(collation)?;
        }
        if let Ok(document) = options.get_document("validator") {
            let mut parser = crate::expression::Parser::new();
            let filter = Filter::parse_for(Place::Validator, document, &mut parser, settings.collation.clone())?;
            settings.validator = Some(Arc::new(Validator {
                filter,
                document: document.to_owned(),
                moderate: options.get_str("validationLevel").ok() == Some("moderate"),
                warn: options.get_str("validationAction").ok() == Some("warn"),
            }));
            if options.get_str("validationLevel").ok() == Some("off") {
                settings.validator = None;
            }
        }
        let number = |name: &str| match options.get(name) {
            Ok(Some(RawBsonRef::Int32(number))) => Some(i64::from(number)),
            Ok(Some(RawBsonRef::Int64(number))) => Some(number),
            Ok(Some(RawBsonRef::Double(number))) => Some(number as i64),
            _ => None,
        };
        if options.get_bool("capped").unwrap_or(false) {
            let size_bytes = number("size").unwrap_or(0).max(0) as u64;
            settings.capped = Some(Capped { size_bytes, max: number("max").unwrap_or(0).max(0) as u64 });
        }
        settings.clustered =
            matches!(options.get("clusteredIndex"), Ok(Some(RawBsonRef::Document(_) | RawBsonRef::Boolean(true))));
        settings.expire_after_seconds = number("expireAfterSeconds");
        if let Ok(images) = options.get_document("changeStreamPreAndPostImages") {
            settings.pre_images = images.get_bool("enabled").unwrap_or(false);
        }
        if let Ok(on) = options.get_str("viewOn") {
            let mut pipeline = Vec::new();
            if let Ok(stages) = options.get_array("pipeline") {
                for stage in stages {
                    let stage =
                        stage?.as_document().ok_or_else(|| Error::type_mismatch("a view's stage must be an object"))?;
                    pipeline.push(stage.to_owned());
                }
            }
            settings.view = Some(Arc::new(View { on: on.to_owned(), pipeline }));
        }
        if let Ok(series) = options.get_document("timeseries") {
            settings.series = Some(Arc::new(Series::parse(series)?));
            settings.time_series = Some(Arc::new(series.to_owned()));
        }
        Ok(settings)
    }
}
