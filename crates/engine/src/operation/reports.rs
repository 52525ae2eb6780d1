//! What `$collStats` and `$indexStats` show of a collection.
//!
//! Latencies and collection scans are not measured by collection: their numbers are zero.

use super::aggregate::EngineCollections;
use crate::catalog::Collection;
use crate::document::{append, get};
use crate::error::{Code, Error, Result};
use crate::index::IndexSpec;
use crate::namespace::Namespace;
use bson::spec::BinarySubtype;
use bson::{RawArrayBuf, RawBinaryRef, RawBsonRef, RawDocument, RawDocumentBuf, rawdoc};
use std::sync::Arc;

/// This machine's name.
fn host() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    if name.trim().is_empty() { "localhost".to_owned() } else { name.trim().to_owned() }
}

/// A size as the narrowest integer that holds it.
fn put(document: &mut RawDocumentBuf, name: &str, size: i64) -> Result<()> {
    let size = i32::try_from(size).map_or(RawBsonRef::Int64(size), RawBsonRef::Int32);
    append(document, name, size)
}

impl EngineCollections {
    /// The one row of `$collStats`; `options` holds the sections wanted, with `storageStats.scale` as a number of bytes.
    pub(super) fn collection_report(
        &self,
        namespace: &Namespace,
        options: &RawDocument,
    ) -> Result<Vec<RawDocumentBuf>> {
        let collection = self.reading.catalog.get(namespace);
        let mut row = rawdoc! {
            "ns": namespace.to_string(),
            "host": host(),
            "localTime": bson::DateTime::from_millis((self.engine.options.clock)()),
        };
        let stored = || -> Result<&Arc<Collection>> {
            let missing = || {
                Error::new(
                    Code::NAMESPACE_NOT_FOUND,
                    format!(
                        "Unable to retrieve statistics in $collStats :: caused by :: Collection [{namespace}] not found."
                    ),
                )
            };
            let collection = collection.ok_or_else(missing)?;
            if collection.is_view() {
                return Err(Error::new(
                    Code::COMMAND_NOT_SUPPORTED_ON_VIEW,
                    format!("Namespace {namespace} is a view, not a collection"),
                ));
            }
            Ok(collection)
        };
        if let Some(RawBsonRef::Document(latency)) = get(options, "latencyStats")? {
            let histograms = get(latency, "histograms")? == Some(RawBsonRef::Boolean(true));
            append(&mut row, "latencyStats", RawBsonRef::Document(&latencies(histograms)))?;
        }
        if let Some(RawBsonRef::Document(storage)) = get(options, "storageStats")? {
            let scale = storage.get_i64("scale").unwrap_or(1);
            let storage = self.storage_report(stored()?, scale)?;
            append(&mut row, "storageStats", RawBsonRef::Document(&storage))?;
        }
        if get(options, "count")?.is_some() {
            let collection = stored()?;
            let count = match collection.settings.series {
                Some(_) => self.engine.bucket_count(&*self.reading.view()?, collection)?,
                None => self.engine.totals(&*self.reading.view()?, collection.id)?.count,
            };
            put(&mut row, "count", count)?;
        }
        if get(options, "queryExecStats")?.is_some() {
            stored()?;
            let scans = rawdoc! { "collectionScans": { "total": 0_i64, "nonTailable": 0_i64 } };
            append(&mut row, "queryExecStats", RawBsonRef::Document(&scans))?;
        }
        Ok(vec![row])
    }

    /// Sizes.
    fn storage_report(&self, collection: &Collection, scale: i64) -> Result<RawDocumentBuf> {
        let totals = self.engine.totals(&*self.reading.view()?, collection.id)?;
        let mut report = RawDocumentBuf::new();
        put(&mut report, "size", totals.size_bytes / scale)?;
        if let Some(series) = &collection.settings.series {
            let series = self.engine.series_report(&*self.reading.view()?, collection, series)?;
            append(&mut report, "timeseries", RawBsonRef::Document(&series))?;
        } else {
            put(&mut report, "count", totals.count)?;
            if totals.count > 0 {
                put(&mut report, "avgObjSize", totals.size_bytes / totals.count)?;
            }
        }
        put(&mut report, "numOrphanDocs", 0)?;
        let taken = self.engine.sizes(&*self.reading.view()?, collection)?;
        let scaled = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX) / scale;
        put(&mut report, "storageSize", scaled(taken.storage_bytes))?;
        put(&mut report, "freeStorageSize", 0)?;
        let capped = collection.settings.capped;
        append(&mut report, "capped", RawBsonRef::Boolean(capped.is_some()))?;
        if let Some(capped) = capped {
            put(&mut report, "max", i64::try_from(capped.max).unwrap_or(i64::MAX))?;
            put(&mut report, "maxSize", i64::try_from(capped.size_bytes).unwrap_or(i64::MAX) / scale)?;
        }
        let mut sizes = RawDocumentBuf::new();
        for (name, bytes) in &taken.indexes {
            put(&mut sizes, name, scaled(*bytes))?;
        }
        put(&mut report, "nindexes", taken.indexes.len() as i64)?;
        append(&mut report, "indexBuilds", RawBsonRef::Array(&bson::RawArrayBuf::new()))?;
        put(&mut report, "totalIndexSize", scaled(taken.index_bytes()))?;
        put(&mut report, "totalSize", scaled(taken.storage_bytes + taken.index_bytes()))?;
        append(&mut report, "indexSizes", RawBsonRef::Document(&sizes))?;
        put(&mut report, "scaleFactor", scale)?;
        Ok(report)
    }

    /// One row for each collection of a database; from `admin`, of all but the server's own.
    pub(super) fn catalog_report(&self, database: &str, options: &RawDocument) -> Result<Vec<RawDocumentBuf>> {
        let own = ["admin", "config", "local"];
        let is_shown = |collection: &&Arc<Collection>| match database {
            "admin" => !own.contains(&collection.namespace.database.as_str()),
            _ => collection.namespace.database == database,
        };
        let mut rows = Vec::new();
        for collection in self.reading.catalog.all().filter(is_shown) {
            let kind = match (collection.is_view(), &collection.settings.series) {
                (true, _) => "view",
                (_, Some(_)) => "timeseries",
                _ => "collection",
            };
            let mut row = rawdoc! {
                "db": collection.namespace.database.as_str(),
                "ns": collection.namespace.to_string(),
                "type": kind,
                "options": collection.options.clone(),
            };
            let mut info = rawdoc! { "readOnly": collection.is_view() };
            if !collection.is_view() {
                let uuid = RawBinaryRef { subtype: BinarySubtype::Uuid, bytes: &collection.uuid };
                append(&mut info, "uuid", RawBsonRef::Binary(uuid))?;
            }
            append(&mut row, "info", RawBsonRef::Document(&info))?;
            if !collection.is_view() && collection.implicit_indexes() > 0 {
                let id = IndexSpec::id(collection.settings.collation.as_ref());
                append(&mut row, "idIndex", RawBsonRef::Document(id.document()))?;
            }
            append(&mut row, "sharded", RawBsonRef::Boolean(false))?;
            if get(options, "shards")? == Some(RawBsonRef::Boolean(true)) {
                append(&mut row, "shards", RawBsonRef::Array(&RawArrayBuf::new()))?;
            }
            rows.push(row);
        }
        Ok(rows)
    }

    /// One row for each remembered plan.
    pub(super) fn plan_report(&self, namespace: &Namespace) -> Result<Vec<RawDocumentBuf>> {
        let Some(collection) = self.reading.catalog.get(namespace) else {
            let message = format!("Failed to execute $planCacheStats: no collection {namespace}");
            return Err(Error::location(50933, message));
        };
        if collection.settings.series.is_some() {
            let message =
                "$planCacheStats is only valid as the first stage in a pipeline; a time series puts others before it";
            return Err(Error::location(40602, message));
        }
        let mut rows = self.engine.plans.rows(collection.id);
        let host = host();
        rows.iter_mut().try_for_each(|row| append(row, "host", RawBsonRef::String(&host)))?;
        Ok(rows)
    }

    /// One row for each index.
    pub(super) fn index_report(&self, namespace: &Namespace) -> Result<Vec<RawDocumentBuf>> {
        let Some(collection) = self.reading.catalog.get(namespace) else { return Ok(Vec::new()) };
        let host = host();
        let report = |spec: &IndexSpec| {
            rawdoc! {
                "name": spec.name(),
                "key": spec.pattern().to_owned(),
                "host": host.as_str(),
                "accesses": {
                    "ops": self.engine.index_uses.of(collection.id, spec.name()),
                    "since": bson::DateTime::from_millis(self.engine.index_uses.since_ms()),
                },
                "spec": spec.document().to_owned(),
            }
        };
        let id = IndexSpec::id(collection.settings.collation.as_ref());
        let id = (collection.implicit_indexes() > 0).then_some(id);
        Ok(id.iter().map(report).chain(collection.indexes.iter().map(|index| report(&index.spec))).collect())
    }
}

fn latencies(histograms: bool) -> RawDocumentBuf {
    let mut report = RawDocumentBuf::new();
    for kind in ["reads", "writes", "commands", "transactions"] {
        let mut counted = RawDocumentBuf::new();
        if histograms {
            counted.append(bson::raw::cstr!("histogram"), bson::RawArrayBuf::new());
        }
        counted.append(bson::raw::cstr!("latency"), 0_i64);
        counted.append(bson::raw::cstr!("ops"), 0_i64);
        counted.append(bson::raw::cstr!("queryableEncryptionLatencyMicros"), 0_i64);
        append(&mut report, kind, RawBsonRef::Document(&counted)).expect("the names hold no null bytes");
    }
    report
}
