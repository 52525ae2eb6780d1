//! Definitions of the engine in this process.

use super::{Embedded, namespace, plain, raw};
use crate::admin::whole;
use crate::collection::Collection;
use crate::error::{Error, Result};
use crate::options::{CollectionInfo, DatabaseInfo};
use bson::{Bson, Document, RawDocumentBuf, doc};
use engine::Namespace;
use engine::operation::{Create, DropIndexes, Rename};

/// The seconds that a bucket of a time series spans at a granularity.
const BUCKET_SPANS: &[(&str, i32)] = &[("seconds", 3_600), ("minutes", 86_400), ("hours", 2_592_000)];

/// The options that may be changed by replacing them.
const CHANGEABLE: &[&str] = &[
    "validator",
    "validationLevel",
    "validationAction",
    "expireAfterSeconds",
    "changeStreamPreAndPostImages",
    "viewOn",
    "pipeline",
];

impl Embedded {
    pub(crate) fn list_databases(&self) -> Result<Vec<DatabaseInfo>> {
        let listed = self.engine.list_databases(&plain())?;
        Ok(listed.into_iter().map(|(name, size_bytes)| DatabaseInfo { name, size_bytes }).collect())
    }

    pub(crate) fn list_collections(&self, database: &str) -> Result<Vec<CollectionInfo>> {
        let mut all = Vec::new();
        for info in self.engine.list_collections(&plain(), database)? {
            let collection = &info.collection;
            let kind = match (&collection.settings.view, &collection.settings.time_series) {
                (_, Some(_)) => "timeseries",
                (Some(_), None) => "view",
                (None, None) => "collection",
            };
            all.push(CollectionInfo {
                name: collection.namespace.collection.clone(),
                kind: kind.to_owned(),
                options: Document::try_from(&*collection.options)?,
                uuid: Some(bson::Uuid::from_bytes(collection.uuid)),
            });
        }
        Ok(all)
    }

    pub(crate) async fn drop_database(&self, database: &str) -> Result<()> {
        self.engine.drop_database(&plain(), database)?.durable().await?;
        Ok(())
    }

    pub(crate) async fn create(&self, collection: &Collection, options: Document) -> Result<()> {
        let create = Create { namespace: namespace(collection)?, options: raw(&shown(options))? };
        Ok(self.engine.create(&plain(), &create)?.durable().await?)
    }

    pub(crate) async fn modify(&self, collection: &Collection, mut changes: Document) -> Result<()> {
        let namespace = namespace(collection)?;
        if let Some(index) = changes.remove("index") {
            let Bson::Document(index) = index else { return Err(Error::new(14, "index must be a document")) };
            self.modify_index(&namespace, index).await?;
        }
        if let Some(unknown) = changes.keys().find(|key| !CHANGEABLE.contains(&key.as_str())) {
            return Err(Error::new(72, format!("{unknown} can't be changed: these can: {}", CHANGEABLE.join(", "))));
        }
        if changes.is_empty() {
            return Ok(());
        }
        let change = |old: &bson::RawDocument| {
            let broken = |error: bson::error::Error| engine::Error::bad_value(error.to_string());
            let mut options = Document::try_from(old).map_err(broken)?;
            for (key, value) in &changes {
                match value {
                    Bson::String(off) if key == "expireAfterSeconds" && off == "off" => {
                        options.remove(key);
                    }
                    Bson::Document(validator) if key == "validator" && validator.is_empty() => {
                        options.remove(key);
                    }
                    value => {
                        options.insert(key, value.clone());
                    }
                }
            }
            RawDocumentBuf::try_from(&options).map_err(broken)
        };
        Ok(self.engine.modify_options(&plain(), &namespace, change)?.durable().await?)
    }

    async fn modify_index(&self, namespace: &Namespace, mut index: Document) -> Result<()> {
        let name = match (index.remove("name"), index.remove("keyPattern")) {
            (Some(Bson::String(name)), None) => name,
            (None, Some(Bson::Document(pattern))) => {
                let pattern = raw(&pattern)?;
                let collection = self.engine.collection(&plain(), namespace)?.collection;
                let found = collection.indexes.iter().find(|index| index.spec.pattern() == &*pattern);
                let found = found.ok_or_else(|| Error::new(27, "cannot find an index with this key pattern"))?;
                found.spec.name().to_owned()
            }
            _ => return Err(Error::new(72, "index takes either name or keyPattern")),
        };
        let change = |old: &bson::RawDocument| {
            let broken = |error: bson::error::Error| engine::Error::bad_value(error.to_string());
            let mut specification = Document::try_from(old).map_err(broken)?;
            specification.extend(index.clone());
            RawDocumentBuf::try_from(&specification).map_err(broken)
        };
        Ok(self.engine.modify_index(&plain(), namespace, &name, change)?.durable().await?)
    }

    pub(crate) async fn drop_collection(&self, collection: &Collection) -> Result<()> {
        self.engine.drop_collection(&plain(), &namespace(collection)?)?.durable().await?;
        Ok(())
    }

    pub(crate) async fn rename(&self, collection: &Collection, to: &str, drop_target: bool) -> Result<()> {
        let to = Namespace::new(&collection.database, to)?;
        let rename = Rename { from: namespace(collection)?, to, drop_target };
        Ok(self.engine.rename(&plain(), &rename)?.durable().await?)
    }

    pub(crate) async fn create_indexes(&self, collection: &Collection, indexes: Vec<Document>) -> Result<()> {
        let specifications: Vec<RawDocumentBuf> = indexes.iter().map(raw).collect::<Result<_>>()?;
        self.engine.create_indexes(&plain(), &namespace(collection)?, &specifications)?.durable().await?;
        Ok(())
    }

    pub(crate) fn list_indexes(&self, collection: &Collection) -> Result<Vec<Document>> {
        let info = self.engine.collection(&plain(), &namespace(collection)?)?;
        let mut all = Vec::new();
        match info.collection.options.get_document("clusteredIndex") {
            Ok(clustered) => {
                let mut index = Document::try_from(clustered)?;
                index.insert("clustered", true);
                all.push(index);
            }
            Err(_) if info.collection.implicit_indexes() > 0 => {
                all.push(doc! { "v": 2, "key": { "_id": 1 }, "name": "_id_" });
            }
            Err(_) => {}
        }
        for index in &info.collection.indexes {
            all.push(Document::try_from(index.spec.document())?);
        }
        Ok(all)
    }

    pub(crate) async fn drop_indexes(&self, collection: &Collection, name: Option<&str>) -> Result<()> {
        let which = name.map_or(DropIndexes::All, |name| DropIndexes::Names(vec![name.to_owned()]));
        self.engine.drop_indexes(&plain(), &namespace(collection)?, &which)?.durable().await?;
        Ok(())
    }
}

/// The options of `create` as the catalogue shows them.
fn shown(options: Document) -> Document {
    let mut shown = Document::new();
    for (key, value) in options {
        match (key.as_str(), value) {
            ("capped", Bson::Boolean(false)) => {}
            // Capped sizes are multiples of 256 bytes.
            ("size", size) => {
                shown.insert(key, fitting(whole(Some(&size)).div_ceil(256) * 256));
            }
            ("max", max) => {
                shown.insert(key, fitting(whole(Some(&max))));
            }
            ("timeseries", Bson::Document(mut series)) => {
                if !series.contains_key("bucketMaxSpanSeconds") {
                    let granularity = series.get_str("granularity").unwrap_or("seconds").to_owned();
                    let span = BUCKET_SPANS.iter().find(|known| known.0 == granularity).map_or(3_600, |known| known.1);
                    series.insert("granularity", granularity);
                    series.insert("bucketMaxSpanSeconds", span);
                }
                shown.insert(key, series);
            }
            ("expireAfterSeconds", seconds) => {
                shown.insert(key, whole(Some(&seconds)) as i64);
            }
            ("clusteredIndex", Bson::Document(index)) => {
                let name = index.get_str("name").unwrap_or("_id_").to_owned();
                shown.insert(key, doc! { "v": 2, "key": { "_id": 1 }, "name": name, "unique": true });
            }
            (_, value) => {
                shown.insert(key, value);
            }
        }
    }
    shown
}

/// An `int` where it fits.
fn fitting(number: u64) -> Bson {
    i32::try_from(number).map_or_else(|_| Bson::Int64(number as i64), Bson::Int32)
}
